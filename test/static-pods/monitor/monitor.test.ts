import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { fallbackForRevision } from '../../../src/static-pods/monitor/last-known-good.js'
import { monitor, type MonitorRequest } from '../../../src/static-pods/monitor/monitor.js'
import type { Probe, ProbeResult } from '../../../src/static-pods/ready/readiness.js'
import type { NodeDisk } from '../pods.js'
import { modeOf, podText } from '../pods.js'
import { installed, link, live } from './monitored-node.js'

const { signal } = new AbortController()

const timing = { interval: 5 }

function requestOf(node: NodeDisk, answer: () => boolean, more: Partial<MonitorRequest> = {}): MonitorRequest {
  const probe: Probe = {
    name: 'probe',
    ask: () => Promise.resolve<ProbeResult>(answer() ? { state: 'ready' } : { state: 'not-ready', message: 'not yet' }),
  }
  return {
    target: 'web',
    resourceDirectory: node.resources,
    manifestDirectory: node.manifests,
    manifestLock: node.lock,
    revision: 7,
    timeout: 40,
    readyFor: 0,
    probes: [probe],
    keepOwnManifest: false,
    ...more,
  }
}

await t.test(
  'monitor records a revision that is ready three times in a row, and removes its own manifest',
  async (t) => {
    const node = installed(t)
    symlinkSync(join(node.revision(6), 'web-pod.yaml'), link(node))
    const answers = [false, true, true, false, true, true, true]
    let asked = 0
    const outcome = await monitor(
      requestOf(node, () => answers[asked++] ?? true, { timeout: 60_000 }),
      { durable: new DurableCalls(), log: silent, signal, timing },
    )
    t.same(outcome, { outcome: 'ready', revision: 7 })
    t.equal(asked, 7)
    t.equal(readlinkSync(link(node)), join(node.revision(7), 'web-pod.yaml'))
    t.same(
      readdirSync(node.manifests).filter((name) => !name.startsWith('.')),
      ['web-pod.yaml'],
    )
    t.equal(live(node).metadata.labels.revision, '7')
    t.same(
      readdirSync(node.resources).filter((name) => name.endsWith('.watch')),
      [],
    )
  },
)

await t.test('monitor falls back to a manifest whose comments, order and digits stay', async (t) => {
  const node = installed(t)
  const written = [
    'kind: Pod # what kubelet runs',
    'apiVersion: v1',
    'metadata:',
    '  labels: {revision: "6"}',
    '  name: web',
    'spec:',
    '  terminationGracePeriodSeconds: 9007199254740993',
    '  containers: [{name: web, image: "web:1"}]',
    '',
  ]
  writeFileSync(join(node.revision(6), 'web-pod.yaml'), written.join('\n'))
  await monitor(
    requestOf(node, () => false),
    { durable: new DurableCalls(), log: silent, signal, timing },
  )
  const lines = readFileSync(node.manifest(), 'utf8').split('\n')
  t.strictSame(
    lines.filter((line) => !/^ {2}"(?:annotations|uid)": /.test(line)),
    written,
  )
  t.equal(lines.length, written.length + 2)
})

await t.test(
  'monitor brings the last known good revision back where the new one is late, with annotations',
  async (t) => {
    const node = installed(t)
    symlinkSync(join(node.revision(5), 'web-pod.yaml'), link(node))
    const outcome = await monitor(
      requestOf(node, () => false),
      { durable: new DurableCalls(), log: silent, signal, timing },
    )
    t.match(outcome, { outcome: 'fell-back', revision: 7, to: 5, message: 'probe: not yet' })
    const { metadata } = live(node)
    t.equal(metadata.labels.revision, '5')
    t.match(metadata.uid, /^[0-9a-f-]{36}$/)
    t.match(metadata.annotations, {
      'startup-monitor.static-pods.openshift.io/fallback-for-revision': '7',
      'startup-monitor.static-pods.openshift.io/fallback-reason': 'NotReady',
      'startup-monitor.static-pods.openshift.io/fallback-message': 'probe: not yet',
    })
    t.equal(modeOf(node.manifest()), '600')
    t.same(
      readdirSync(node.manifests).filter((name) => !name.startsWith('.')),
      ['web-pod.yaml'],
    )
    // kubelet may start it once more before it sees that its manifest is gone.
    const again = await monitor(
      requestOf(node, () => false),
      { durable: new DurableCalls(), log: silent, signal, timing },
    )
    t.match(again, { outcome: 'fell-back', to: 5 })
  },
)

