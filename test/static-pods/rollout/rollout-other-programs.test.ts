/** Other programs change the files that a rollout works with: none of theirs goes, and the live directory never. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DurableCalls } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { silent } from '../../../src/log.js'
import { resume } from '../../../src/static-pods/rollout/rollout.js'
import { readManifests } from '../../../src/static-pods/rollout/rollout-plan.js'
import { intercepted } from '../../durable/intercepted.js'
import { contents, podText } from '../pods.js'
import { RolledNode, seeing, type Answer } from './rolled-node.js'

const ready: Answer = () => 'ready'
const never: Answer = () => 'not-ready'

const besideOf = (node: RolledNode) => join(node.root, '.holdfast-rollout-pki')

/** The content of the `.foreign` names. */
function foreign(node: RolledNode): unknown[] {
  const names = readdirSync(node.root).filter((name) => name.endsWith('.foreign'))
  return names.map((name) => contents(join(node.root, name)))
}

/** A rollout that was stopped once its tree was staged, or live, as it is found by the next run. */
async function stopped(node: RolledNode): Promise<void> {
  const stop = new AbortController()
  const answer: Answer = () => {
    stop.abort(new Error('SIGTERM'))
    return 'not-ready'
  }
  await node.rollout(await node.request({ tree: true }), answer, { signal: stop.signal }).catch(() => undefined)
}

await t.test('the way back keeps the new directory live where another program tidied the old one away', async (t) => {
  const node = new RolledNode(t)
  await stopped(node)
  rmSync(besideOf(node), { recursive: true })
  t.match(await node.resume(never), { outcome: 'taken-back', message: /removed or replaced .*pki stays new/ })
  t.equal(node.tree(), 'new')
  t.same(node.versions(), { web: '1' })
  t.match(await node.resume(never), { outcome: 'nothing-to-resume' })
})

await t.test(
  "a rollout neither exchanges in nor removes another program's entry in the old directory's place",
  async (t) => {
    const node = new RolledNode(t)
    await stopped(node)
    renameSync(besideOf(node), join(node.root, 'moved'))
    mkdirSync(besideOf(node))
    writeFileSync(join(besideOf(node), 'theirs'), 'theirs')
    t.match(await node.resume(never), { outcome: 'taken-back', message: /pki stays new/ })
    t.equal(node.tree(), 'new')
    t.equal(readFileSync(join(besideOf(node), 'theirs'), 'utf8'), 'theirs')
  },
)

await t.test('a rollout keeps the live directory where another program tidied the staged one away', async (t) => {
  const node = new RolledNode(t)
  const openProbes = (_settings: unknown, _files: unknown, isTrial: boolean) => {
    if (isTrial) return Promise.resolve([])
    rmSync(besideOf(node), { recursive: true })
    return Promise.reject(new Error('stopped'))
  }
  await t.rejects(node.rollout(await node.request({ tree: true }), ready, { openProbes }), /stopped/)
  t.match(await node.resume(ready), { outcome: 'taken-back', message: /removed or replaced .*was to become/ })
  t.equal(node.tree(), 'old')
  t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
})

await t.test('a rollout keeps files that come into a going directory under another name', async (t) => {
  const node = new RolledNode(t)
  const writes: Answer = () => {
    writeFileSync(join(besideOf(node), 'late'), 'by a pod')
    return 'ready'
  }
  t.match(await node.rollout(await node.request({ tree: true }), writes), { outcome: 'ready' })
  t.same(foreign(node), [{ 'ca.crt': 'old', 'etcd/ca.crt': 'old', late: 'by a pod' }])
  const second = new RolledNode(t)
  const changes: Answer = () => {
    writeFileSync(join(second.pki, 'late'), 'by a person')
    return 'not-ready'
  }
  t.match(await second.rollout(await second.request({ tree: true }), changes), { outcome: 'taken-back' })
  t.same(foreign(second), [{ 'ca.crt': 'new', 'sa.key': 'new', late: 'by a person' }])
  t.equal(second.tree(), 'old')
})

