/** A fallback beside an unwritable resource directory: on real file systems, each on a separate loop device. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { codeOf } from '../../../src/errors.js'
import { silent, type Log } from '../../../src/log.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { monitor, type MonitorRequest } from '../../../src/static-pods/monitor/monitor.js'
import type { Probe } from '../../../src/static-pods/ready/readiness.js'
import { until } from '../../until.js'
import { run } from '../command.js'
import { operationLockName } from '../../../src/static-pods/names.js'
import { openDirectoryIn, strangerMakes, strangersKinds } from '../../durable/stranger.js'
import { installed, link, live } from './monitored-node.js'
import { NodeDisk, podText } from '../pods.js'

const skip = process.getuid?.() !== 0 && 'it needs root (mount, chattr)'

const sh = (program: string, ...args: string[]): void => void execFileSync(program, args, { stdio: 'pipe' })

/** A node whose resource directory is a separate file system, with revisions 5 and 6, and 7 live. */
function onOwnDisk(t: Test): NodeDisk {
  const node = new NodeDisk(t)
  const image = join(node.root, 'image')
  writeFileSync(image, '')
  truncateSync(image, 8 * 1024 * 1024)
  sh('mkfs.ext4', '-q', '-F', '-m', '0', '-N', '64', image)
  mkdirSync(node.resources)
  sh('mount', '-o', 'loop', image, node.resources)
  t.teardown(() => sh('umount', node.resources))
  for (const revision of [5, 6, 7]) node.makeRevision(revision)
  install(node)
  return node
}

function install(node: NodeDisk): void {
  node.makeManifest(podText({ labels: { revision: '7' } }))
  node.makeManifest(podText({ name: 'monitor' }), 'web-startup-monitor-pod.yaml')
}

/** Makes files, or one file larger, until the kernel says that there is no space. */
function fill(step: (count: number) => void): void {
  for (let count = 0; ; count++) {
    try {
      step(count)
    } catch (error) {
      if (codeOf(error) === 'ENOSPC') return
      throw error
    }
  }
}

function fillInodes(node: NodeDisk): void {
  fill((count) => writeFileSync(join(node.resources, `other-${count}`), ''))
}

function fillBlocks(node: NodeDisk): void {
  for (const size of [65_536, 4096, 1024]) {
    fill((count) => writeFileSync(join(node.resources, 'other-large'), Buffer.alloc(size, count), { flag: 'a' }))
  }
}

interface Unwritable {
  readonly what: string
  readonly code: RegExp
  readonly make: (t: Test, node: NodeDisk) => void
}

const unwritable: readonly Unwritable[] = [
  {
    what: 'read-only',
    code: /^EROFS$/,
    make: (_, node) => sh('mount', '-o', 'remount,ro', node.resources),
  },
  {
    what: 'immutable',
    code: /^E(PERM|ACCES)$/,
    make: (t, node) => {
      sh('chattr', '+i', node.resources)
      t.teardown(() => sh('chattr', '-i', node.resources))
    },
  },
  { what: 'out of inodes', code: /^ENOSPC$/, make: (_, node) => fillInodes(node) },
  { what: 'out of blocks', code: /^ENOSPC$/, make: (_, node) => fillBlocks(node) },
]

interface Warning {
  readonly path?: string
  readonly code?: string
  readonly message: string
}

interface Life {
  readonly signal?: AbortSignal
  /** Called when the monitor asks for the pod. */
  readonly asked?: () => void
  readonly durable?: DurableCalls
}

/** A monitor that is killed once it has asked for the first time: its mark is there by then. */
async function lives(node: NodeDisk): Promise<void> {
  const stop = new AbortController()
  const life = fallsBack(node, { timeout: 600_000, signal: stop.signal, asked: () => stop.abort(new Error('killed')) })
  await life.catch(() => undefined)
  const marks = readdirSync(node.resources).filter((name) => name.endsWith('.watch'))
  if (marks.length !== 1) throw new Error('it has left no mark')
}

