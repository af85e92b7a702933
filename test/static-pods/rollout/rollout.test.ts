import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseManifest, type Manifest } from '../../../src/static-pods/pod/manifest.js'
import type { Probe } from '../../../src/static-pods/ready/readiness.js'
import { usualReadyFor } from '../../../src/static-pods/ready/watch.js'
import { largestFile } from '../../../src/static-pods/node-files.js'
import { readManifests } from '../../../src/static-pods/rollout/rollout-plan.js'
import { uptime } from '../passing-time.js'
import { modeOf, podText } from '../pods.js'
import { noSettings, RolledNode, type Answer } from './rolled-node.js'

const ready: Answer = () => 'ready'
const never: Answer = () => 'not-ready'

await t.test('a rollout keeps ready pods, and changes nothing in a second run', async (t) => {
  const node = new RolledNode(t)
  const request = await node.request()
  let asked = 0
  t.match(
    await node.rollout(request, () => {
      asked += 1
      return 'ready'
    }),
    { outcome: 'ready', manifests: ['web.yaml'] },
  )
  t.equal(asked, 3, 'three times in a row')
  t.same(node.versions(), { web: '2' })
  t.equal(modeOf(node.live()), '600')
  t.same(
    readdirSync(node.manifests).filter((name) => !name.startsWith('.')),
    ['web.yaml'],
    'found by its pod',
  )
  const { ino } = statSync(node.live())
  const second = await node.rollout(request, never)
  t.same([second.outcome, second.manifests], ['unchanged', []])
  t.equal(statSync(node.live()).ino, ino)
  const again = { ...request, manifests: await readManifests([node.live()]) }
  t.match(await node.rollout(again, never), { outcome: 'unchanged' }, 'also by the live manifest itself')
  t.match(await node.resume(never), { outcome: 'nothing-to-resume' })
  const source = node.source('web', 2)
  writeFileSync(source, readFileSync(source, 'utf8').replace('"labels":{', '"labels":{"empty":"",'))
  const labelled = { ...request, manifests: await readManifests([source]) }
  t.match(await node.rollout(labelled, ready), { outcome: 'ready', manifests: ['web.yaml'] }, 'an empty label is one')
})

await t.test('a rollout puts an unready manifest back, byte for byte, with its mode', async (t) => {
  const node = new RolledNode(t)
  t.match(await node.rollout(await node.request(), never), {
    outcome: 'taken-back',
    manifests: ['web.yaml'],
    message: 'web.yaml: probe: web says no',
  })
  t.same(node.versions(), { web: '1' })
  t.equal(modeOf(node.live()), '640')
  t.same(node.left(), [])
})

await t.test(
  'a rollout changes one pod after the other; the first unready one takes all back, and the next stay untouched',
  async (t) => {
    const node = new RolledNode(t, ['etcd', 'api', 'scheduler'])
    const seen: string[] = []
    const answer: Answer = (pod) => {
      if (seen.at(-1) !== pod) seen.push(pod)
      return pod === 'api' ? 'not-ready' : 'ready'
    }
    const { ino } = statSync(node.live('scheduler'))
    t.match(await node.rollout(await node.request({ tree: true }), answer), {
      outcome: 'taken-back',
      manifests: ['etcd.yaml', 'api.yaml'],
    })
    t.same(seen, ['etcd', 'api'])
    t.same(node.versions(), { etcd: '1', api: '1', scheduler: '1' })
    t.equal(statSync(node.live('scheduler')).ino, ino)
    t.equal(node.tree(), 'old')
    t.same(node.left(), [])
  },
)

await t.test(
  'a rollout changes the directory with its pods, and keeps the old one for them until the last is ready',
  async (t) => {
    const node = new RolledNode(t, ['etcd', 'api'])
    const { ino } = statSync(node.pki)
    const mounted = openSync(node.pki, 'r')
    t.teardown(() => closeSync(mounted))
    const through = () => readFileSync(`/proc/self/fd/${mounted}/etcd/ca.crt`, 'utf8')
    const answer: Answer = (pod) => {
      t.equal(node.tree(), 'new', `${pod} reads the new one`)
      t.equal(through(), 'old', 'who still mounts the old one reads it')
      return pod === 'etcd' ? 'ready' : 'not-ready'
    }
    t.match(await node.rollout(await node.request({ tree: true }), answer), { outcome: 'taken-back' })
    t.equal(statSync(node.pki).ino, ino, 'the very directory came back')
    t.equal(node.tree(), 'old')
    t.match(await node.rollout(await node.request({ tree: true }), ready), { outcome: 'ready' })
    t.equal(node.tree(), 'new')
    t.equal(modeOf(join(node.pki, 'sa.key')), '600')
    t.throws(through, { code: 'ENOENT' }, 'and goes once all are ready')
    t.same(node.left(), [])
  },
)

