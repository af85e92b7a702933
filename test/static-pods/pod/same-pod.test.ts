import t from 'tap'
import { parseManifest } from '../../../src/static-pods/pod/manifest.js'
import { isSamePod } from '../../../src/static-pods/pod/same-pod.js'
import { podText } from '../pods.js'

const same = async (a: object, b: object): Promise<boolean> => {
  const [left, right] = await Promise.all(
    [a, b].map((spec) => parseManifest(Buffer.from(podText({}, spec)), 'manifest')),
  )
  if (!left || !right) throw new Error('unreachable')
  return isSamePod(left, right)
}
const limits = (cpu: unknown) => ({ containers: [{ name: 'web', image: 'web:1', resources: { limits: { cpu } } }] })

await t.test('isSamePod sees through the forms that Go writes', async (t) => {
  for (const [a, b] of [
    ['0.1', '100m'],
    ['1000m', '1'],
    [1, '1'],
    ['1024Mi', '1Gi'],
    ['1e3', '1k'],
    ['0', '0m'],
    ['+2.50', '2500m'],
  ])
    t.ok(await same(limits(a), limits(b)), `${a} and ${b}`)
  t.ok(await same({ hostNetwork: false, volumes: [], nodeName: '', hostAliases: null }, {}))
})

await t.test('isSamePod tells pods of another meaning apart', async (t) => {
  for (const [a, b] of [
    ['1', '1m'],
    ['1Gi', '1G'],
    ['-1', '1'],
  ])
    t.notOk(await same(limits(a), limits(b)), `${a} and ${b}`)
  for (const spec of [
    { hostNetwork: true },
    { terminationGracePeriodSeconds: 0 },
    { automountServiceAccountToken: false },
    { priority: 0 },
    { dnsConfig: {} },
    { nodeSelector: { 'node-role.kubernetes.io/master': '' } },
    { nodeSelector: { 'node-role.kubernetes.io/master': null } },
    { unknown: '' },
  ])
    t.notOk(await same(spec, {}), JSON.stringify(spec))
  t.notOk(await same({ tolerations: [{ key: 'a' }, { key: 'b' }] }, { tolerations: [{ key: 'b' }, { key: 'a' }] }))
})
