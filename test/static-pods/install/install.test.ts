/** The steps of an installation, each by its traces on the disk. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls, namesFor } from '../../../src/durable/index.js'
import type { DirectoryPublicationRequest } from '../../../src/durable/single-calls/index.js'
import { dryRun, install } from '../../../src/static-pods/install/install.js'
import type { InstallPlan, InstallSettings } from '../../../src/static-pods/install/install-plan.js'
import { parseManifest } from '../../../src/static-pods/pod/manifest.js'
import { revisionFamily, revisionName } from '../../../src/static-pods/names.js'
import { failure, intercepted, watchedSyncs } from '../../durable/intercepted.js'
import { NodeDisk, podText } from '../pods.js'

const pod = 'web-pod'

/** A node, and the plan of its revision 7. */
async function scene(t: Test, files: Record<string, string> = { a: 'a' }) {
  const node = new NodeDisk(t)
  mkdirSync(node.resources)
  mkdirSync(node.manifests)
  const warnings: object[] = []
  const log: Log = { ...silent, warn: (fields) => void warnings.push(fields) }
  const request = (revision: number): DirectoryPublicationRequest => ({
    target: node.revision(revision),
    files,
    family: revisionFamily(pod),
  })
  const content = Buffer.from(podText({ labels: { revision: '7' } }))
  const manifest = { name: `${pod}.yaml`, content, manifest: await parseManifest(content, 'web-pod.yaml') }
  const plan: InstallPlan = { pod, revision: 7, directory: request(7), lasting: [], manifests: [manifest] }
  const settings: InstallSettings = {
    durable: new DurableCalls(),
    log,
    signal: new AbortController().signal,
    manifestDirectory: node.manifests,
    manifestLock: node.lock,
    timeLeft: () => 0,
    requireProven: false,
    allowOlder: false,
    checkHostPaths: false,
    warnOfHostPaths: false,
  }
  const own = (): string[] => readdirSync(node.resources).filter((name) => name.startsWith('.'))
  return { node, plan, settings, request, warnings, own }
}

const lasting = (node: NodeDisk, name: string, text: string, resourceVersion = '5'): DirectoryPublicationRequest => ({
  target: join(node.certificates, name),
  files: { 'tls.crt': text },
  objects: [{ kind: 'Secret', namespace: 'n', name, uid: 'u', resourceVersion, paths: ['tls.crt'] }],
})

await t.test('a dry run tells the outcome for each directory, and syncs nothing', async (t) => {
  const { node, plan, settings } = await scene(t)
  const lastings = [lasting(node, 'same', '1'), lasting(node, 'other', '1'), lasting(node, 'new', '1')]
  await settings.durable.publishDirectories(lastings.slice(0, 2), undefined)
  const changed = [lasting(node, 'same', '1'), lasting(node, 'other', '2'), lasting(node, 'new', '1')]
  // Another program wrote the revision, and a live manifest names it.
  mkdirSync(node.revision(7))
  writeFileSync(join(node.revision(7), 'a'), 'a', { mode: 0o600 })
  node.makeManifest(podText({ labels: { revision: '7' }, annotations: { dir: node.revision(7) } }))
  const syncs: string[] = []
  const { fs } = intercepted((call) => {
    if (/sync/i.test(call)) syncs.push(call)
  })
  const { directories } = await dryRun({ ...plan, lasting: changed }, { ...settings, durable: new DurableCalls(fs) })
  t.match(
    directories.map(({ path, outcome }) => [path, outcome]),
    [
      [node.revision(7), 'kept'],
      [join(node.certificates, 'same'), 'unchanged'],
      [join(node.certificates, 'other'), 'replaced'],
      [join(node.certificates, 'new'), 'created'],
    ],
  )
  t.same(syncs, [])
  const watched = watchedSyncs()
  await install({ ...plan, lasting: changed }, { ...settings, durable: new DurableCalls(watched.fs) })
  t.ok(watched.synced.has(join(node.revision(7), 'a')), 'an installation syncs what it keeps')
})