await t.test('a rollout of the same manifests with a new directory restarts every pod that reads it', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const manifests = await readManifests([node.live('etcd'), node.live('api')])
  const before = readFileSync(node.live('api'), 'utf8')
  t.match(await node.rollout(await node.request({ manifests }), never), { outcome: 'unchanged' })
  t.match(await node.rollout(await node.request({ manifests, tree: true }), ready), {
    outcome: 'ready',
    manifests: ['etcd.yaml', 'api.yaml'],
  })
  t.not(readFileSync(node.live('api'), 'utf8'), before)
})

await t.test('a signal leaves a rollout as it is; another rollout ends the interrupted one first', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const stop = new AbortController()
  const answer: Answer = () => {
    stop.abort(new Error('SIGTERM'))
    return 'not-ready'
  }
  const first = node.rollout(await node.request({ tree: true, timeout: 60_000 }), answer, { signal: stop.signal })
  await t.rejects(first, /SIGTERM.*holdfast rollout --resume/)
  t.same(node.versions(), { etcd: '2', api: '1' })
  t.equal(node.tree(), 'new')
  const other = await node.request({ manifests: await readManifests([node.source('api', 2)]) })
  const seen: string[] = []
  t.match(
    await node.rollout(other, (pod) => {
      seen.push(pod)
      return 'ready'
    }),
    { outcome: 'unchanged' },
  )
  t.same([...new Set(seen)], ['etcd', 'api'], 'the first one was watched to its end')
  t.same(node.versions(), { etcd: '2', api: '2' })
  t.same(node.left(), [])
})

await t.test('--no-fallback keeps unready pods, and resume watches them again', async (t) => {
  const node = new RolledNode(t)
  const request = await node.request({ tree: true, fallback: false })
  t.match(await node.rollout(request, never), { outcome: 'not-ready', message: /web says no/ })
  t.same(node.versions(), { web: '2' })
  t.equal(node.tree(), 'new')
  t.match(await node.resume(never), { outcome: 'not-ready' })
  t.match(await node.resume(ready), { outcome: 'ready' })
  t.same(node.left(), [])
})

await t.test("a rollout leaves another program's changes alone", async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const theirs = podText({ name: 'api' })
  const answer: Answer = (pod) => {
    if (pod === 'api') {
      writeFileSync(node.live('api'), theirs)
      renameSync(node.pki, `${node.pki}.moved`)
      mkdirSync(node.pki)
      writeFileSync(join(node.pki, 'theirs'), 'theirs')
    }
    return 'ready'
  }
  t.match(await node.rollout(await node.request({ tree: true }), answer), {
    outcome: 'taken-back',
    message: /another program has replaced .*api\.yaml/,
  })
  t.equal(node.versions().etcd, '1', 'what is ours goes back')
  t.equal(readFileSync(node.live('api'), 'utf8'), theirs)
  t.same(node.tree(), { theirs: 'theirs' })
  const kept = readFileSync(join(node.root, '.holdfast-rollout-pki', 'ca.crt'), 'utf8')
  t.equal(kept, 'old', 'the old content is kept')
  await t.rejects(
    node.rollout(await node.request({ tree: true }), ready),
    /is what an earlier rollout took out.*move it away/,
  )
})

await t.test('a rollout refuses an older revision, but not on the way back', async (t) => {
  const node = new RolledNode(t)
  const revision = (number: number) => podText({ labels: { revision: String(number) } })
  const request = async (number: number, allowOlder = false) => {
    const path = join(node.root, 'web.yaml')
    writeFileSync(path, revision(number))
    return node.request({ manifests: await readManifests([path]), allowOlder })
  }
  writeFileSync(node.live(), revision(7))
  await t.rejects(node.rollout(await request(6), ready), /is of revision 7, and revision 6 is older.*--allow-older/)
  t.match(await node.rollout(await request(8), never), { outcome: 'taken-back' })
  t.equal(readFileSync(node.live(), 'utf8'), revision(7))
  t.match(await node.rollout(await request(6, true), ready), { outcome: 'ready' })
})

await t.test('a URL alone may hear the old pod: an answer counts after a failed one, or after a while', async (t) => {
  const node = new RolledNode(t)
  const answers = ['ready', 'ready', 'ready', 'ready', 'not-ready'] as const
  let asked = 0
  const probe = {
    name: 'url',
    ask: () => {
      const state = answers[asked++] ?? 'ready'
      return Promise.resolve(state === 'ready' ? ({ state } as const) : { state, message: 'down' })
    },
  }
  const means = { openProbes: () => Promise.resolve([probe]), timing: { interval: 1, handover: 60_000 } }
  t.match(await node.rollout(await node.request({ timeout: 600_000 }), ready, means), { outcome: 'ready' })
  t.equal(asked, 8)
})

