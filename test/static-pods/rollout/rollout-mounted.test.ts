/** A tree that a rollout takes out stays while a process mounts a part of it: real mounts, in mount namespaces of other processes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { DurableCalls } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { failing } from '../../durable/intercepted.js'
import { executableForOthers } from '../../project.js'
import { RolledNode, type Answer } from './rolled-node.js'

const ready: Answer = () => 'ready'
const never: Answer = () => 'not-ready'
const skip = process.getuid?.() !== 0 && 'it needs root'

const besideOf = (node: RolledNode): string => join(node.root, '.holdfast-rollout-pki')

/** A process that has mounted a path in a separate namespace, as a container does; it tells what it reads there. */
class Mounter {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(t: Test, source: string, at: string) {
    const script =
      'mount --bind "$1" "$2"; echo mounted; while read -r path; do echo "$(cat "$2$path" 2>/dev/null || echo gone)"; done'
    const args = ['--mount', '--propagation', 'private', 'sh', '-euc', script, 'sh', source, at]
    this.#child = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    if (!this.#child.stdout) throw new Error('unreachable')
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
    t.teardown(() => this.end())
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  async mounted(): Promise<void> {
    if ((await this.#lines.next()).value !== 'mounted') throw new Error('it has not mounted anything')
  }

  async reads(path: string): Promise<unknown> {
    this.#child.stdin?.write(`${path}\n`)
    return (await this.#lines.next()).value
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await closed
  }
}

/** It has mounted a part of pki from here on. */
async function mounter(t: Test, node: RolledNode, part: string): Promise<Mounter> {
  const source = join(node.pki, part)
  const at = join(node.root, 'container', part.replace('/', '-'))
  mkdirSync(dirname(at), { recursive: true })
  if (statSync(source).isDirectory()) mkdirSync(at, { recursive: true })
  else writeFileSync(at, '')
  const found = new Mounter(t, source, at)
  await found.mounted()
  return found
}

for (const [part, path] of [
  ['', '/etcd/ca.crt'],
  ['etcd', '/ca.crt'],
  ['ca.crt', ''],
] as const) {
  await t.test(`the old directory stays while a process mounts pki/${part}`, { skip }, async (t) => {
    const node = new RolledNode(t)
    const pod = await mounter(t, node, part)
    t.equal(await pod.reads(path), 'old')
    const outcome = await node.rollout(await node.request({ tree: true }), ready)
    const stays = new RegExp(
      `${besideOf(node)} stays, which was .*/pki before: process ${pod.pid} \\(sh\\) has it as a mount .*; restart what uses it, ` +
        'then holdfast rollout --resume, .*hostPID: true',
    )
    t.match(outcome, { outcome: 'ready', kept: [stays] })
    t.equal(node.tree(), 'new')
    t.equal(await pod.reads(path), 'old', 'it reads what it has mounted')
    t.match(await node.resume(never), { outcome: 'nothing-to-resume', kept: [stays] })
    t.equal(await pod.reads(path), 'old')
    await pod.end()
    t.match(await node.resume(never), { outcome: 'nothing-to-resume', kept: undefined })
    t.strictSame([node.tree(), node.left()], ['new', []])
  })
}

await t.test('a rollout taken back keeps the new directory while a new pod still mounts it', { skip }, async (t) => {
  const node = new RolledNode(t)
  const request = await node.request({ tree: true })
  const pods: Mounter[] = []
  const openProbes = () => {
    const ask = async () => {
      // The rollout asks the probe before the exchange, too.
      if (pods.length === 0 && node.tree() === 'new') pods.push(await mounter(t, node, ''))
      return { state: 'not-ready', message: 'no' } as const
    }
    return Promise.resolve([{ name: 'probe', identifiesPod: true as const, ask }])
  }
  const outcome = await node.rollout(request, never, { openProbes })
  t.match(outcome, { outcome: 'taken-back', kept: [/stays, .* has it as a mount/] })
  const [pod] = pods
  t.equal(await pod?.reads('/ca.crt'), 'new')
  t.strictSame([node.tree(), node.versions()], ['old', { web: '1' }])
  await t.rejects(node.rollout(request, ready), /an earlier rollout is not over: .* stays, .*; nothing was changed/)
  t.equal(await pod?.reads('/sa.key'), 'new')
  await pod?.end()
  const again = await node.rollout(request, ready)
  t.strictSame([again.outcome, again.kept], ['ready', undefined])
  t.strictSame([node.tree(), node.left()], ['new', []])
})

await t.test('rollouts remember a kept directory, even if they do not need its place', { skip }, async (t) => {
  const node = new RolledNode(t)
  const pod = await mounter(t, node, '')
  const request = await node.request({ tree: true })
  t.match(await node.rollout(request, ready), { outcome: 'ready', kept: [/stays/] })
  t.match(await node.rollout(request, never), { outcome: 'unchanged', kept: [/stays/] })
  for (const [answer, outcome] of [
    [never, 'taken-back'],
    [ready, 'ready'],
  ] as const) {
    writeFileSync(node.live(), node.text('web', 1))
    t.match(await node.rollout(await node.request(), answer), { outcome, kept: [/stays/] })
  }
  t.equal(await pod.reads('/ca.crt'), 'old')
  await pod.end()
  t.match(await node.resume(never), { outcome: 'nothing-to-resume', kept: undefined })
  t.strictSame(node.left(), [])
})

await t.test('resume removes a tree that was only staged, whether or not it sees all processes', async (t) => {
  const node = new RolledNode(t)
  class Unseeing extends NodeFileSystem {
    override userOf(): Promise<string> {
      return Promise.resolve('only the processes of this PID namespace are seen')
    }
  }
  class KilledOnceStaged extends DurableCalls {
    override async publishDirectories(...args: Parameters<DurableCalls['publishDirectories']>): Promise<never> {
      await super.publishDirectories(...args)
      throw new Error('killed')
    }
  }
  const request = await node.request({ tree: true })
  await t.rejects(node.rollout(request, ready, { durable: new KilledOnceStaged() }), /^killed$/)
  t.ok(existsSync(besideOf(node)))
  const resumed = await node.resume(never, { durable: new DurableCalls(new Unseeing()) })
  t.match(resumed, { outcome: 'taken-back', message: /before it changed anything/ })
  t.strictSame([resumed.kept, node.left()], [undefined, []])
})

await t.test('an unreadable process counts as a user of the old directory', async (t) => {
  const node = new RolledNode(t)
  const { fs } = failing('userOf', 'EMFILE', 'open')
  const outcome = await node.rollout(await node.request({ tree: true }), ready, { fs })
  t.match(outcome, { outcome: 'ready', kept: [/stays, .*: it cannot be looked at: .*EMFILE; restart/] })
  t.match(await node.resume(never), { outcome: 'nothing-to-resume' })
  t.strictSame(node.left(), [])
})

/** A rollout by the program itself, where it does not see the other processes of the machine. */
async function unseeing(node: RolledNode, prefix: readonly string[], command = process.execPath) {
  const args = [
    'rollout',
    node.source('web', 2),
    '--pod-manifest-dir',
    node.manifests,
    '--ready-exec',
    'true',
    '--timeout',
    '2s',
  ]
  const tree = ['--resources', node.staged(), '--resource-dir', node.pki]
  const [program = '', ...rest] = [...prefix, command, executableForOthers(node.root), ...args, ...tree]
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text }
}

await t.test(
  'the old directory stays where other processes are invisible, and the run says so',
  { skip },
  async (t) => {
    const hidden =
      'mount -t proc -o hidepid=invisible proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
    for (const [what, prefix, message] of [
      [
        'no hostPID',
        ['unshare', '--mount', '--pid', '--fork', '--mount-proc'],
        'only the processes of this PID namespace are seen',
      ],
      [
        'hidepid',
        ['unshare', '--mount', 'sh', '-euc', hidden, 'sh'],
        '/proc hides the processes of other users (hidepid)',
      ],
      ['no rights', ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'], 'may not be looked at ('],
    ] as const) {
      await t.test(what, async (t) => {
        const node = new RolledNode(t, ['web'], what === 'no hostPID' ? undefined : mkdtempSync('/var/tmp/h-'))
        if (what !== 'no hostPID') {
          t.teardown(() => rmSync(dirname(node.root), { recursive: true }))
          node.staged()
          node.source('web', 2)
          for (const path of [
            '.',
            'manifests',
            'pki',
            'pki/etcd',
            'pki/ca.crt',
            'pki/etcd/ca.crt',
            'manifests/web.yaml',
            'pki.new',
            'pki.new/ca.crt',
            'pki.new/sa.key',
            'web-new.yaml',
          ])
            chownSync(join(node.root, path), 65534, 65534)
          chmodSync(dirname(node.root), 0o755)
        }
        const { code, text } = await unseeing(node, prefix)
        t.equal(code, 0, text)
        t.match(text, `${besideOf(node)} stays, which was ${node.pki} before: `)
        t.match(text, message)
        t.match(text, /^ready: web\.yaml$/m)
        t.equal(readFileSync(join(besideOf(node), 'etcd', 'ca.crt'), 'utf8'), 'old')
        t.equal(node.tree(), 'new')
      })
    }
  },
)
