import t from 'tap'
import { brokenPods, referringPods, soundPods } from './broken-pods.js'
import { errorOf } from './error-of.js'

await t.test('refuseUnrunnable refuses each Pod that kubelet would refuse, with its field', async (t) => {
  for (const { what, pod, field } of [...brokenPods, ...referringPods]) {
    const message = (await errorOf(JSON.stringify(pod))) ?? 'taken'
    t.match(message, field, what)
    t.match(message, /^web\.yaml: /, what)
  }
})

await t.test('refuseUnrunnable accepts each Pod that kubelet would accept', async (t) => {
  for (const { what, pod } of soundPods) t.equal(await errorOf(JSON.stringify(pod)), undefined, what)
})

await t.test('parseManifest refuses text that never ends, or is no tree', async (t) => {
  const spec = 'spec: {containers: [{name: a, image: b}]}'
  const head = 'apiVersion: v1\nkind: Pod\n'
  const level = (n: number) =>
    `k${n}: &k${n} [${Array(9)
      .fill(n === 0 ? 'lol' : `*k${n - 1}`)
      .join()}]\n`
  const bomb = Array.from({ length: 9 }, (_, n) => level(n)).join('')
  const cases: [string, string, RegExp][] = [
    ['an alias inside of itself', `${head}metadata: &m {name: web, x: *m}\n${spec}`, /alias inside the value/],
    ['aliases of aliases', `${head}${bomb}metadata: {name: web}\n${spec}`, /an unknown alias, or too many aliases/],
    ['an alias of nothing', `${head}metadata: {name: *web}\n${spec}`, /not valid YAML/],
    ['brackets, in YAML', `${head}a: ${'['.repeat(50_000)}`, /nested too deeply|not valid YAML/],
    ['brackets, in JSON', `{"a": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`, /nested too deeply/],
    ['a tab', `${head}metadata:\n\tname: web\n${spec}`, /line 4, column 1: not valid YAML/],
    ['a template', `${head}metadata: {name: {{ .Name }}}\n${spec}`, /line 3, column 19: a field whose name is neither/],
    ['zeroes', '\0\0\0', /line 1, column 1: not valid YAML \(a control character\)/],
    [
      'a list of objects',
      'apiVersion: v1\nkind: List\nitems: []\n',
      /kind "List", apiVersion "v1": from a manifest file, kubelet runs only/,
    ],
  ]
  for (const [what, text, message] of cases) t.match(await errorOf(text), message, what)
  t.equal(
    await errorOf(`${head}metadata:\n  name: web\n${spec}\n`.replaceAll('\n', '\r\n')),
    undefined,
    'lines as of Windows',
  )
})