/** The outcome and the warnings of a monitor of revision 7 that is never ready. */
async function fallsBack(
  node: NodeDisk,
  {
    signal = new AbortController().signal,
    asked = () => {},
    durable = new DurableCalls(),
    ...more
  }: Partial<MonitorRequest> & Life = {},
) {
  const probe: Probe = {
    name: 'probe',
    ask: () => {
      asked()
      return Promise.resolve({ state: 'not-ready', message: 'not yet' })
    },
  }
  const warnings: Warning[] = []
  const warn = (fields: object, message?: string) => void warnings.push({ ...fields, message: message ?? '' })
  const log: Log = { ...silent, warn }
  const request: MonitorRequest = {
    target: 'web',
    resourceDirectory: node.resources,
    manifestDirectory: node.manifests,
    manifestLock: node.lock,
    revision: 7,
    timeout: 0,
    probes: [probe],
    keepOwnManifest: false,
    ...more,
  }
  const outcome = await monitor(request, { durable, log, signal, timing: { interval: 5 } })
  return { outcome, warnings }
}

/** Seconds since boot at which the mark says that the watch began. */
function sinceOf(node: NodeDisk): number {
  const name = readdirSync(node.resources).find((entry) => entry.endsWith('.watch')) ?? 'no mark'
  return (JSON.parse(readFileSync(join(node.resources, name), 'utf8')) as { since: number }).since
}

const visible = (node: NodeDisk) => readdirSync(node.manifests).filter((name) => !name.startsWith('.'))

for (const { what, code, make } of unwritable) {
  await t.test(`${what}: monitor makes the newest older revision live all the same`, { skip }, async (t) => {
    const node = onOwnDisk(t)
    make(t, node)
    const { outcome, warnings } = await fallsBack(node)
    t.match(outcome, { outcome: 'fell-back', revision: 7, to: 6 })
    t.equal(live(node).metadata.labels.revision, '6')
    t.same(visible(node), ['web-pod.yaml'], 'its own manifest is gone')
    const linked = warnings.find(({ path }) => path === link(node))
    t.match(linked, { code, message: /does not lead to revision 6/ })
    t.match(linked?.message, new RegExp(linked?.code ?? 'no code'))
    t.match((await fallsBack(node)).outcome, { outcome: 'fell-back', to: 6 }, 'the next run knows that it fell back')
    t.equal(live(node).metadata.labels.revision, '6')
  })

  await t.test(
    `${what}, with an old link, lock and mark: monitor makes the last known good revision live`,
    { skip },
    async (t) => {
      const node = onOwnDisk(t)
      symlinkSync(join(node.revision(5), 'web-pod.yaml'), link(node))
      await lives(node)
      const lock = join(node.resources, operationLockName('web-pod'))
      writeFileSync(lock, '')
      make(t, node)
      const { outcome } = await fallsBack(node)
      t.match(outcome, { outcome: 'fell-back', to: 5 })
      t.equal(live(node).metadata.labels.revision, '5')
      t.equal(readlinkSync(link(node)), join(node.revision(5), 'web-pod.yaml'))
    },
  )
}

await t.test("monitor falls back where the installers' lock is unwritable, too, and says so", { skip }, async (t) => {
  const node = onOwnDisk(t)
  const manifestLock = join(node.resources, 'installer.lock')
  sh('mount', '-o', 'remount,ro', node.resources)
  const { outcome, warnings } = await fallsBack(node, { manifestLock })
  t.match(outcome, { outcome: 'fell-back', to: 6 })
  t.match(
    warnings.filter(({ path }) => path === manifestLock),
    [{ code: 'EROFS', message: /installer\.lock.*EROFS/ }],
    'once',
  )
})

/** The file system of one lock answers with an error. */
class LocklessDisk extends DurableCalls {
  constructor(
    readonly locked: string,
    readonly code: string,
  ) {
    super()
  }

  override async lock(...asked: Parameters<DurableCalls['lock']>): ReturnType<DurableCalls['lock']> {
    const [path] = asked
    if (path === this.locked) throw new DurableWriteError('no lock', { code: this.code, syscall: 'openat', path })
    return super.lock(...asked)
  }
}

