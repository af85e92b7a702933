/**
 * The library as one ES module that people read: each source without its types, with its lines and its comments. esbuild keeps no comment, so
 * the compiler makes each module, and rollup joins them: it leaves out what no public name leads to, with the comments above it.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { rollup } from 'rollup'
import typescript from 'typescript'

const project = join(import.meta.dirname, '..')

const { ModuleKind, ScriptTarget } = typescript
const compilerOptions = {
  target: ScriptTarget.ES2023,
  module: ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  sourceMap: true,
}

/** koffi where the library calls it first (program/late-koffi.mjs). */
const koffiAtTheFirstCall = {
  name: 'koffi-at-the-first-call',
  resolveId(name, importer) {
    if (importer?.endsWith('.ts') && /^koffi$|\/load-koffi\.js$/.test(name))
      return join(project, 'scripts/program/late-koffi.mjs')
    return name === 'koffi' ? { id: name, external: true } : null
  },
}

const typescriptSources = {
  name: 'typescript-sources',
  resolveId: (name, importer) =>
    importer?.endsWith('.ts') && name.startsWith('.') ? resolve(dirname(importer), name.replace(/\.js$/, '.ts')) : null,
  load(path) {
    if (!path.endsWith('.ts')) return null
    const { outputText, sourceMapText } = typescript.transpileModule(readFileSync(path, 'utf8'), {
      fileName: path,
      compilerOptions,
    })
    const code = outputText.replace(/\/\/# sourceMappingURL=.*\n?$/, '')
    return { code, map: { ...JSON.parse(sourceMapText), sources: [path] } }
  },
}

/** @returns what went into it, as esbuild's metafile says that of a bundle */
export async function bundleLibrary(file) {
  const bundle = await rollup({
    input: join(project, 'src/index.ts'),
    external: /^node:/,
    plugins: [koffiAtTheFirstCall, typescriptSources],
    onwarn(warning) {
      throw new Error(warning.message)
    },
  })
  const { output } = await bundle.write({
    file,
    format: 'es',
    indent: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
  })
  await bundle.close()
  const [{ modules }] = output
  const inputs = Object.entries(modules).map(([path, { renderedLength }]) => [
    relative(project, path),
    { bytesInOutput: renderedLength },
  ])
  return { outputs: { [file]: { inputs: Object.fromEntries(inputs) } } }
}