await t.test('the same request again restarts the pods once the directory has drifted', async (t) => {
  const node = new RolledNode(t)
  t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
  const before = readFileSync(node.live(), 'utf8')
  writeFileSync(join(node.pki, 'ca.crt'), 'edited')
  t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
  t.not(readFileSync(node.live(), 'utf8'), before)
})

await t.test('a rollout gives a pod with a uid another one, and names itself in it all the same', async (t) => {
  const node = new RolledNode(t)
  const uidOf = () => (JSON.parse(readFileSync(node.live(), 'utf8')) as { metadata: { uid?: string } }).metadata.uid
  writeFileSync(node.live(), podText({ name: 'web', uid: 'one' }))
  const request = async () =>
    node.request({ manifests: await readManifests([node.live()]), tree: true, fallback: false })
  t.match(await node.rollout(await request(), never), { outcome: 'not-ready' })
  t.match(uidOf(), /^[0-9a-f-]{36}$/)
  t.match(await node.rollout(await request(), ready), { outcome: 'ready' }, 'it is the same rollout')
})

await t.test('a probe that tells pods does not count while it cannot tell', async (t) => {
  const node = new RolledNode(t)
  let asked = 0
  const url = { name: 'url', ask: () => Promise.resolve({ state: 'ready' } as const) }
  const kubelet = {
    name: 'kubelet',
    identifiesPod: true,
    ask: () => {
      asked += 1
      return Promise.resolve(
        asked > 5 ? ({ state: 'ready' } as const) : ({ state: 'server-error', message: 'HTTP 429' } as const),
      )
    },
  } as const
  const means = { openProbes: () => Promise.resolve([url, kubelet]), timing: { interval: 1, handover: 60_000 } }
  t.match(await node.rollout(await node.request({ timeout: 600_000 }), ready, means), { outcome: 'ready' })
  t.equal(asked, 8, 'every probe has to say so, three times')
})

await t.test('no other rollout begins while pods may read the old directory; --take-back is a way out', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const first = await node.request({ tree: true, fallback: false })
  t.match(await node.rollout(first, never), { outcome: 'not-ready', manifests: ['etcd.yaml'] })
  const other = await node.request({ pods: ['api'] })
  await t.rejects(node.rollout(other, never), /api\.yaml may still read the old one.*--resume --take-back/)
  t.equal(contents(besideOf(node))['ca.crt'], 'old', 'what they mount stays')
  const openProbes = () => Promise.reject(new Error('its authority is gone'))
  const means = {
    durable: new DurableCalls(seeing(new NodeFileSystem())),
    log: silent,
    signal: new AbortController().signal,
    openProbes,
  }
  const back = await resume(node.manifests, means, { takeBack: true })
  t.match(back, {
    outcome: 'taken-back',
    manifests: ['etcd.yaml'],
    message: '--take-back',
    old: 'nobody waited for the old pods: its authority is gone',
  })
  t.same([node.versions(), node.tree(), node.left()], [{ etcd: '1', api: '1' }, 'old', []])
  await t.rejects(resume(join(node.root, 'typo'), means), /--pod-manifest-dir: .*typo does not exist/)
  t.notOk(existsSync(join(node.root, 'typo')))
})

await t.test('--no-fallback also holds where another program replaces a manifest', async (t) => {
  const node = new RolledNode(t)
  const answer: Answer = () => {
    writeFileSync(node.live(), podText({ name: 'web' }))
    return 'not-ready'
  }
  const request = await node.request({ tree: true, fallback: false, timeout: 60_000 })
  t.match(await node.rollout(request, answer), { outcome: 'not-ready', message: /another program has replaced/ })
  t.equal(node.tree(), 'new')
})

await t.test('a rollout goes back on a full disk that does not take its state', async (t) => {
  const node = new RolledNode(t)
  let failed = 0
  const { fs } = intercepted((call) => {
    if (call !== 'write' || readFileSync(join(node.pki, 'ca.crt'), 'utf8') !== 'new') return
    failed += 1
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })
  })
  const request = await node.request({ tree: true })
  t.match(await node.rollout(request, ready, { fs }), { outcome: 'taken-back', message: /ENOSPC|full/ })
  t.ok(failed >= 2, 'the step and the way back')
  t.same([node.versions(), node.tree(), node.left()], [{ web: '1' }, 'old', []])
})

