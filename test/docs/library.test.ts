/** docs/library.md: names every export of the package, and each of its examples runs and prints its comment. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build, transform } from 'esbuild'
import t from 'tap'
import * as library from '../../src/index.js'
import { scratch } from '../durable/scratch.js'
import { project } from '../project.js'
import { read } from './pages.js'

const page = read('docs/library.md')
/** Where the examples work, in the page. */
const place = '/srv/demo'
const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)

await t.test('every export is named in the page, and every value is used in an example', async (t) => {
  const source = readFileSync(join(project, 'src/index.ts'), 'utf8')
  const lists = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) => names.split(','))
  const declared = [...source.matchAll(/^export (?:async function|interface|class|type|const) (\w+)/gm)].map(
    ([, name = '']) => name,
  )
  const names = [...lists.map((name) => name.trim()).filter((name) => name !== ''), ...declared]
  const values = Object.keys(library)
  t.ok(names.length > values.length && values.every((name) => names.includes(name)), 'the names were found')
  for (const name of names) t.match(page, new RegExp(`\`${name}\\b|^## .*\\b${name}\\b`, 'm'), name)
  for (const name of values)
    t.ok(
      examples.some((code) => new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from 'holdfast'`).test(code)),
      `an example imports ${name}`,
    )
})

/** What an example says that it prints, line by line. */
function promised(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\) \/\/ (.+)$/gm)].map(([, text = '']) => text)
}

await t.test('each example prints what stands behind it', async (t) => {
  for (const [index, code] of examples.entries()) {
    const root = scratch(t)
    const { code: compiled } = await transform(code, { loader: 'ts', format: 'esm' })
    const module = join(root, `example-${index}.mjs`)
    const own = `const printed = []; const console = { log: (...values) => printed.push(values.join(' ')) }; export { printed };`
    const from = JSON.stringify(pathToFileURL(join(project, 'dist/src/index.js')).href)
    writeFileSync(module, own + compiled.replaceAll(/from ["']holdfast["']/g, `from ${from}`).replaceAll(place, root))
    const { printed } = (await import(pathToFileURL(module).href)) as { printed: string[] }
    t.strictSame(
      printed.map((line) => line.replaceAll(root, place)),
      promised(code),
      code.split('\n').slice(0, 3).join(' '),
    )
  }
  t.ok(examples.length >= 9 && examples.flatMap(promised).length >= 12, 'there are as many as ever')
})

await t.test('an installer is bundled without koffi, runs, and is as small as the page says', async (t) => {
  const root = scratch(t)
  const installer = examples.at(-1) ?? ''
  mkdirSync(join(root, 'out'))
  writeFileSync(join(root, 'installer.ts'), installer.replaceAll(place, root))
  const outfile = join(root, 'out/installer.mjs')
  await build({
    entryPoints: [join(root, 'installer.ts')],
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    external: ['koffi'],
    logLevel: 'error',
    alias: { holdfast: join(project, 'src/index.ts') },
  })
  const size = readFileSync(outfile).length / 1024
  const said = Number(/The library is about (\d+) KiB/.exec(page)?.[1])
  t.ok(Math.abs(size - said) <= 15, `the page says ${said} KiB, and it is ${size.toFixed(1)}`)
  symlinkSync(join(project, 'node_modules'), join(root, 'out/node_modules'))
  const { stdout } = await promisify(execFile)(process.execPath, [outfile])
  t.equal(stdout, 'created\n')
  t.match(readFileSync(join(root, 'cni/net.d/10-demo.conflist'), 'utf8'), /"name":"demo"/)
})
