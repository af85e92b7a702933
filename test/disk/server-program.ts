/**
 * The disk server as a program that plain Node can start: this directory's own compiled modules; or, where a test runs
 * from TypeScript, the same modules transpiled into a directory, so that the server and its threads need no loader and
 * start in a tenth of the time.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const modules = ['fuse-disk', 'serve-requests', 'serve-flushes', 'disk-state', 'fuse-protocol', 'write-log']

/** Path of the program; `directory` is where it may put what it makes. */
export async function serverProgram(directory: string): Promise<string> {
  if (!import.meta.url.endsWith('.ts')) return fileURLToPath(new URL('fuse-disk.js', import.meta.url))
  const { default: typescript } = await import('typescript')
  const compilerOptions = {
    target: typescript.ScriptTarget.ES2022,
    module: typescript.ModuleKind.ES2022,
    verbatimModuleSyntax: true,
  }
  for (const name of modules) {
    const source = readFileSync(new URL(`${name}.ts`, import.meta.url), 'utf8')
    const { outputText } = typescript.transpileModule(source, { compilerOptions })
    writeFileSync(join(directory, `${name}.js`), outputText)
  }
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  return join(directory, 'fuse-disk.js')
}