await t.test('install refuses a differing revision that may be in use, and names three differences', async (t) => {
  for (const [names, shown] of [
    ['a0 a1 a2', 'lacks a0, lacks a1, lacks a2'],
    ['a0 a1 a2 a3', 'lacks a0, lacks a1, lacks a2, …'],
    // The comparison passes over another installer's leftover staging, and nothing else.
    ['staging/a', 'lacks staging, lacks staging/a'],
  ] as const) {
    const files = Object.fromEntries(names.split(' ').map((name) => [name, '']))
    const { node, plan, settings } = await scene(t, files)
    mkdirSync(node.revision(7))
    node.makeManifest(podText({ labels: { revision: '7' }, annotations: { dir: node.revision(7) } }))
    const syncs: string[] = []
    const { fs } = intercepted((call) => {
      if (/^sync/.test(call)) syncs.push(call)
    })
    const looking = { ...settings, durable: new DurableCalls(fs) }
    await t.rejects(install(plan, looking), { name: 'StaticPodError' }, names)
    t.same(syncs, [], 'what is left alone costs no sync')
    const { message } = (await install(plan, settings).catch((error: unknown) => error)) as Error
    t.ok(message.includes(`exists and differs (${shown}), and `), message)
  }
})

await t.test('a failed publication of manifests names at most three of the written directories', async (t) => {
  for (const [count, named] of [
    [1, /; already written: \S+\/c0; the same command goes on from there/],
    [4, /; already written: \S+\/c0, \S+\/c1, \S+\/c2 and 1 more; the same command goes on from there/],
  ] as const) {
    const { node, plan, settings } = await scene(t)
    const several = Array.from({ length: count }, (_, index) => lasting(node, `c${index}`, '1'))
    const held = await settings.durable.lock(node.lock, 0, undefined)
    const alone = { ...plan, directory: undefined, revision: undefined, lasting: several }
    const { message } = (await install(alone, settings).catch((error: unknown) => error)) as Error
    t.match(message, named)
    const again = (await install(alone, settings).catch((error: unknown) => error)) as Error
    t.notMatch(again.message, /already written/, 'the second time nothing is')
    const other = { ...alone, lasting: [...several.slice(1), lasting(node, 'c0', '2')] }
    const { message: replaced } = (await install(other, settings).catch((error: unknown) => error)) as Error
    t.match(replaced, /; already written: \S+\/c0; the same command goes on from there/, 'nor what is as it was')
    await held.release()
  }
})

/** Makes the leftovers of a killed installation of revision 3, and of a killed prune. */
function leaveBehind(node: NodeDisk): { record: string; staged: string } {
  const record = namesFor(revisionName(pod, 3)).record(1)
  const staged = namesFor('', revisionFamily(pod)).staging('0123456789abcdef')
  writeFileSync(join(node.resources, record), 'torn')
  mkdirSync(join(node.resources, staged))
  writeFileSync(join(node.resources, staged, 'tls.key'), 'key')
  return { record, staged }
}

await t.test('each installation removes what killed commands left, in every case of its own publication', async (t) => {
  const { node, plan, settings, own } = await scene(t)
  for (const step of ['it publishes its revision', 'its revision is there already']) {
    const { record, staged } = leaveBehind(node)
    await install(plan, settings)
    t.notOk(own().includes(record), step)
    t.notOk(own().includes(staged), step)
  }
  const { record, staged } = leaveBehind(node)
  await install({ ...plan, directory: undefined, revision: undefined }, settings)
  t.ok(own().includes(record) && own().includes(staged), 'one without a revision looks at none')
})

await t.test('install reports a leftover that it cannot remove, removes the rest, and succeeds', async (t) => {
  const { node, plan, settings, warnings, own } = await scene(t)
  await install(plan, settings)
  const { record, staged } = leaveBehind(node)
  const { fs } = intercepted((call, args) => {
    if (call === 'removeFile' && args.includes(record)) throw failure('EPERM', call)
  })
  await install(plan, { ...settings, durable: new DurableCalls(fs) })
  t.match(warnings, [{ leftover: record, error: /EPERM/ }])
  t.equal(warnings.length, 1)
  t.ok(own().includes(record))
  t.notOk(own().includes(staged))
})