await t.test('monitor takes the newest older intact revision without an intact last known good one', async (t) => {
  const node = installed(t, [3, 4, 5, 6])
  rmSync(join(node.revision(6), 'web-pod.yaml'))
  writeFileSync(join(node.revision(5), 'web-pod.yaml'), '{"torn')
  symlinkSync(join(node.revision(6), 'web-pod.yaml'), link(node))
  const outcome = await monitor(
    requestOf(node, () => false),
    { durable: new DurableCalls(), log: silent, signal, timing },
  )
  t.match(outcome, { outcome: 'fell-back', to: 4 })
  t.equal(readlinkSync(link(node)), join(node.revision(4), 'web-pod.yaml'), 'it is the last known good one now')
})

await t.test('monitor falls back to no copy that kubelet would refuse', async (t) => {
  const node = installed(t)
  symlinkSync(join(node.revision(6), 'web-pod.yaml'), link(node))
  writeFileSync(
    join(node.revision(6), 'web-pod.yaml'),
    podText({ labels: { revision: '6' } }, { restartPolicy: 'always' }),
  )
  const outcome = await monitor(
    requestOf(node, () => false),
    { durable: new DurableCalls(), log: silent, signal, timing },
  )
  t.match(outcome, { outcome: 'fell-back', to: 5 })
})

await t.test('monitor leaves the pod, and its own manifest, where it can fall back to nothing', async (t) => {
  const node = installed(t, [])
  node.makeRevision(8)
  mkdirSync(node.revision(5))
  const before = readFileSync(node.manifest())
  const outcome = await monitor(
    requestOf(node, () => false),
    { durable: new DurableCalls(), log: silent, signal, timing },
  )
  t.match(outcome, { outcome: 'nothing-to-fall-back-to', revision: 7 })
  t.same(readFileSync(node.manifest()), before)
  t.throws(() => readlinkSync(link(node)), { code: 'ENOENT' })
  t.ok(readdirSync(node.manifests).includes('web-startup-monitor-pod.yaml'))
})

await t.test('monitor never undoes a manifest of another revision', async (t) => {
  const node = installed(t)
  node.makeManifest(podText({ labels: { revision: '8' } }))
  const outcome = await monitor(
    requestOf(node, () => false),
    { durable: new DurableCalls(), log: silent, signal, timing },
  )
  t.match(outcome, { outcome: 'not-installed', message: 'the manifest is of revision 8, not 7' })
  t.equal(live(node).metadata.labels.revision, '8')
})

/** A disk that says when the monitor has come back to the lock for the fifth time: four looks are over by then. */
class Looks extends DurableCalls {
  #tries = 0
  #reached: () => void = () => undefined
  readonly fifth = new Promise<void>((resolve) => (this.#reached = resolve))

  override lock(...args: Parameters<DurableCalls['lock']>): ReturnType<DurableCalls['lock']> {
    if (++this.#tries === 5) this.#reached()
    return super.lock(...args)
  }
}

await t.test('monitor decides nothing while an installer holds the lock', async (t) => {
  const node = installed(t)
  // Another process: callers of one process wait for each other beyond their time limits.
  const installer = spawn('flock', [node.lock, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => installer.kill('SIGKILL'))
  await once(installer.stdout, 'data')
  const looks = new Looks()
  let asked = 0
  const states: unknown[] = []
  const log: Log = { ...silent, info: (fields) => void states.push((fields as { state?: unknown }).state) }
  const watching = monitor(
    requestOf(node, () => ++asked > 0, { timeout: 1 }),
    { durable: looks, log, signal, timing },
  )
  await looks.fifth
  t.equal(asked, 0)
  t.matchOnly(states, [/^another process holds the lock /])
  t.equal(states.length, 1, 'said once')
  installer.stdin.end()
  t.match(await watching, { outcome: 'ready' })
})

await t.test('monitor falls back from a revision that answers for a while, and then dies for good', async (t) => {
  const node = installed(t)
  let asked = 0
  const outcome = await monitor(
    requestOf(node, () => ++asked <= 5, { timeout: 200, readyFor: 60_000 }),
    { durable: new DurableCalls(), log: silent, signal, timing },
  )
  t.match(outcome, { outcome: 'fell-back', to: 6, message: /^(probe: not yet|it has answered for )/ })
})

await t.test("monitor's time runs on when it is killed and started again", async (t) => {
  const node = installed(t)
  const request = requestOf(node, () => false, { timeout: 2_000 })
  // Each life is shorter than the time; on a slow machine a short one comes to nothing.
  for (let life = 100; ; life = Math.min(life + 100, 1_800)) {
    const stop = AbortSignal.timeout(life)
    const outcome = await monitor(request, { durable: new DurableCalls(), log: silent, signal: stop, timing }).catch(
      () => undefined,
    )
    if (outcome) {
      t.match(outcome, { outcome: 'fell-back', to: 6 })
      break
    }
  }
  t.equal(live(node).metadata.annotations?.[fallbackForRevision], '7')
})
