/** `beforePublish` under the program, on objects in files: refused content stays out, is checked once, and holds up no other directory. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Cause } from '../../src/durable/types.js'
import { stateOf } from '../processes.js'
import { until } from '../until.js'
import { type Ended, Node } from './holdfast.js'

const isRoot = process.getuid?.() === 0

interface Status {
  readonly directories: {
    readonly path: string
    readonly conditions: { type: string; status: string; reason: string; message: string }[]
  }[]
}

/** A node whose directory `checked` takes no content in which `v` is `bad`, and `other`, which takes all. */
function site(t: Test, more: object = {}) {
  const node = new Node(t, [])
  // The first argument is the new content; each look at it is counted, and waits where `wait` says so.
  const script = `read pid rest < /proc/self/stat; echo $pid > ${node.path('pid')}; echo >> ${node.path('looks')}; while [ -e ${node.path('wait')} ]; do sleep 0.02; done; ! grep -q bad "$1/v"`
  const directories = [
    {
      path: 'disk/checked',
      contents: [{ configMap: 'checked', items: [{ key: 'v', path: 'v' }] }],
      beforePublish: [{ exec: ['sh', '-c', script, 'sh', '{dir}'] }],
    },
    { path: 'disk/other', contents: [{ configMap: 'other' }] },
  ]
  node.configure(directories, more)
  const put = (name: string, v: string) => node.put('ConfigMap', name, { v })
  put('checked', 'good')
  put('other', '1')
  const looks = () => (node.read('looks') ?? '').length
  const condition = (type: string) => {
    const status = JSON.parse(node.read('state/status.json') ?? '{"directories":[]}') as Status
    return status.directories.find(({ path }) => path.endsWith('checked'))?.conditions.find((one) => one.type === type)
  }
  return { node, put, looks, condition, wait: node.path('wait') }
}

