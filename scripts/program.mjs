/**
 * The program, and where it is asked for the library, as few files: what is always loaded in one, each part that a command loads when it
 * runs in one of its own, and both share them. koffi stays outside, since its binary cannot be bundled.
 *
 * `node scripts/program.mjs DIRECTORY` puts the program into DIRECTORY/dist, and the licences of what is in it into DIRECTORY/licenses.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'

export const project = join(import.meta.dirname, '..')

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

/** CommonJS packages in an ES module find `require` only where somebody makes it: in the file through which all of them ask for it. */
const maker = `import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);\n`

function giveRequire({ outputFiles }) {
  for (const { path, text } of outputFiles) {
    const asks = outputFiles.some((file) => file.text.includes('typeof require') && path.startsWith(file.path))
    const map = asks && path.endsWith('.map') ? JSON.parse(text) : undefined
    mkdirSync(dirname(path), { recursive: true })
    if (map) writeFileSync(path, JSON.stringify({ ...map, mappings: `;${map.mappings}` }))
    else writeFileSync(path, asks ? maker + text : text)
  }
}

/**
 * @param {{ dist: string, licenses: string, library: boolean }} to `library`: with the library, and with source maps.
 */
export async function bundleProgram({ dist, licenses, library }) {
  const program = await build({
    ...common,
    // A thread is started by its name, beside whatever starts it.
    entryPoints: {
      'cli/main': 'src/cli/main.ts',
      'cli/content-check-thread': 'src/directories/content-check-thread.ts',
      ...(library ? { index: 'src/index.ts' } : {}),
    },
    outdir: join(dist, 'src'),
    // Beside the program: what finds a file from its own place is at the same depth wherever it ends up.
    chunkNames: 'cli/[name]-[hash]',
    format: 'esm',
    splitting: true,
    sourcemap: library ? 'linked' : false,
    sourcesContent: false,
    plugins: [withoutPrograms, ...(library ? [withoutMaps] : [])],
    // Half the size to load; the maps lead back. Names stay, for stacks.
    minifyWhitespace: library,
    minifySyntax: library,
    external: ['koffi'],
    define: { bundledPino: '"./pino.cjs"' },
    // Taken from its ES modules, which its package offers to browsers alone: of a CommonJS package that is loaded by import(),
    // esbuild exports no names.
    alias: { yaml: './node_modules/yaml/browser/index.js' },
    write: false,
  })
  giveRequire(program)
  // Loaded by its name, when the first line is logged.
  const pino = await build({
    ...common,
    entryPoints: ['node_modules/pino/pino.js'],
    outfile: join(dist, 'src/cli/pino.cjs'),
    format: 'cjs',
    minifyWhitespace: library,
    minifySyntax: library,
  })
  keepLicences([program.metafile, pino.metafile], licenses)
}

/** The licence of each package that a file of the bundle came from. */
export function keepLicences(metafiles, directory) {
  mkdirSync(directory, { recursive: true })
  copyFileSync(join(project, 'LICENSE'), join(directory, 'holdfast'))
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs))
  const packages = inputs.map((path) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
  for (const name of new Set(packages.filter((found) => found !== undefined))) {
    const from = join(project, 'node_modules', name)
    const licence = readdirSync(from).find((file) => /^licen[cs]e/i.test(file))
    if (licence === undefined) throw new Error(`no licence found in node_modules/${name}`)
    copyFileSync(join(from, licence), join(directory, name.replaceAll('/', '_')))
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , directory] = process.argv
  if (directory === undefined) throw new Error('usage: node scripts/program.mjs DIRECTORY')
  await bundleProgram({ dist: join(directory, 'dist'), licenses: join(directory, 'licenses'), library: false })
}
