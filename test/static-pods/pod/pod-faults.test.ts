import t from 'tap'
import { parseQuantity } from '../../../src/static-pods/pod/quantity.js'
import { brokenPods, referringPods, soundPods } from './broken-pods.js'
import { errorOf, saidOf } from './error-of.js'

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

await t.test('a quantity of very many digits', async (t) => {
  t.strictSame(parseQuantity(`1${'0'.repeat(40_000)}`), { digits: 1n, power: 40_000 })
  t.equal(parseQuantity(`${'1'.repeat(400_000)}x`), undefined)
  const limits = { memory: `${'1'.repeat(400_000)}x` }
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'a', image: 'b', resources: { limits } }] },
  }
  t.match(await errorOf(JSON.stringify(pod)), /spec\.containers\[0\]\.resources\.limits\.memory .*a quantity/)
  t.strictSame(parseQuantity('25.600Ki'), { digits: 262144n, power: -1 })
  t.strictSame(parseQuantity('1000Ki'), { digits: 1024n, power: 3 })
  t.strictSame(parseQuantity('5Ki'), { digits: 512n, power: 1 })
})

await t.test(
  'a word that nobody knows, and a rule that one kubelet lacks, are doubts where the kubelet is not known',
  async (t) => {
    const podWith = (spec: object) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web' },
        spec: { containers: [{ name: 'web', image: 'web:1' }], ...spec },
      })
    const said = async (spec: object, ...kubelets: number[]) => [
      await saidOf(podWith(spec)),
      ...(await Promise.all(
        kubelets.map(async (kubelet) => (await errorOf(podWith(spec), { kubelet })) === undefined),
      )),
    ]
    t.same(await said({ dnsPolicy: 'ClusterLast' }, 35, 37, 38), ['warned', false, false, true], 'an unknown word')
    t.same(await said({ dnsPolicy: 'clusterFirst' }, 38), ['refused', false], 'a word in another case')
    t.same(await said({ dnsPolicy: 'Always' }, 38), ['refused', false], 'a word of another field')
    const securityContext = { seLinuxChangePolicy: 'MountOption' }
    t.same(await said({ securityContext }, 35, 36, 37, 38), ['warned', false, false, true, true], 'a word since 1.37')
    const hostAliases = [{ ip: '010.0.0.1' }]
    t.same(await said({ hostAliases }, 35, 36, 37), ['refused', true, false, false], 'a rule since 1.36')
  },
)