await t.test('a rollout takes back a pod that answers for a while, and then dies for good', async (t) => {
  const node = new RolledNode(t)
  let asked = 0
  const answer: Answer = () => (++asked <= 5 ? 'ready' : 'not-ready')
  const readyFor = (milliseconds: number) =>
    node.request({ timeout: 200, readiness: { ...noSettings, readyFor: milliseconds } })
  t.match(await node.rollout(await readyFor(60_000), answer), {
    outcome: 'taken-back',
    message: /^web\.yaml: (probe: web says no|it has answered for )/,
  })
  t.same(node.versions(), { web: '1' })
  t.match(await node.rollout(await readyFor(60_000), ready), {
    outcome: 'taken-back',
    message: /^web\.yaml: it has answered for \d+\.\d s, and --ready-for is 60 s$/,
  })
  const began = uptime()
  t.match(await node.rollout({ ...(await readyFor(50)), timeout: 600_000 }, ready), { outcome: 'ready' })
  t.ok(uptime() - began >= 50)
})

await t.test('rollout takes the annotations of a hook out of the text, and leaves the rest of it', async (t) => {
  const node = new RolledNode(t)
  const lines = ['# web', 'apiVersion: v1', 'kind: Pod', 'metadata:', '  annotations:', '    a: b # why']
  const rest = [
    '  name: web',
    '  namespace: kube-system',
    'spec: {containers: [{name: web, image: "web:2"}]} # new',
    '',
  ]
  const path = join(node.root, 'annotated.yaml')
  writeFileSync(path, [...lines, '    holdfast.dev/content-0123456789abcdef: hmac-sha256:1', ...rest].join('\n'))
  const request = await node.request({ manifests: await readManifests([path]) })
  t.match(await node.rollout(request, () => 'ready'), { outcome: 'ready' })
  const written = readFileSync(node.live(), 'utf8').split('\n')
  t.strictSame(
    written.filter((line) => !line.includes('"holdfast.dev/rollout"')),
    [...lines, ...rest],
  )
  t.equal(written.length, lines.length + rest.length + 1)
})

await t.test('a rollout that was taken back says whether the old pod answers again', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  const answer: Answer = (pod) => (pod === 'api' ? 'not-ready' : 'ready')
  const back = await node.rollout(await node.request(), answer)
  t.match(back, { outcome: 'taken-back', old: 'etcd.yaml answers again; api.yaml answers again' })
  const dead = { name: 'probe', ask: () => Promise.resolve({ state: 'not-ready', message: 'dead' } as const) }
  const openProbes = (_: unknown, _files: unknown, isTrial: boolean) => Promise.resolve(isTrial ? [] : [dead])
  const still = await node.rollout(await node.request({ pods: ['api'] }), never, { openProbes })
  t.match(still, { outcome: 'taken-back', old: 'api.yaml does not answer yet: probe: dead' })
})

await t.test('one time counts for all old pods together', async (t) => {
  const node = new RolledNode(t, ['etcd', 'api'])
  let asked = 0
  const probe: Probe = {
    name: 'probe',
    identifiesPod: true,
    ask: ({ name, annotations }) => {
      const isNew = 'holdfast.dev/rollout' in annotations
      if (!isNew && name === 'api') asked += 1
      return Promise.resolve(isNew && name === 'etcd' ? { state: 'ready' } : { state: 'not-ready', message: 'dead' })
    },
  }
  const openProbes = (_: unknown, _files: unknown, isTrial: boolean) => Promise.resolve(isTrial ? [] : [probe])
  const timing = { interval: 1, handover: 0 }
  const back = await node.rollout(await node.request({ timeout: 300 }), never, { openProbes, timing })
  t.match(back.old, /^etcd\.yaml does not answer yet: .*; api\.yaml does not answer yet: /)
  t.equal(asked, 1, 'the first one took the time: one look is left for the next')
})

await t.test('a rollout of a manifest with a long comment goes on, too', async (t) => {
  const node = new RolledNode(t)
  // Its state holds the old manifest and the new one, and is larger than any other file that is read.
  const comment = `# ${'x'.repeat(largestFile / 2)}\n`
  writeFileSync(node.live('web'), comment + node.text('web', 1))
  const path = node.source('web', 2)
  writeFileSync(path, comment + readFileSync(path, 'utf8'))
  const request = await node.request({ manifests: await readManifests([path]), fallback: false })
  t.match(await node.rollout(request, never), { outcome: 'not-ready' })
  t.match(await node.resume(ready), { outcome: 'ready' })
})

