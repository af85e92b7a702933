/** deploy/seccomp/holdfast.json allows what holdfast does, and no call beyond: it runs under it here, as a container runtime enforces it. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { Node } from '../cli/holdfast.js'
import { systemCallNumbers } from '../native/system-call-numbers.js'
import { executable, project } from '../project.js'
import { until } from '../until.js'
import { startConfined } from './confined.js'
import { deploy } from './manifests.js'

interface Rule {
  readonly names: readonly string[]
  readonly action: string
  readonly args?: readonly object[]
}

const profile = JSON.parse(readFileSync(join(deploy, 'seccomp/holdfast.json'), 'utf8')) as {
  readonly defaultAction: string
  readonly syscalls: readonly Rule[]
}
const allowed = new Set(
  profile.syscalls.filter(({ action }) => action === 'SCMP_ACT_ALLOW').flatMap(({ names }) => names),
)

interface Allowed {
  readonly shown: readonly string[]
  readonly others: readonly string[]
}

const { allowedBy, nativeCalls, reasons, shownSince } = (await import(
  pathToFileURL(join(project, 'scripts/seccomp.mjs')).href
)) as {
  allowedBy: (profile: object) => Allowed
  nativeCalls: () => string[]
  reasons: (allowed: Allowed) => Map<string, string | undefined>
  shownSince: (allowed: Allowed) => string[]
}

await t.test('the profile allows each call that native/ makes', async (t) => {
  const calls = nativeCalls()
  for (const name of Object.keys(systemCallNumbers)) t.ok(calls.includes(name), name)
  t.ok(calls.length > 20, calls.join())
  t.same(
    calls.filter((name) => !allowed.has(name)),
    [],
    'npm run seccomp -- COMMAND adds them, and what COMMAND calls',
  )
})

await t.test('a trace has shown each call of the profile, or a reason stands for it', async (t) => {
  const found = allowedBy(profile)
  t.ok(found.shown.length > 100, `${found.shown.length} calls are traced, ${found.others.length} are not`)
  const without = [...reasons(found)].flatMap(([name, reason]) => (reason === undefined ? [name] : []))
  t.strictSame(without, [], 'have neither')
  t.strictSame(shownSince(found), [], 'stand in the tables, and a trace has shown them')
  const one = reasons({ ...found, others: [...found.others, 'vhangup'] })
  t.ok(one.has('vhangup') && one.get('vhangup') === undefined)
})

await t.test('the profile refuses what it does not name, and leads to no other rights', async (t) => {
  t.equal(profile.defaultAction, 'SCMP_ACT_ERRNO')
  for (const name of ['mount', 'unshare', 'setns', 'ptrace', 'bpf', 'io_uring_setup', 'keyctl', 'open_by_handle_at'])
    t.notOk(allowed.has(name), name)
  for (const name of ['clone', 'socket']) {
    const rules = profile.syscalls.filter(({ names }) => names.includes(name))
    t.ok(rules.length > 0 && rules.every(({ args }) => args?.length === 1), `${name} by its arguments`)
  }
})

const isRoot = process.getuid?.() === 0
const hasRunc = spawnSync('runc', ['--version']).status === 0
const skip = isRoot ? (hasRunc ? false : 'needs runc') : 'needs root'

/** A call beyond the profile ends the program, where the profile refuses it. libuv asks for io_uring, and does without it. */
const strict = {
  ...profile,
  defaultAction: 'SCMP_ACT_KILL_PROCESS',
  defaultErrnoRet: undefined,
  syscalls: [...profile.syscalls, { names: ['io_uring_setup'], action: 'SCMP_ACT_ERRNO' }],
}
const everything = { defaultAction: 'SCMP_ACT_ALLOW' }

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'demo' },
  spec: { containers: [{ name: 'web', image: 'registry.example/web:1' }] },
}

/** The exit code and the output. */
async function ended(child: ChildProcess): Promise<{ code: number | null; text: string }> {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text }
}

