/**
 * The program as one CommonJS file, and what else goes into Node's single executable: `node scripts/executable/bundle.mjs DIRECTORY`
 * writes there holdfast.cjs, assets, licences and sea-config.json. An executable of Node 20 can require nothing but Node's own modules, so
 * that what the package keeps in files beside the program is in this file, or an asset.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { common, keepLicences, project, withoutPrograms } from '../program.mjs'
import { writeSbom } from '../sbom.mjs'

const [, , out] = process.argv
if (out === undefined) throw new Error('usage: node scripts/executable/bundle.mjs DIRECTORY')
const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
const platform = `koffi-linux-${process.arch}`
const koffi = join(project, 'node_modules/@koromix', platform, `linux_${process.arch}/koffi.node`)

/** What stands in for the modules that look for files beside themselves; by who asks, and for what. */
const stand = [
  [/koffi\/index\.js$/, /\/src\/static\.js$/, { path: join(project, 'scripts/executable/native.cjs') }],
  [/src\/cli\/logger\.ts$/, /^node:module$/, { path: 'pino', namespace: 'executable' }],
  [/src\/directories\/content-check\.ts$/, /^node:worker_threads$/, { path: 'worker', namespace: 'executable' }],
]
const contents = {
  pino: `export const createRequire = () => () => require('pino')`,
  worker: `import { getAsset } from 'node:sea'
    import { Worker as Thread } from 'node:worker_threads'
    export class Worker extends Thread {
      constructor(_, options) {
        super(getAsset('content-check-thread.cjs', 'utf8'), { ...options, eval: true })
      }
    }`,
}

const standIns = {
  name: 'stand-ins',
  setup(build) {
    build.onResolve({ filter: /^(\.\/src\/static\.js|node:module|node:worker_threads)$/ }, ({ importer, path }) => {
      const row = stand.find(([from, what]) => from.test(importer) && what.test(path))
      return row?.[2]
    })
    build.onLoad({ filter: /./, namespace: 'executable' }, ({ path }) => ({
      contents: contents[path],
      resolveDir: project,
    }))
  },
}

const options = {
  ...common,
  format: 'cjs',
  plugins: [standIns, withoutPrograms],
  minifyWhitespace: true,
  minifySyntax: true,
  alias: { yaml: './node_modules/yaml/browser/index.js' },
  define: { bundledVersion: JSON.stringify(version), 'import.meta.url': 'executableUrl', bundledPino: '"pino"' },
  banner: { js: `const executableUrl = require('node:url').pathToFileURL(process.execPath).href;` },
}
mkdirSync(out, { recursive: true })
const bundles = await Promise.all([
  build({ ...options, entryPoints: ['scripts/executable/main.mjs'], outfile: join(out, 'holdfast.cjs') }),
  build({
    ...options,
    entryPoints: ['src/directories/content-check-thread.ts'],
    outfile: join(out, 'content-check-thread.cjs'),
  }),
])
copyFileSync(koffi, join(out, 'koffi.node'))
const metafiles = bundles.map(({ metafile }) => metafile)
keepLicences(metafiles, join(out, 'licenses'))
writeSbom(metafiles, join(out, 'licenses'), { beside: [`@koromix/${platform}`], node: process.versions })
// Node 20 has no such option; a Node that does not know `execArgv` here passes it over. bin/prepare.js does without both.
const noInspector = '--disable-sigusr1'
const execArgv = process.allowedNodeEnvironmentFlags.has(noInspector) ? [noInspector] : []
const assets = Object.fromEntries(['content-check-thread.cjs', 'koffi.node'].map((name) => [name, join(out, name)]))
writeFileSync(
  join(out, 'sea-config.json'),
  JSON.stringify({
    main: join(out, 'holdfast.cjs'),
    output: join(out, 'holdfast.blob'),
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    execArgv,
    assets,
  }),
)
