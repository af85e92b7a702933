/** kubelet's own decoder judges the manifests that holdfast takes for the same pod, so that it changes nothing for one of them. */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { asMap, asText } from '../../src/static-pods/json.js'
import { parseManifest } from '../../src/static-pods/pod/manifest.js'
import { isSamePod } from '../../src/static-pods/pod/same-pod.js'
import { manifestWith, podFields, type DrawnManifest } from '../static-pods/pod/drawn-manifests.js'
import { counted, judgeByAll } from './kubelet-judge.js'

const texts = ['', '~', '""', 'a', '"a"', 'Always']
const integers = ['', '0', '1', '0x1', '10']
const byType: Readonly<Record<string, readonly string[]>> = {
  text: texts,
  flag: ['', 'false', 'true', 'no'],
  int32: integers,
  int64: integers,
  intOrText: ['', '0', '"0"', '""', '1', '"1"'],
  quantity: ['', '0', '"0"', '1', '1000m', '1.0', '1Gi', '1024Mi'],
  time: ['', '2020-01-01T00:00:00Z', '2020-01-01T00:00:00+00:00', '2020-01-01T01:00:00+01:00'],
  'text{}': [
    ...['', '{}', '{key: ""}', '{key: }', '{key: b}', '{key: "", other: ""}', '{other: "", key: ""}'],
    ...[
      '{other: b, key: a}',
      '{key: a, other: b}',
      '{cpu: "1"}',
      '{cpu: 1000m}',
      '{sizeLimit: 1Gi}',
      '{sizeLimit: 1024Mi}',
    ],
  ],
  'quantity{}': ['', '{}', '{cpu: }', '{cpu: 0}', '{cpu: 1}', '{cpu: 1000m}', '{cpu: "1"}', '{cpu: 1, memory: 1Gi}'],
}

/** Values that may mean the same, in the order in which a manifest may get one after the other. */
function valuesOf(type: string): readonly string[] {
  return byType[type] ?? (type.endsWith('[]') ? ['', '[]', '[~]', '[{}]', '[""]', '[0]'] : ['', '{}'])
}

const nameless = (pod: unknown): unknown =>
  JSON.parse(JSON.stringify(pod).replaceAll(/pair-\d+-\d+/g, 'pair'), (_, value: unknown) =>
    Array.isArray(value) && value.length === 0 ? null : value,
  )

await t.test('of two manifests that holdfast takes for the same pod, kubelet makes the same pod', async (t) => {
  // kubelet writes the status itself.
  const fields = podFields.filter(({ path }) => path[0] !== 'status')
  const groups = fields.map((field, of) =>
    valuesOf(field.type).map((value, index) => manifestWith(field, value, 'YAML', `pair-${of}-${index}`)),
  )
  const drawn = groups.flat()
  const { refusals, pods } = await judgeByAll(
    t,
    drawn.map(({ text }) => text),
  )
  const refused = new Set(drawn.filter((_, index) => refusals[index] !== undefined))
  const byUid = new Map(pods.map((pod) => [asText(asMap(pod.metadata)?.uid), nameless(pod)]))
  const counts = { pairs: 0, same: 0 }
  const wrong: string[] = []
  const stricter: string[] = []
  const compare = async (a: DrawnManifest, b: DrawnManifest): Promise<void> => {
    const [ours, theirs] = await Promise.all(
      [a, b].map(({ text }) => parseManifest(Buffer.from(text.replaceAll(/pair-\d+-\d+/g, 'pair')), 'web.yaml')),
    )
    if (!ours || !theirs) throw new Error('unreachable')
    const [isSame, isSameThere] = [isSamePod(ours, theirs), isDeepStrictEqual(byUid.get(a.uid), byUid.get(b.uid))]
    counts.pairs += 1
    counts.same += Number(isSame && isSameThere)
    const pair = `${a.type}: ${a.value} and ${b.value}`
    if (isSame && !isSameThere) wrong.push(`${a.path.join('.')}, ${pair}`)
    if (!isSame && isSameThere) stricter.push(pair)
  }
  for (const group of groups) {
    // Where the field itself is the uid or the name, its pod cannot be found again.
    const taken = group.filter((one) => !refused.has(one) && byUid.has(one.uid))
    for (const [index, a] of taken.entries()) for (const b of taken.slice(index + 1)) await compare(a, b)
  }
  t.strictSame(wrong.slice(0, 20), [], `${wrong.length} of ${counts.pairs} pairs`)
  t.ok(counts.same > 300, `${counts.same} are the same to both`)
  t.comment(`${counts.pairs} pairs: the same to both ${counts.same}, to kubelet alone ${stricter.length}`)
  t.comment(...counted(stricter).slice(0, 40))
})