await t.test('beforePublish keeps refused content out, checks it once, and holds up no other directory', async (t) => {
  const { node, put, looks, condition, wait } = site(t)
  writeFileSync(wait, '')
  const agent = node.agentProcess()
  await until('it looks', () => looks() === 1)
  await until('meanwhile another directory is published', () => node.read('disk/other/v') === '1')
  put('other', '2')
  await until('and again', () => node.read('disk/other/v') === '2')
  t.notOk(existsSync(node.path('disk/checked')))
  await agent.end('SIGKILL')
  const look = `/proc/${(node.read('pid') ?? '').trim()}`
  if (isRoot) await until('the command ends with a killed agent', () => ['Z', undefined].includes(stateOf(look)))
  rmSync(wait)
  const again = node.agent()
  await until('it is published', () => node.read('disk/checked/v') === 'good')

  put('checked', 'bad')
  const refused = await again.logged('ContentRejected')
  t.match(refused, {
    level: 'warn',
    published: false,
    msg: /disk\/checked: its new content is rejected \(directories\[0\]\.beforePublish\[0\]\): exec sh: exit code 1; its output is not shown; what is published stays; run the command/,
  })
  await until('status tells of it', () => condition('Published')?.reason === 'ContentRejected')
  t.equal(condition('Published')?.status, 'False')
  await until('it is not fresh', () => condition('Fresh')?.status === 'False')
  t.equal(node.read('disk/checked/v'), 'good')
  const seen = looks()
  node.put('ConfigMap', 'checked', { v: 'bad', 'not-published': '1' })
  await again.logged('ContentRejected', 2)
  t.equal(looks(), seen, 'another version of the same content is refused without another look')
  again.signal('SIGHUP')
  await again.logged('ContentRejected', 3)
  t.equal(looks(), seen + 1, 'an operator has it looked at again')
  put('checked', 'better')
  await until('what is good is published', () => node.read('disk/checked/v') === 'better')
  t.match(await again.get('/metrics'), { text: /holdfast_publishes_total\{[^}]*checked"[^}]*result="refused"\} 3/ })
  t.equal(await again.end('SIGTERM'), 0)
})

await t.test(
  'the agent checks refused content again at the drift interval, and repairs drift through the check',
  async (t) => {
    const { node, put, looks } = site(t, { driftInterval: '1s' })
    put('checked', 'bad')
    const agent = node.agent()
    await agent.logged('ContentRejected', 2)
    t.ok(looks() >= 2)
    put('checked', 'good')
    await agent.logged('Published', 2)
    const before = looks()
    writeFileSync(node.path('disk/checked/v'), 'edited')
    await agent.logged('DriftRepaired')
    t.equal(looks(), before + 1)
    t.equal(await agent.end('SIGTERM'), 0)
  },
)

await t.test('sync runs the check, too; a dry run does not', async (t) => {
  const { node, put, looks } = site(t)
  t.equal((await node.run('sync')).code, 0)
  t.equal(looks(), 1)
  t.equal((await node.run('sync')).code, 0)
  t.equal(looks(), 1, 'what is published already is not looked at')
  put('checked', 'bad')
  put('other', '2')
  t.match(await node.run('sync', '--dry-run'), { code: 0, stdout: /checked.*v/s })
  t.equal(looks(), 1)
  const { code, stdout } = await node.run('sync', '-o', 'json')
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { directories: [{ reason: 'ContentRejected' }, { outcome: 'replaced' }] })
  t.equal(node.read('disk/checked/v'), 'good')
  t.equal(node.read('disk/other/v'), '2')
})

/** A directory with a history, and the rejections of its check. */
interface Scene {
  readonly node: Node
  readonly path: string
  /** Publishes this, against the check's verdict. */
  readonly unchecked: (v: string) => Promise<void>
  readonly put: (v: string) => void
  readonly run: (command: string, ...args: string[]) => Promise<Ended>
}

/** Each cause for which a record says that content was published, and what would publish content that the check refuses for it. */
const causes = {
  published: async ({ put, unchecked, run }) => {
    await unchecked('good')
    put('bad')
    return run('sync')
  },
  driftRepaired: async ({ node, unchecked, run }) => {
    await unchecked('bad')
    writeFileSync(node.path('disk/checked/v'), 'edited')
    return run('sync')
  },
  rolledBack: async ({ path, unchecked, run }) => {
    await unchecked('bad')
    await unchecked('good')
    return run('rollback', path)
  },
  adopted: async ({ path, node, put, run }) => {
    mkdirSync(path, { recursive: true })
    writeFileSync(node.path('disk/checked/v'), 'old', { mode: 0o644 })
    put('bad')
    return run('adopt', path)
  },
} as const satisfies Record<Cause, (scene: Scene) => Promise<Ended>>

for (const [cause, publish] of Object.entries(causes)) {
  await t.test(`beforePublish refuses content in every kind of publication: ${cause}`, async (t) => {
    const { node, put } = site(t)
    const path = node.path('disk/checked')
    const directory = { path: 'disk/checked', history: 3, contents: [{ configMap: 'checked' }] }
    const beforePublish = [{ exec: ['sh', '-c', '! grep -q bad "$1/v"', 'sh', '{dir}'] }]
    const before = { v: node.read('disk/checked/v'), beside: [] as string[] }
    const ended = await publish({
      node,
      path,
      put: (v) => put('checked', v),
      unchecked: async (v) => {
        node.configure([directory])
        put('checked', v)
        t.match(await node.run('sync'), { code: 0 })
      },
      run: (command, ...args) => {
        node.configure([{ ...directory, beforePublish }])
        before.v = node.read('disk/checked/v')
        before.beside = readdirSync(node.path('disk'))
        return node.run(command, ...args)
      },
    })
    t.match(ended, { code: 1 })
    t.match(ended.stdout + ended.stderr, /its new content is rejected .*what is published stays/)
    t.equal(node.read('disk/checked/v'), before.v)
    t.strictSame(
      readdirSync(node.path('disk')).filter((name) => !name.endsWith('.lock')),
      before.beside.filter((name) => !name.endsWith('.lock')),
    )
  })
}

const skip = isRoot ? false : 'needs root'

await t.test(
  'without the right to a mount namespace, the check finds the new content at {dir} alone',
  { skip },
  async (t) => {
    const { node } = site(t)
    const script = `echo "$1" > ${node.path('dir')}; cat "$1/v" >> ${node.path('dir')}; [ ! -e ${node.path('disk/checked')} ]`
    const check = { exec: ['sh', '-c', script, 'sh', '{dir}'] }
    node.configure([{ path: 'disk/checked', contents: [{ configMap: 'checked' }], beforePublish: [check] }])
    const agent = node.agentProcess([], ['setpriv', '--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin'])
    await agent.logged('Published')
    const [directory, content] = (node.read('dir') ?? '').split('\n')
    t.match(directory, /\/disk\/\.holdfast-[^/]+$/)
    t.equal(content, 'good')
    t.equal(await agent.end('SIGTERM'), 0)
  },
)
