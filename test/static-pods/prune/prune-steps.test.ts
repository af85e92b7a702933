/** The steps of a prune: the order of its syncs, and its reports of failures. */
import { existsSync, mkdirSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls, namesFor } from '../../../src/durable/index.js'
import { revisionFamily } from '../../../src/static-pods/names.js'
import { prune } from '../../../src/static-pods/prune/prune.js'
import { failure, intercepted, type Interceptor } from '../../durable/intercepted.js'
import { kept } from '../../durable/scratch.js'
import { NodeDisk, podText } from '../pods.js'
import { requestOf, visible } from './prune-request.js'

const { signal } = new AbortController()
const family = namesFor('', revisionFamily('web-pod'))

function withRevisions(t: Test, ...revisions: number[]): NodeDisk {
  const node = new NodeDisk(t)
  mkdirSync(node.resources)
  for (const revision of revisions) node.makeRevision(revision)
  return node
}

const on = (watch: Interceptor): DurableCalls => new DurableCalls(intercepted(watch).fs)

/** The changes that a prune makes on the disk, in order, once it has its verdicts; removals in a row are one. */
async function steps(node: NodeDisk, keep: number): Promise<string[]> {
  const did: string[] = []
  const durable = on((call, args) => {
    if (call === 'sync') {
      const [first = 0] = args[0] as number[]
      did.push(`sync ${readlinkSync(`/proc/self/fd/${first}`).slice(node.root.length + 1)}`)
    } else if (call === 'rename') did.push(call)
    else if (call.startsWith('remove') && did.at(-1) !== 'remove') did.push('remove')
  })
  await prune(requestOf(node, { keep }), durable, silent, signal)
  return did
}

await t.test('prune syncs the manifests that it judges by, then renames, then syncs the removal', async (t) => {
  const node = withRevisions(t, 1, 2)
  node.makeManifest(podText({ labels: { revision: '3' } }))
  symlinkSync(join(node.revision(3), 'web-pod.yaml'), join(node.resources, 'web-last-known-good'))
  const resources = 'sync static-pod-resources'
  t.same(await steps(node, 2), [resources], 'where nothing goes: what a predecessor has removed')
  const [first, second, ...then] = await steps(node, 1)
  t.same([first, second].sort(), ['sync manifests', resources])
  t.same(then, ['rename', resources, 'remove', resources])
  mkdirSync(join(node.resources, family.staging('0123456789abcdef')))
  t.same(await steps(node, 1), [resources, 'remove', resources], 'what a predecessor has left goes in any case')
})

/** A disk whose sync fails at this turn. */
function failingSync(turn: number, error: Error = failure('EIO', 'fsync')): DurableCalls {
  let syncs = 0
  return on((call) => {
    if (call === 'sync' && ++syncs === turn) throw error
  })
}

await t.test(
  'a failed sync before the renames removes nothing; afterwards prune says that files may come back',
  async (t) => {
    const node = withRevisions(t, 1)
    node.makeManifest(podText({ labels: { revision: '3' } }))
    const pruned = (turn: number) => prune(requestOf(node), failingSync(turn), silent, signal)
    for (const turn of [1, 2]) {
      await t.rejects(pruned(turn), {
        code: 'EIO',
        published: false,
        message: /^could not sync .*; nothing was removed/,
      })
      t.same(visible(node.resources), ['web-pod-1'])
    }
    const unknown = {
      name: 'DurableWriteError',
      code: 'EIO',
      path: node.resources,
      published: true,
      reason: 'DurabilityUnknown',
      message:
        `could not sync ${node.resources}: fsync: EIO; revisions that are gone from there may come back with a power cut; ` +
        'repeat the command: it completes the removal',
    }
    await t.rejects(pruned(3), unknown)
    t.same([visible(node.resources), kept(node.resources)], [[], ['lock', 'staging']], 'its files are there')
    await t.rejects(pruned(2), unknown, 'they have gone')
    t.same(kept(node.resources), ['lock'])
    await t.rejects(pruned(1), unknown, 'a predecessor may not have come to that')
    const defect = new TypeError('a defect')
    const failed = prune(requestOf(node), failingSync(1, defect), silent, signal)
    t.equal(await failed.catch((error: unknown) => error), defect, 'what is no failure of the disk stays what it is')
  },
)