await t.test('install removes leftovers before it asks the API server once more', async (t) => {
  const { node, plan, settings, own } = await scene(t)
  await install({ ...plan, lasting: [lasting(node, 'serving', '1', '9')] }, settings)
  const { record } = leaveBehind(node)
  const reread = (): Promise<undefined> => Promise.reject(new Error('the API server is gone'))
  const older = { ...plan, lasting: [lasting(node, 'serving', '1', '5')], reread }
  await t.rejects(install(older, settings), { message: 'the API server is gone' })
  t.notOk(own().includes(record))
})

await t.test('a passed deadline lets install write nothing; after the directories, no manifest', async (t) => {
  const { node, plan, settings } = await scene(t)
  await t.rejects(install(plan, { ...settings, signal: AbortSignal.abort() }), { name: 'AbortError' })
  t.same(readdirSync(node.resources), [], 'not even a lock')
  const controller = new AbortController()
  const { fs } = intercepted((call) => {
    if (existsSync(node.revision(7)) && call === 'close') return
    if (existsSync(node.revision(7))) controller.abort()
  })
  const late = install(plan, { ...settings, durable: new DurableCalls(fs), signal: controller.signal })
  await t.rejects(late, { message: /already written: \S+web-pod-7; the same command goes on from there/ })
  t.equal(readFileSync(join(node.revision(7), 'a'), 'utf8'), 'a')
  t.same(readdirSync(node.manifests), [])
  t.notOk(existsSync(node.lock), 'the lock of the manifests is not taken')
})

await t.test('a deadline that passes under the lock lets install stage nothing', async (t) => {
  const { plan, settings, own } = await scene(t)
  const controller = new AbortController()
  // Asked for when a lock is to be had: the pod's own first, and under that those of the directories.
  const timeLeft = (): number => {
    if (own().length > 0) controller.abort()
    return 0
  }
  const calls: string[] = []
  const { fs } = intercepted((call) => {
    if (controller.signal.aborted) calls.push(call)
  })
  const late = install(plan, { ...settings, timeLeft, durable: new DurableCalls(fs), signal: controller.signal })
  await t.rejects(late, { name: 'AbortError' })
  t.same(calls, [])
  t.equal(own().length, 1, 'the lock')
})

await t.test("install syncs a killed prune's renames before it removes the renamed files", async (t) => {
  const { node, plan, settings } = await scene(t)
  await install(plan, settings)
  leaveBehind(node)
  const did: string[] = []
  const { fs } = intercepted((call) => {
    const step = /^(sync|remove)/.exec(call)?.[0] ?? ''
    if (step !== '' && did.at(-1) !== step) did.push(step)
  })
  await install(plan, { ...settings, durable: new DurableCalls(fs) })
  t.same(did, ['sync', 'remove'])
})

await t.test('install removes staging with its own publication, at no further sync', async (t) => {
  const syncs: number[] = []
  for (const isLeft of [false, true]) {
    const { node, plan, settings, own } = await scene(t)
    const staged = namesFor('', revisionFamily(pod)).staging('0123456789abcdef')
    if (isLeft) mkdirSync(join(node.resources, staged))
    let count = 0
    const { fs } = intercepted((call) => {
      if (call === 'sync') count += 1
    })
    await install(plan, { ...settings, durable: new DurableCalls(fs) })
    t.notOk(own().includes(staged))
    syncs.push(count)
  }
  t.equal(syncs[1], syncs[0])
})

await t.test('install keeps a whole revision without a look for its users', async (t) => {
  const { node, plan, settings, warnings } = await scene(t)
  await install(plan, settings)
  node.makeManifest('{', 'other.yaml')
  const { directories } = await install(plan, settings)
  t.same(directories, [{ path: node.revision(7), outcome: 'unchanged' }])
  t.same(warnings, [])
})
