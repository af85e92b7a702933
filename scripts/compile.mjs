/**
 * Compiles the TypeScript of the program, its tests and benchmarks to `dist`, each file by itself, without a look at types, and bundles the
 * program for the tests that start it: two seconds for all of it, nothing for unchanged files. `npm run build` adds the types of the
 * program.
 *
 * The mirror in `dist` follows the sources exactly: the output of a missing source goes too, so that no test runs without its source.
 */
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Loaded late, for an answer to `npm start` in a fresh copy of the sources.
const [{ build }, { bundleProgram }] = await Promise.all([import('esbuild'), import('./program.mjs')]).catch(
  (error) => {
    if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error
    process.stderr.write('The packages that compile holdfast are not installed yet: run "npm ci" first\n')
    process.exit(1)
  },
)

const project = join(import.meta.dirname, '..')
const output = join(project, 'dist')
const rooms = ['src', 'native', 'torture', 'test', 'bench']

/** What the last run compiled, and from what. */
const ledger = join(output, '.compiled.json')

/** As `tsconfig.json` says; esbuild takes `verbatimModuleSyntax` and the like from there. */
const options = { format: 'esm', platform: 'node', target: 'es2023', sourcemap: true }
/** What decides the output besides the sources. */
const given = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'bin/holdfast.js',
  'bin/prepare.js',
  'bin/package.json',
]
const recipes = ['compile.mjs', 'program.mjs', 'common-js.mjs', 'sbom.mjs', 'program/koffi.cjs', 'tap-module.mjs'].map(
  (name) => join('scripts', name),
)
const recipe = JSON.stringify([options, ...[...given, ...recipes].map(stamp)])

function stamp(path) {
  const { mtimeMs, size } = statSync(join(project, path))
  return `${mtimeMs} ${size}`
}

function sources() {
  const paths = rooms.flatMap((room) =>
    readdirSync(join(project, room), { recursive: true })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
      .map((name) => join(room, name)),
  )
  return Object.fromEntries(paths.map((path) => [path, stamp(path)]))
}

function lastRun() {
  try {
    const last = JSON.parse(readFileSync(ledger, 'utf8'))
    return last.recipe === recipe ? last.files : undefined
  } catch {
    return undefined
  }
}

const isThere = (path) => statSync(path, { throwIfNoEntry: false }) !== undefined
const outputOf = (path) => join(output, path.replace(/\.ts$/, '.js'))

/** Where the compiled tests find tap before they look among the project's own modules. */
const tap = join(output, 'node_modules/tap')

/** This project compares no React elements, and tap would load their printer. */
const withoutReact = {
  name: 'without-react',
  setup(build) {
    build.onResolve({ filter: /^react-element-to-jsx-string$/ }, ({ path }) => ({ path, namespace: 'without-react' }))
    build.onLoad({ filter: /./, namespace: 'without-react' }, () => ({ contents: 'exports.default = String' }))
  },
}

/**
 * tap as one file instead of six hundred, compiled once (scripts/tap-module.mjs): each process of tests spends 0.1 s of CPU until its
 * first test instead of 0.4 s, and there are some ninety of them.
 */
async function bundleTap() {
  // What V8 keeps beside it may be of another tap.
  rmSync(tap, { recursive: true, force: true })
  await build({
    entryPoints: ['node_modules/tap/dist/commonjs/index.js'],
    absWorkingDir: project,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    outfile: join(tap, 'tap.cjs'),
    minifyWhitespace: true,
    plugins: [withoutReact],
    logLevel: 'warning',
  })
  cpSync(join(project, 'scripts/tap-module.mjs'), join(tap, 'index.js'))
  writeFileSync(join(tap, 'package.json'), '{ "name": "tap", "type": "module", "exports": "./index.js" }\n')
}

/** The program as an image carries it, for the tests that start it; made again whenever a file of it may have changed. */
const program = join(output, 'program')

/**
 * A process of the bundled program takes 0.07 s (`--version`) to 0.13 s (`check`) of CPU less than one of its separate files, and
 * `npm test` starts some two hundred.
 */
async function bundleForTests() {
  const fresh = `${program}.new`
  rmSync(fresh, { recursive: true, force: true })
  await bundleProgram({ dist: join(fresh, 'dist'), licenses: join(fresh, 'licenses'), library: false })
  for (const name of ['bin', 'package.json']) cpSync(join(project, name), join(fresh, name), { recursive: true })
  renameSync(fresh, program)
}

/** Compiles the files that have changed since the last time. Throws where a file is no TypeScript; esbuild prints why. */
export async function compile() {
  const files = sources()
  const last = lastRun()
  // What the type checker believes to have written goes too.
  if (last === undefined) {
    for (const name of [...rooms, 'types.tsbuildinfo']) rmSync(join(output, name), { recursive: true, force: true })
  }
  const gone = Object.keys(last ?? {}).filter((path) => !(path in files))
  for (const path of gone) {
    for (const ending of ['.js', '.js.map', '.d.ts']) rmSync(outputOf(path).replace(/\.js$/, ending), { force: true })
  }
  if (last === undefined || !isThere(join(tap, 'index.js'))) await bundleTap()
  const stale = Object.keys(files).filter((path) => last?.[path] !== files[path] || !isThere(outputOf(path)))
  const ofProgram = [...stale, ...gone].some((path) => /^(src|native|torture)\//.test(path)) || !isThere(program)
  if (stale.length === 0 && gone.length === 0 && !ofProgram && last !== undefined) return
  // After an interruption the sources are stale once more, and there is no bundle of older ones.
  rmSync(ledger, { force: true })
  if (ofProgram) rmSync(program, { recursive: true, force: true })
  const mirror = { absWorkingDir: project, outdir: output, outbase: project, logLevel: 'warning' }
  const compiled = stale.length > 0 && build({ ...options, ...mirror, entryPoints: stale })
  await Promise.all([compiled, ofProgram && bundleForTests()])
  mkdirSync(output, { recursive: true })
  writeFileSync(`${ledger}.new`, JSON.stringify({ recipe, files }))
  renameSync(`${ledger}.new`, ledger)
}

if (process.argv[1] === import.meta.filename) await compile()
