/** The link to the last known good revision, and the fallback to that revision. */
import { mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { fallBack, intactRevision, recordLastKnownGood } from '../../../src/static-pods/monitor/last-known-good.js'
import { revisionFamily } from '../../../src/static-pods/names.js'
import { intercepted, watchedSyncs } from '../../durable/intercepted.js'
import { installed, link, live } from './monitored-node.js'
import { NodeDisk, podText } from '../pods.js'

await t.test("recordLastKnownGood syncs the link's revision first, unless a record proves that durable", async (t) => {
  const node = new NodeDisk(t)
  const places = { resourceDirectory: node.resources, manifestDirectory: node.manifests, target: 'web' }
  const files = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`file-${index}`, `${index}`]))
  const target = node.revision(7)
  await new DurableCalls().publishDirectories([{ target, files, family: revisionFamily('web-pod') }], undefined)
  node.makeRevision(6)
  const { fs, synced } = watchedSyncs()
  const record = async (revision: number): Promise<string[]> => {
    synced.clear()
    await recordLastKnownGood(places, revision, new DurableCalls(fs))
    t.equal(readlinkSync(link(node)), join(node.revision(revision), 'web-pod.yaml'))
    return [...synced].sort()
  }
  const above = (path: string): string[] => (path === '/' ? [path] : [path, ...above(dirname(path))])
  const published = await record(7)
  t.ok(published.includes(node.resources), 'the directory that holds the link')
  t.same(
    published.filter((path) => !above(node.resources).includes(path)),
    [],
  )
  const foreign = await record(6)
  t.same(
    foreign.filter((path) => !published.includes(path)),
    ['', 'secrets', 'secrets/tls', 'secrets/tls/tls.key', 'web-pod.yaml'].map((path) => join(node.revision(6), path)),
  )
})

await t.test(
  "recordLastKnownGood does not lead the link to another program's revision before that is durable",
  async (t) => {
    const node = new NodeDisk(t)
    node.makeRevision(6)
    const places = { resourceDirectory: node.resources, manifestDirectory: node.manifests, target: 'web' }
    const did: string[] = []
    const { fs } = intercepted((call) => {
      if ((call === 'sync' || call === 'createLink') && did.at(-1) !== call) did.push(call)
    })
    await recordLastKnownGood(places, 6, new DurableCalls(fs))
    t.same(did, ['sync', 'createLink', 'sync'])
  },
)

await t.test('fallBack makes its revision the last known good one, and cuts the message', async (t) => {
  const node = installed(t)
  const places = { resourceDirectory: node.resources, manifestDirectory: node.manifests, target: 'web' }
  const fall = (message: string): Promise<number | undefined> =>
    fallBack(places, 7, { reason: 'NotReady', message }, new DurableCalls(), silent)
  t.equal(await fall('m'.repeat(1001)), 6, 'the newest older one')
  t.equal(readlinkSync(link(node)), join(node.revision(6), 'web-pod.yaml'))
  const { annotations = {} } = live(node).metadata
  t.equal(annotations['startup-monitor.static-pods.openshift.io/fallback-message'], 'm'.repeat(1000))
})

await t.test("fallBack prefers the link's revision to older ones, and never takes the failed one", async (t) => {
  for (const [leadsTo, expected] of [
    [5, 5],
    [7, 6],
  ] as const) {
    const node = installed(t)
    const places = { resourceDirectory: node.resources, manifestDirectory: node.manifests, target: 'web' }
    symlinkSync(join(node.revision(leadsTo), 'web-pod.yaml'), link(node))
    t.equal(await fallBack(places, 7, { reason: 'r', message: 'm' }, new DurableCalls(), silent), expected)
    t.equal(readlinkSync(link(node)), join(node.revision(expected), 'web-pod.yaml'))
  }
})

await t.test('intactRevision tells the first fault of a revision, and does not look for others', async (t) => {
  const node = new NodeDisk(t)
  const places = { resourceDirectory: node.resources, manifestDirectory: node.manifests, target: 'web' }
  const durable = new DurableCalls()
  const publish = (revision: number, label: string) =>
    durable.publishDirectories(
      [
        {
          target: node.revision(revision),
          files: { 'web-pod.yaml': podText({ labels: { revision: label } }), key: '1' },
        },
      ],
      undefined,
    )
  node.makeRevision(1)
  for (const [revision, label] of [
    [2, '2'],
    [3, '3'],
    [4, '9'],
    [5, '9'],
  ] as const)
    await publish(revision, label)
  for (const revision of [3, 5]) writeFileSync(join(node.revision(revision), 'key'), 'changed')
  mkdirSync(node.revision(6))
  mkdirSync(node.revision(7))
  writeFileSync(join(node.revision(7), 'web-pod.yaml'), podText({ labels: {} }))
  for (const [revision, expected] of [
    [1, undefined],
    [2, undefined],
    [3, 'its files differ from what was published'],
    [4, 'its manifest is labelled as revision 9'],
    [5, 'its manifest is labelled as revision 9'],
    [6, 'its copy of the manifest is missing'],
    [7, undefined],
  ] as const) {
    const told: unknown[][] = []
    const log: Log = { ...silent, warn: (...said) => void told.push(said) }
    const path = join(node.revision(revision), 'web-pod.yaml')
    const manifest = await intactRevision(places, revision, durable, log)
    t.equal(manifest !== undefined, expected === undefined, `${revision}`)
    t.same(told, expected === undefined ? [] : [[{ revision, path, why: expected }, 'this revision is not intact']])
  }
})
