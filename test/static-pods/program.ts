/** The launcher as a program that plain Node starts: what a loader would do at each start is done once, into a directory. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../', import.meta.url))

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
}

/** Path of the launcher. What it was made into goes with this process. */
export function makeLauncher(): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-launcher-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  for (const room of ['src', 'native', 'test/static-pods']) {
    for (const path of readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || (room === 'test/static-pods' && path !== 'launcher.ts')) continue
      const source = readFileSync(join(root, room, path), 'utf8')
      const { outputText } = ts.transpileModule(source, { compilerOptions })
      const made = join(directory, room, path.replace(/\.ts$/, '.js'))
      mkdirSync(dirname(made), { recursive: true })
      writeFileSync(made, outputText)
    }
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  writeFileSync(join(directory, 'package.json'), readFileSync(join(root, 'package.json')))
  return join(directory, 'test/static-pods/launcher.js')
}
