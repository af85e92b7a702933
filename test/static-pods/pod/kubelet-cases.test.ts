/** holdfast refuses what kubelet's decoder refuses, with line and column, and accepts the rest, but for a few manifests with reasons. */
import t from 'tap'
import { encodeManifest, parseManifest } from '../../../src/static-pods/pod/manifest.js'
import { kubeletCases } from './kubelet-cases.js'
import { errorOf } from './error-of.js'

await t.test('parseManifest judges each manifest as kubelet does', async (t) => {
  for (const { what, text, runs, refusal } of kubeletCases) {
    t.ok(runs || refusal, `${what}: a pod that does not run is refused`)
    const message = await errorOf(text)
    if (refusal === undefined) t.equal(message, undefined, what)
    else t.match(message ?? 'taken', refusal, what)
  }
})

await t.test('a parse error quotes no value', async (t) => {
  const text = kubeletCases[0]?.text.replace('8080', '424242') ?? ''
  const message = (await errorOf(text)) ?? 'taken'
  t.match(message, /quote it; kubelet would refuse the pod$/)
  t.notMatch(message, '424242')
})

await t.test("parseManifest reads a live manifest's first document, and of a repeated field the last", async (t) => {
  const text = (kubeletCases.find(({ what }) => what === 'a second document')?.text ?? '').replace('"web:1"', '"web:2"')
  const manifest = await parseManifest(Buffer.from(`${text}---\n{{ not even YAML }}\n`), 'web.yaml')
  t.match(manifest, { name: 'web', ambiguity: /3 YAML/, pod: { spec: { containers: [{ image: 'web:2' }] } } })
  for (const twice of kubeletCases.filter(({ what, runs }) => runs && what.startsWith('a field twice')))
    t.match(await parseManifest(Buffer.from(twice.text), 'web.yaml'), { name: 'web', ambiguity: /twice/ }, twice.what)
})

await t.test('parseManifest keeps the digits of numbers', async (t) => {
  const spec = (fields: string) => `"spec":{"containers":[{"name":"web","image":"web:1"}],${fields}}`
  const encoded = async (text: string) =>
    Buffer.from(encodeManifest(await parseManifest(Buffer.from(text), 'x'), undefined)).toString()
  const head = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},'
  const exact =
    '"terminationGracePeriodSeconds":9007199254740993,"overhead":{"cpu":1.0000000000000000001},"x":[1E400,-0,1.50]'
  t.equal(await encoded(`${head}${spec(exact)}}`), `${head}${spec(exact)}}\n`, 'of JSON')
  const yaml = (fields: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: "web:1"}], ${fields}}`
  const written =
    'terminationGracePeriodSeconds: 0x20000000000001, x: [18446744073709551615, -9007199254740993, 1e20, 1_0]'
  const meant =
    '"terminationGracePeriodSeconds":9007199254740993,"x":[18446744073709551615,-9007199254740993,100000000000000000000,10]'
  t.equal(await encoded(yaml(written)), `${head}${spec(meant)}}\n`, 'of YAML')
})