await t.test('a whole life of the agent under the profile makes no call beyond it', { skip }, async (t) => {
  const service = startService(t)
  const hooks = (node: Node): object[] => [
    { signal: { name: 'SIGUSR2', pidFile: node.path('service.pid') } },
    { exec: [process.execPath, '-e', `require('fs').appendFileSync('${node.path('ran')}', 'x')`] },
  ]
  const node = new Node(t, [])
  const directory = { path: node.path('disk/web'), contents: [{ secret: 'web' }] }
  node.configure([{ ...directory, afterPublish: hooks(node) }])
  mkdirSync(node.path('disk'))
  writeFileSync(node.path('service.pid'), String(service.pid), { mode: 0o644 })
  node.put('Secret', 'web', { key: 'one' })
  const confined = (...args: string[]): ChildProcess =>
    startConfined({ seccomp: strict, directory: node.root }, [process.execPath, executable, ...args])
  const run = (...args: string[]): Promise<{ code: number | null; text: string }> => ended(confined(...args))
  const config = ['--config', node.configuration]

  const check = await run('check', ...config, '--output=json')
  const { checks } = JSON.parse(check.text) as { checks: { check: string; status: string; found: string }[] }
  t.match(
    checks.find((one) => one.check === 'AIO'),
    { status: 'OK' },
    check.text,
  )
  const agent = confined('agent', ...config)
  t.teardown(() => agent.kill('SIGKILL'))
  const end = ended(agent)
  const publishes = (text: string): Promise<unknown> => {
    const published = until(`"${text}" is published`, () => node.read('disk/web/key') === text)
    return Promise.race([
      published,
      end.then((how) => Promise.reject(new Error(`it has ended: ${JSON.stringify(how)}`))),
    ])
  }
  // A publication before the last one's hooks began shares them.
  const hasRun = (times: number) => until(`hooks have run ${times} times`, () => node.read('ran')?.length === times)
  await publishes('one')
  await hasRun(1)
  node.put('Secret', 'web', { key: 'two' })
  await publishes('two')
  await hasRun(2)
  await until('the service has its signals', () => service.signals() > 0)
  agent.kill('SIGTERM')
  const { code, text } = await end
  t.equal(code, 0, text)
  t.notMatch(text, /EPERM|ENOSYS|Operation not permitted|pidfd_open/, 'nothing that it needs is refused')

  mkdirSync(node.path('content'))
  writeFileSync(node.path('content/file'), 'content')
  writeFileSync(node.path('web.yaml'), JSON.stringify(pod))
  mkdirSync(node.path('manifests'))
  const places = ['--resource-dir', node.path('revisions'), '--pod-manifest-dir', node.path('manifests')]
  for (const command of [
    ['verify', ...config],
    ['remove', directory.path, '--force'],
    ['replace', node.path('disk/by-hand'), '--from', node.path('content')],
    ['install', node.path('web.yaml'), ...places, '--resources', node.path('content'), '--revision', '1'],
  ]) {
    const { code, text } = await run(...command)
    t.equal(code, 0, `${command[0]}: ${text}`)
  }
  t.notOk(existsSync(directory.path))
  t.equal(node.read('disk/by-hand/file'), 'content')
})

await t.test('the kernel refuses calls that the profile does not name', { skip }, async (t) => {
  const node = new Node(t, [])
  // mount, unshare, ptrace, bpf, io_uring_setup, open_by_handle_at; and two that are named, whose arguments the kernel itself refuses.
  const numbers = {
    x64: { refused: [165, 272, 101, 321, 425, 304], named: [316, 206] },
    arm64: { refused: [40, 97, 117, 280, 425, 265], named: [276, 0] },
  }
  const { refused, named } = numbers[process.arch as keyof typeof numbers]
  const program = fileURLToPath(new URL('./refused-calls.js', import.meta.url))
  const args = [process.execPath, program, ...[...refused, ...named].map(String)]
  const { code, text } = await ended(startConfined({ seccomp: profile, directory: node.root }, args))
  t.equal(code, 0, text)
  const errors = text.trim().split('\n').map(Number)
  const { EPERM } = constants.errno
  t.same(
    errors.slice(0, refused.length),
    refused.map(() => EPERM),
  )
  t.equal(errors.length, refused.length + named.length)
  t.notOk(errors.slice(refused.length).includes(EPERM), errors.join())
  const unconfined = await ended(startConfined({ seccomp: everything, directory: node.root }, args))
  t.not(unconfined.text.trim().split('\n').map(Number)[2], EPERM, 'without it ptrace reaches the kernel')
})

/** A process that counts the signals that it gets. */
function startService(t: Test): { pid: number; signals: () => number } {
  const script = "process.on('SIGUSR2', () => process.stdout.write('x')); setInterval(() => {}, 60_000)"
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let signals = 0
  child.stdout.on('data', (bytes: Buffer) => (signals += bytes.length))
  return { pid: child.pid ?? 0, signals: () => signals }
}