/** Stops, as a kill does, once the new directory is staged, and before that is written down. */
class KilledOnceStaged extends DurableCalls {
  override async publishDirectories(...args: Parameters<DurableCalls['publishDirectories']>): Promise<never> {
    await super.publishDirectories(...args)
    throw new Error('killed')
  }
}

await t.test('resume removes the rest of a staged tree that no state names, after a killed removal', async (t) => {
  const node = new RolledNode(t)
  await t.rejects(
    node.rollout(await node.request({ tree: true }), ready, { durable: new KilledOnceStaged() }),
    /^killed$/,
  )
  let removed = 0
  const { fs } = intercepted((call, [, name]) => {
    if (call === 'removeFile' && /^(ca\.crt|sa\.key)$/.test(String(name)) && removed++ > 0)
      throw new Error('killed again')
  })
  await t.rejects(node.resume(never, { durable: new DurableCalls(fs) }), /killed again/)
  t.equal(Object.keys(contents(besideOf(node))).length, 1)
  t.match(await node.resume(never), { outcome: 'taken-back' })
  t.same([foreign(node), node.left()], [[], []])
})

await t.test('resume keeps such a tree under another name once another program has put more there', async (t) => {
  const node = new RolledNode(t)
  await t.rejects(
    node.rollout(await node.request({ tree: true }), ready, { durable: new KilledOnceStaged() }),
    /^killed$/,
  )
  writeFileSync(join(besideOf(node), 'late'), 'theirs')
  await node.resume(never)
  t.same(foreign(node), [{ 'ca.crt': 'new', late: 'theirs', 'sa.key': 'new' }])
})

await t.test(
  "resume keeps another program's directory where the rollout was killed before it staged anything",
  async (t) => {
    const node = new RolledNode(t)
    class Killed extends DurableCalls {
      override publishDirectories(): Promise<never> {
        return Promise.reject(new Error('killed'))
      }
    }
    await t.rejects(node.rollout(await node.request({ tree: true }), ready, { durable: new Killed() }), /^killed$/)
    mkdirSync(besideOf(node))
    writeFileSync(join(besideOf(node), 'theirs'), 'theirs')
    await node.resume(never)
    t.same(foreign(node), [{ theirs: 'theirs' }])
  },
)

await t.test("a rollout does not replace another program's directory that comes while it stages", async (t) => {
  const node = new RolledNode(t)
  class Raced extends DurableCalls {
    override publishDirectories(...args: Parameters<DurableCalls['publishDirectories']>) {
      mkdirSync(besideOf(node))
      writeFileSync(join(besideOf(node), 'theirs'), 'theirs')
      return super.publishDirectories(...args)
    }
  }
  const raced = node.rollout(await node.request({ tree: true }), ready, { durable: new Raced() })
  await t.rejects(raced, /was not published by holdfast/)
  t.same(contents(besideOf(node)), { theirs: 'theirs' })
  t.same([node.versions(), node.tree()], [{ web: '1' }, 'old'])
})

await t.test(
  'a rollout keeps a staged tree with a mount in it, and its state',
  { skip: process.getuid?.() !== 0 && 'it needs root' },
  async (t) => {
    const node = new RolledNode(t)
    const request = await node.request({ tree: true })
    await t.rejects(node.rollout(request, ready, { durable: new KilledOnceStaged() }), /^killed$/)
    const mounted = join(besideOf(node), 'ca.crt')
    execFileSync('mount', ['--bind', join(node.pki, 'ca.crt'), mounted])
    t.teardown(() => execFileSync('umount', [mounted]))
    await t.rejects(node.resume(never), /ca\.crt: EXDEV/)
    t.same(contents(besideOf(node)), { 'ca.crt': 'old', 'sa.key': 'new' })
    t.same([foreign(node), node.tree()], [[], 'old'])
  },
)