for (const code of ['EACCES', 'ENOSPC', 'EDQUOT', 'EIO', 'EUCLEAN']) {
  await t.test(`monitor falls back where ${code} keeps it from the installers' lock`, async (t) => {
    const node = installed(t)
    const manifestLock = join(node.root, 'installer.lock')
    const { outcome } = await fallsBack(node, { manifestLock, durable: new LocklessDisk(manifestLock, code) })
    t.match(outcome, { outcome: 'fell-back', to: 6 })
  })
}

for (const kind of strangersKinds) {
  await t.test(
    `monitor falls back where another user's ${kind} is in the place of the installers' lock`,
    { skip },
    async (t) => {
      const node = installed(t)
      const locks = openDirectoryIn(node.root, 'locks')
      await strangerMakes(t, locks, 'installer.lock', kind)
      const manifestLock = join(locks, 'installer.lock')
      const { outcome, warnings } = await fallsBack(node, { manifestLock })
      t.match(outcome, { outcome: 'fell-back', to: 6 })
      const told = { code: 'EPERM', message: /works without the lock .*, but of user 65534; / }
      t.match(
        warnings.filter(({ path }) => path === manifestLock),
        [told],
        'once',
      )
    },
  )
}

await t.test('monitor waits through a read-only mount for a prune that holds the lock', { skip }, async (t) => {
  const node = onOwnDisk(t)
  const lock = join(node.resources, operationLockName('web-pod'))
  writeFileSync(lock, '')
  // As a container sees it, while programs of the host write there.
  sh('mount', '--bind', node.resources, node.resources)
  t.teardown(() => sh('umount', node.resources))
  const holder = spawn('flock', [lock, 'sh', '-c', 'echo held; exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  sh('mount', '-o', 'remount,bind,ro', node.resources)
  let looks = 0
  const asked = (): void => {
    looks += 1
    if (looks < 4) t.equal(live(node).metadata.labels.revision, '7', 'nothing is decided while the lock is held')
    if (looks === 4) holder.stdin.end()
  }
  t.match((await fallsBack(node, { asked })).outcome, { outcome: 'fell-back', to: 6 })
  t.ok(looks >= 4, `${looks} looks`)
})

await t.test(
  'a revision installed again gets its full time, though monitor could not remove the mark',
  { skip },
  async (t) => {
    const node = onOwnDisk(t)
    await lives(node)
    sh('mount', '-o', 'remount,ro', node.resources)
    t.match((await fallsBack(node)).outcome, { outcome: 'fell-back', to: 6 })
    t.ok(
      readdirSync(node.resources).some((name) => name.endsWith('.watch')),
      'the mark is still there',
    )
    rmSync(node.manifest())
    install(node)
    const stop = new AbortController()
    let asks = 0
    const asked = (): void => {
      if (++asks === 2) stop.abort(new Error('killed'))
    }
    // The old mark is older than this.
    const timeout = 1_000
    await until('the old mark is older than the time', () => uptime() - sinceOf(node) > timeout / 1000)
    const life = fallsBack(node, { timeout, signal: stop.signal, asked })
    await t.rejects(life, /killed/, 'the first look decides nothing')
    t.equal(live(node).metadata.labels.revision, '7')
  },
)

await t.test('monitor names each file that it could not write, with its errno', { skip }, async (t) => {
  const node = onOwnDisk(t)
  sh('mount', '-o', 'remount,ro', node.resources)
  const flags = ['monitor', '--revision=7', '--target-name=web', `--resource-dir=${node.resources}`]
  const more = [`--manifests-dir=${node.manifests}`, '--fallback-timeout-duration=1ms', '--ready-exec=exit 1']
  const ended = await run([...flags, ...more, '--log-format=json'])
  t.equal(ended.code, 1, ended.stderr)
  t.match(ended.stdout, /did not become ready: fell back to revision 6/)
  t.match(ended.stderr, new RegExp(`${link(node)}[^\n]*EROFS`))
  t.match(ended.stderr, /\.lock[^\n]*EROFS/)
  t.match(ended.stderr, /\.watch[^\n]*EROFS/)
})
