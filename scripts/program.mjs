/**
 * The program as few files: the modules of every command in one, the further ones of `replace` and `write` in another, each other part in a
 * separate one; and on request the library (library.mjs). koffi stays outside, since its binary cannot be bundled.
 *
 * `node scripts/program.mjs DIRECTORY MODULES [with-node]` puts the program into DIRECTORY/dist, and into DIRECTORY/licenses the licences of its
 * parts and what they are (sbom.mjs), with the koffi of MODULES, and with the Node that runs here where that goes along.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'
import { commonJs } from './common-js.mjs'
import { packagesIn, writeSbom } from './sbom.mjs'

export const project = join(import.meta.dirname, '..')

const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))

/** Chunks that stand in one file, by the names of their sources: what scripts and init containers run most. */
const frequent = /^(?:replace|write|publishing|read-tree|read-file|unproven)-/

export const common = {
  absWorkingDir: project,
  bundle: true,
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  legalComments: 'none',
  metafile: true,
}

/** Other people's modules leave no more in the maps than their names: a map that leads to their first line takes the place of esbuild's. */
const withoutMaps = {
  name: 'without-maps',
  setup(build) {
    build.onLoad({ filter: /\/node_modules\/.*\.js$/ }, ({ path }) => {
      const map = { version: 3, sources: [basename(path)], mappings: 'AAAA' }
      const url = `data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}`
      return { contents: `${readFileSync(path, 'utf8')}\n//# sourceMappingURL=${url}` }
    })
  },
}

/** Commander loads it for subcommands that are programs of their own, of which there are none: a sixth of its start. */
export const withoutPrograms = {
  name: 'without-programs',
  setup(build) {
    build.onResolve({ filter: /^node:child_process$/ }, ({ importer, path }) =>
      /\/node_modules\/commander\//.test(importer) ? { path, namespace: 'without-programs' } : undefined,
    )
    build.onLoad({ filter: /./, namespace: 'without-programs' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/**
 * @param {{ dist: string, licenses: string, library: boolean }} to `library`: with the library, and its source map.
 * @returns esbuild's metafiles: what went into it
 */
export async function bundleProgram({ dist, licenses, library }) {
  const settings = {
    ...common,
    sourcesContent: false,
    // Half the size to load. Names stay, for stacks, where the size of a package does not count.
    minifyWhitespace: true,
    minifySyntax: true,
    minifyIdentifiers: library,
    outExtension: { '.js': '.cjs' },
  }
  const program = await build({
    ...settings,
    // Its parent starts a thread by its file name, from beside its own file.
    entryPoints: { main: 'src/cli/main.ts', 'content-check-thread': 'src/directories/content-check-thread.ts' },
    // At the same depth as the sources: what finds a file from its own place finds it wherever it ends up.
    outdir: join(dist, 'src/cli'),
    chunkNames: '[name]-[hash]',
    format: 'esm',
    splitting: true,
    plugins: [withoutPrograms, koffiByItsBinary, ...(library ? [withoutMaps] : [])],
    external: ['koffi'],
    define: {
      bundledPino: '"./pino.cjs"',
      bundledVersion: JSON.stringify(manifest.version),
      koffiVersion: JSON.stringify(manifest.dependencies.koffi),
      'import.meta.url': '__moduleUrl',
    },
    // Taken from its ES modules, which its package offers to browsers alone: of a CommonJS package that is loaded by import(),
    // esbuild exports no names.
    alias: { yaml: './node_modules/yaml/browser/index.js' },
    write: false,
  })
  const files = await commonJs(program.outputFiles, { main: 'main.cjs', publish: 'publish.cjs', frequent, settings })
  mkdirSync(join(dist, 'src/cli'), { recursive: true })
  for (const [path, text] of files) writeFileSync(path, text)
  // A thread starts as an ES module wherever it stands.
  writeFileSync(join(dist, 'src/cli/content-check-thread.js'), "import './content-check-thread.cjs'\n")
  // Loaded by its name, when the first line is logged.
  const pino = await build({
    ...common,
    entryPoints: ['node_modules/pino/pino.js'],
    outfile: join(dist, 'src/cli/pino.cjs'),
    format: 'cjs',
    minifyWhitespace: true,
    minifySyntax: true,
  })
  const metafiles = [program.metafile, pino.metafile]
  if (library) {
    const { bundleLibrary } = await import('./library.mjs')
    metafiles.push(await bundleLibrary(join(dist, 'src/index.js')))
  }
  keepLicences(metafiles, licenses)
  return metafiles
}

/** koffi by its binary (program/koffi.cjs). */
const koffiByItsBinary = {
  name: 'koffi-by-its-binary',
  setup(build) {
    build.onResolve({ filter: /^koffi$/ }, ({ importer }) =>
      importer.endsWith('.ts') ? { path: join(project, 'scripts/program/koffi.cjs') } : undefined,
    )
  },
}

/** The licence of each package that a file of the bundle came from. */
export function keepLicences(metafiles, directory) {
  mkdirSync(directory, { recursive: true })
  copyFileSync(join(project, 'LICENSE'), join(directory, 'holdfast'))
  for (const place of packagesIn(metafiles)) {
    const [from, name] = [join(project, place), place.replace('node_modules/', '')]
    const licence = readdirSync(from).find((file) => /^licen[cs]e/i.test(file))
    if (licence === undefined) throw new Error(`no licence found in ${place}`)
    copyFileSync(join(from, licence), join(directory, name.replaceAll('/', '_')))
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , directory, modules, withNode] = process.argv
  if (modules === undefined || ![undefined, 'with-node'].includes(withNode))
    throw new Error('usage: node scripts/program.mjs DIRECTORY MODULES [with-node]')
  const licenses = join(directory, 'licenses')
  const metafiles = await bundleProgram({ dist: join(directory, 'dist'), licenses, library: false })
  const binaries = readdirSync(join(modules, '@koromix')).filter((name) => name.startsWith('koffi-linux-'))
  const beside = ['koffi', ...binaries.map((name) => `@koromix/${name}`)]
  writeSbom(metafiles, licenses, { beside, ...(withNode && { node: process.versions }) })
}