await t.test('a rollout waits no longer for a pod that a kubelet has listed, and then refuses', async (t) => {
  const node = new RolledNode(t)
  const rolled = async (states: readonly ('absent' | 'not-ready')[], timeout: number) => {
    let asked = 0
    const kubelet = {
      name: 'kubelet',
      identifiesPod: true,
      ask: ({ annotations }: Manifest) => {
        if (!('holdfast.dev/rollout' in annotations)) return Promise.resolve({ state: 'ready' } as const)
        const state = states[Math.min(asked++, states.length - 1)] ?? 'absent'
        return Promise.resolve({ state, message: 'it does not run the pod' })
      },
    } as const
    const openProbes = (_: unknown, _files: unknown, isTrial: boolean) => Promise.resolve(isTrial ? [] : [kubelet])
    const timing = { interval: 1, handover: 0, absence: 20 }
    return node.rollout(await node.request({ timeout }), never, { openProbes, timing })
  }
  const refused = /kubelet: it does not run the pod for 0\.02 s: it has refused the manifest/
  t.match(await rolled(['not-ready', 'absent'], 600_000), { outcome: 'taken-back', message: refused })
  t.same(node.versions(), { web: '1' })
  const { message } = await rolled(['absent'], 100)
  t.notMatch(message, refused, 'a kubelet that has never listed it may be about to')
})

await t.test('a container that starts again between two looks has to outlive its last life', async (t) => {
  const node = new RolledNode(t)
  let asked = 0
  const rolled = async (lives: () => { restarts: number; lived: number }, readyFor: number) => {
    asked = 0
    const probe = { name: 'p', ask: () => Promise.resolve({ state: 'ready', ...lives() } as const) }
    const openProbes = (_: unknown, _files: unknown, isTrial: boolean) => Promise.resolve(isTrial ? [] : [probe])
    const readiness = { ...noSettings, readyFor }
    return node.rollout(await node.request({ timeout: 300, readiness }), never, { openProbes })
  }
  const loops = await rolled(() => ({ restarts: asked++, lived: 0 }), 50)
  t.match(loops, { outcome: 'taken-back', message: /started again \d+ times/ })
  const killed = await rolled(() => ({ restarts: 1, lived: 14_000 }), 0)
  t.match(killed, { outcome: 'taken-back', message: /started again once, the last time after 14 s$/ })
  t.match(await rolled(() => ({ restarts: 1, lived: 20 }), 0), { outcome: 'ready' })
})

await t.test('without --ready-for, a pod is watched until its liveness probes would have killed it', async (t) => {
  const manifest = async (livenessProbe?: object) =>
    parseManifest(Buffer.from(podText({}, { containers: [{ name: 'web', image: 'x', livenessProbe }] })), 'web.yaml')
  const tcpSocket = { port: 80 }
  const at14 = { tcpSocket, initialDelaySeconds: 5, periodSeconds: 3, failureThreshold: 3 }
  t.equal(usualReadyFor(await manifest(), 300_000), 10_000)
  t.equal(usualReadyFor(await manifest(at14), 300_000), 19_000)
  t.equal(usualReadyFor(await manifest({ tcpSocket }), 300_000), 35_000, "Kubernetes' own defaults")
  t.equal(usualReadyFor(await manifest({ ...at14, failureThreshold: 8, periodSeconds: 10 }), 300_000), 10_000)
  t.equal(usualReadyFor(await manifest({ tcpSocket }), 40_000), 20_000)
})

await t.test('a rollout that goes back tells what is missing on the node, and the last words', async (t) => {
  const node = new RolledNode(t)
  const path = join(node.root, 'web-new.yaml')
  const volumes = [{ name: 'data', hostPath: { path: '/none/here', type: 'Directory' } }]
  writeFileSync(path, podText({}, { volumes }))
  const probe = {
    name: 'kubelet',
    ask: () => Promise.resolve({ state: 'not-ready', message: 'not Ready' } as const),
    lastWords: () => Promise.resolve('the log of container web ends: no such key'),
  }
  const openProbes = (_: unknown, _files: unknown, isTrial: boolean) => Promise.resolve(isTrial ? [] : [probe])
  const request = await node.request({ manifests: await readManifests([path]) })
  t.match(await node.rollout(request, never, { openProbes }), {
    outcome: 'taken-back',
    message:
      /^web\.yaml: kubelet: not Ready; spec\.volumes\[0\].*: \/none\/here does not exist; the log of container web ends: no such key$/,
  })
})