await t.test('a prune aborted before the first rename removes nothing, and frees the lock', async (t) => {
  const node = withRevisions(t, 1)
  const controller = new AbortController()
  const durable = on((call) => {
    if (call === 'sync') controller.abort()
  })
  await t.rejects(prune(requestOf(node), durable, silent, controller.signal), { name: 'AbortError' })
  t.same(visible(node.resources), ['web-pod-1'])
  const again = prune(requestOf(node), new DurableCalls(), silent, signal).then((lines) =>
    lines.map(({ outcome }) => outcome),
  )
  t.same(await again.catch(String), ['removed'])
})

await t.test(
  'prune says so where another program moved the resource directory away, and removes nothing',
  async (t) => {
    const node = withRevisions(t, 1)
    const away = join(node.root, 'away')
    const durable = on((call) => {
      if (call === 'sync' && existsSync(node.resources)) renameSync(node.resources, away)
    })
    const said = await prune(requestOf(node), durable, silent, signal).then(String, String)
    const absent = `StaticPodError: the resource directory ${node.resources} does not exist; nothing was removed; check `
    t.ok(said.startsWith(absent), 'it is told')
    t.same(visible(away), ['web-pod-1'])
  },
)

await t.test('prune refuses `/` before any look at the disk', async (t) => {
  const calls: string[] = []
  const durable = on((call) => {
    calls.push(call)
    throw failure('EIO', call)
  })
  const request = { ...requestOf(new NodeDisk(t)), resourceDirectory: '/' }
  await t.rejects(prune(request, durable, silent, signal), { name: 'InvalidInput', message: /^--resource-dir is \/: / })
  t.same(calls, [])
})

await t.test(
  'prune leaves a revision that it cannot rename, removes the others, and warns of a leftover that stays',
  async (t) => {
    const node = withRevisions(t, 1, 2)
    const left = family.staging('0123456789abcdef')
    mkdirSync(join(node.resources, left))
    const warnings: [object, string][] = []
    // The other warning is of a file system without proven durability.
    const warn = (...said: [object, string]): void => {
      if ('leftover' in said[0]) warnings.push(said)
    }
    const log: Log = { ...silent, warn }
    const durable = on((call, args) => {
      if ((call === 'rename' && args.includes('web-pod-2')) || (call === 'removeDirectory' && args[1] === left))
        throw failure('EPERM', call)
    })
    const path = node.revision(2)
    const [line, other] = await prune(requestOf(node), durable, log, signal)
    t.match(other, { revision: 1, outcome: 'removed' })
    t.same(visible(node.resources), ['web-pod-2'])
    t.match(line, { revision: 2, path, outcome: 'failed' })
    t.equal(
      line?.why?.replace(/; check for.*/, ''),
      `could not remove a revision from ${node.resources}: rename ${path}: EPERM; holdfast left ${path} as it was`,
    )
    t.match(warnings, [
      [
        { leftover: left, error: /EPERM/ },
        new RegExp(`^files are left in ${node.resources}/${left}: .*EPERM.*; the next run retries$`),
      ],
    ])
    t.equal(warnings.length, 1)
  },
)

await t.test('prune counts a torn record for a revision no newer than the present ones', async (t) => {
  const node = withRevisions(t)
  const [first, second] = [0, 1].map((revision) => join(node.resources, namesFor(`web-pod-${revision}`).record(1)))
  for (const path of [first, second]) writeFileSync(path ?? '', 'torn')
  await prune(requestOf(node), new DurableCalls(), silent, signal)
  t.same(
    [first, second].map((path) => existsSync(path ?? '')),
    [false, true],
  )
})
