/**
 * Compiles the TypeScript of the program, its tests and benchmarks to `dist`, each file by itself, without a look at types: half a
 * second for all of it, nothing for what has not changed. `npm run build` adds the types of the program.
 *
 * The mirror in `dist` holds exactly what the sources hold: the output of a source that is gone goes too, so that no test runs
 * that nobody can read.
 */
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const project = join(import.meta.dirname, '..')
const output = join(project, 'dist')
const rooms = ['src', 'native', 'test', 'bench']

/** What the last run compiled, and from what. */
const ledger = join(output, '.compiled.json')

/** As `tsconfig.json` says; esbuild takes `verbatimModuleSyntax` and the like from there. */
const options = { format: 'esm', platform: 'node', target: 'es2023', sourcemap: true }
/** What decides the output besides the sources. */
const recipe = JSON.stringify([options, ...['package-lock.json', 'tsconfig.json', 'scripts/compile.mjs'].map(stamp)])

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

/**
 * tap as one file instead of six hundred: each process of tests spends 0.2 s of CPU until its first test instead of 0.4 s, and there are
 * some seventy of them.
 */
async function bundleTap() {
  await build({
    entryPoints: ['node_modules/tap/dist/esm/index.js'],
    absWorkingDir: project,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    outfile: join(tap, 'index.js'),
    // Loaded where a test compares React's elements.
    external: ['react-element-to-jsx-string'],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  })
  writeFileSync(join(tap, 'package.json'), '{ "name": "tap", "type": "module", "exports": "./index.js" }\n')
}

/** Compiles what has changed since the last time. Throws where a file is no TypeScript; esbuild prints why. */
export async function compile() {
  const files = sources()
  const last = lastRun()
  // What the type checker believes to have written goes too.
  if (last === undefined) {
    for (const name of [...rooms, 'types.tsbuildinfo']) rmSync(join(output, name), { recursive: true, force: true })
  }
  for (const path of Object.keys(last ?? {})) {
    if (!(path in files)) {
      for (const ending of ['.js', '.js.map', '.d.ts']) rmSync(outputOf(path).replace(/\.js$/, ending), { force: true })
    }
  }
  if (last === undefined || !isThere(join(tap, 'index.js'))) await bundleTap()
  const stale = Object.keys(files).filter((path) => last?.[path] !== files[path] || !isThere(outputOf(path)))
  if (stale.length === 0 && last !== undefined) return
  // Whoever interrupts it finds the sources stale once more.
  rmSync(ledger, { force: true })
  await build({
    ...options,
    entryPoints: stale,
    absWorkingDir: project,
    outdir: output,
    outbase: project,
    logLevel: 'warning',
  })
  mkdirSync(output, { recursive: true })
  writeFileSync(`${ledger}.new`, JSON.stringify({ recipe, files }))
  renameSync(`${ledger}.new`, ledger)
}

if (process.argv[1] === import.meta.filename) await compile()
