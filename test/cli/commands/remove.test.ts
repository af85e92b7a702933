/** remove and onDrop, from outside: what goes, what stays and why, and what a running agent does with a directory that leaves its file. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { main } from '../../../src/cli/main.js'
import { replaceDirectory } from '../../../src/durable/index.js'
import { seeingAll } from '../../seeing-all.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'
import { executable } from '../../project.js'
import { hurried, namedIn, tenMinutesPass } from '../absences.js'
import { ended, holdfast, Node, scratch } from '../holdfast.js'
import { runInProcess, testIo } from '../in-process.js'

const quiet = ['--log-level', 'error']

await t.test(
  'remove takes a published path with its record, and refuses a used, held or unpublished one with the reason',
  async (t) => {
    const root = scratch(t)
    const [from, target, file] = [join(root, 'from'), join(root, 'certs'), join(root, 'pod.yaml')]
    mkdirSync(from)
    writeFileSync(join(from, 'a'), '1')
    await holdfast(['replace', target, '--from', from, ...quiet])
    await holdfast(['write', file, ...quiet], { input: 'kind: Pod' })
    // Not all processes can be looked at wherever this runs.
    const remove = (...args: string[]) =>
      holdfast(['remove', ...args, '--force', '--state-directory', join(root, 'state')])

    t.match(await remove(join(root, 'none')), { code: 1, stderr: /has published nothing at .*none/ })
    t.match(await holdfast(['remove']), { code: 2 })
    t.match(await remove(target, '--wait', 'long'), { code: 2, stderr: /duration/ })
    await holdfast(['hold', target, '--reason', 'INC-9'])
    t.match(await remove(target), { code: 1, stderr: /is held since .*INC-9.*remove also take --release/s })
    await holdfast(['release', target])

    const user = spawn('sleep', ['600'], { cwd: target, stdio: 'ignore' })
    t.teardown(() => user.kill('SIGKILL'))
    const names = readdirSync(root)
    const refused = await remove(target, '-o', 'json')
    t.match(refused, { code: 1, stdout: new RegExp(`process ${user.pid} \\(sleep\\) has it as its working directory`) })
    t.match(JSON.parse(refused.stdout), { error: { reason: 'InUse', published: false, path: target } })
    await t.test('--wait looks again until its time is over', async (t) => {
      const time = new SimulatedTime(t)
      const { io, written } = testIo()
      const code = main(['remove', target, '--force', '--state-directory', join(root, 'state'), '--wait', '3s'], io)
      await until('it waits', () => written.stderr.includes('holdfast waits'))
      t.equal(await time.during(code), 1)
      t.match(written.stderr, /holdfast waits.*is in use/s)
    })
    t.same(readdirSync(root), names)
    const manifests = join(root, 'manifests')
    mkdirSync(manifests)
    const volumes = [{ name: 'certs', hostPath: { path: target } }]
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'web', image: 'web' }], volumes },
    }
    writeFileSync(join(manifests, 'web.json'), JSON.stringify(pod))
    user.kill('SIGKILL')
    await until('it has ended', () => user.signalCode !== null)
    t.match(await remove(target, '--pod-manifest-dir', manifests), { code: 1, stderr: /the static pod web mounts it/ })
    t.match(await remove(target, '--pod-manifest-dir', join(root, 'none')), { code: 0, stdout: `removed ${target}\n` })
    t.match(await remove(file, '-o', 'json'), { code: 0, stdout: /"removed": true/ })
    t.same(
      readdirSync(root).filter((name) => !name.endsWith('.lock')),
      ['from', 'manifests'],
    )
  },
)

await t.test("remove refuses an agent's target: by another path, and configured while the command waits", async (t) => {
  const root = scratch(t)
  const at = (name: string) => join(root, name)
  for (const name of ['run', 'manifests', 'state']) mkdirSync(at(name))
  symlinkSync('run', at('var'))
  const [target, second] = [at('var/certs'), at('second')]
  for (const path of [target, second]) await replaceDirectory(path, { files: { a: '1' } })
  const configure = (path: string): void => {
    const agent = { version: '', writtenAt: '', pid: 7 }
    const directory = { path, conditions: [], objects: [], pendingHooks: [] }
    writeFileSync(at('state/status.json'), JSON.stringify({ agent, directories: [directory] }))
  }
  const args = ['--force', '--state-directory', at('state'), '--pod-manifest-dir', at('manifests')]
  configure(at('run/certs'))
  const other = await runInProcess(['remove', target, ...args])
  t.match(other, {
    code: 1,
    stderr: `publishes ${target} as ${at('run/certs')}: remove it from its configuration first`,
  })

  const volumes = [{ name: 'certs', hostPath: { path: second } }]
  const spec = { containers: [{ name: 'web', image: 'web' }], volumes }
  writeFileSync(
    at('manifests/web.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec }),
  )
  const { io, written } = testIo()
  const waiting = main(['remove', second, ...args, '--wait', '1m'], io)
  await until('it waits', () => written.stderr.includes('holdfast waits'))
  configure(second)
  rmSync(at('manifests/web.json'))
  t.equal(await waiting, 1)
  t.match(written.stderr, `(process 7) publishes ${second}: remove it from its configuration first`)
  t.ok(existsSync(second))
})

const canMount = spawnSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs none /mnt']).status === 0

await t.test(
  "remove refuses an agent's possible target where the agent's state is damaged",
  { skip: !canMount && 'needs root to mount' },
  async (t) => {
    const target = join(scratch(t), 'certs')
    await replaceDirectory(target, { files: { a: '1' } })
    // The default state directory of an agent, which only this command sees.
    const state = 'mount -t tmpfs none /var/lib && mkdir /var/lib/holdfast && printf { > /var/lib/holdfast/status.json'
    const command = [
      'sh',
      '-c',
      `${state} && exec "$@"`,
      'sh',
      process.execPath,
      executable,
      'remove',
      target,
      '--force',
    ]
    const { code, stderr } = await ended(spawn('unshare', ['--mount', '--propagation', 'private', ...command]))
    t.equal(code, 1, stderr)
    t.match(
      stderr,
      /cannot tell whether an agent publishes \S+certs: \/var\/lib\/holdfast\/status.json is not a status file/,
    )
    t.ok(existsSync(join(target, 'a')))
  },
)

await t.test(
  'an agent waits ten minutes from its start before it drops a directory that left the configuration',
  async (t) => {
    const web = { path: 'disk/web', onDrop: 'remove', contents: [{ secret: 'web' }] }
    const other = { path: 'disk/other', contents: [{ secret: 'web' }] }
    const node = new Node(t, [web, other])
    node.put('Secret', 'web', { password: 'one' })
    const path = node.path('disk/web')
    const state = node.path('state')
    const agent = node.agent()
    await agent.logged('Published', 2)
    await until('its status names it', () => node.read('state/status.json')?.includes(path))
    t.match(await holdfast(['remove', path, '--force', '--state-directory', state]), {
      code: 1,
      stderr:
        /the agent that runs here \(process \d+\) publishes .*web: remove it from .*holdfast\.yaml first; holdfast left .* as it was/,
    })

    node.configure([other])
    agent.signal('SIGHUP')
    t.match(await agent.logged('DropPending'), {
      level: 'warn',
      directory: path,
      msg: /after 10 minutes, once nobody uses it/,
    })
    await until('so does its status', async () =>
      /disk\/web +Unknown +Unknown +DropPending/.test((await node.run('status')).stdout),
    )
    t.match(
      (await agent.get('/metrics')).text,
      new RegExp(`holdfast_directory_drop_pending\\{directory="${path}"\\} 1`),
    )
    t.equal(node.read('disk/web/password'), 'one')
    t.equal(await agent.end('SIGTERM'), 0)

    t.match(namedIn(state)[path], { onDrop: 'remove' })
    // Not every machine that runs this shows a target's users.
    const prefix = await seeingAll()
    const moved = { ...other, path: 'disk/moved', movedFrom: 'disk/other', movedFromKeep: '1s' }
    const known = prefix ? [moved] : [other]
    node.configure(known, { driftInterval: '1s' })
    const next = node.agentProcess([], prefix, node.configuration, hurried)
    await next.logged('DropPending')
    tenMinutesPass(next)
    if (prefix) {
      await next.logged('Dropped')
      t.notOk(existsSync(path))
      t.match(await next.logged('Relocated'), { directory: node.path('disk/other'), state: 'done' })
      t.notOk(existsSync(node.path('disk/other')))
      t.equal(node.read('disk/moved/password'), 'one')
      const left = readdirSync(node.path('disk')).filter((name) => !name.endsWith('.lock'))
      t.matchOnly(left.sort(), [/^\.holdfast-[0-9a-f]{16}\.\d+$/, 'moved'], 'with one record')
    } else {
      t.comment('the agent cannot look at all processes here: what it would remove stays')
      await until('it says why', () => next.log().some(({ msg }) => / may not be looked at|PID namespace/.test(msg)))
      t.ok(existsSync(path))
    }
    node.configure([web, ...known])
    next.signal('SIGHUP')
    await until('it is kept again', () => namedIn(state)[path]?.onDrop === 'remove')
    await until('it is there', () => node.read('disk/web/password') === 'one')
    await until('no removal is pending', async () => !/drop_pending\{/.test((await next.get('/metrics')).text))
  },
)

for (const by of ['reload', 'restart'] as const) {
  await t.test(
    `a directory whose Secret is gone leaves as its configuration said last: ${by}`,
    { skip: (await seeingAll()) === undefined && 'needs root to see all processes' },
    async (t) => {
      const prefix = await seeingAll()
      const web = { path: 'disk/web', contents: [{ secret: 'web' }] }
      const kept = { path: 'disk/kept', contents: [{ secret: 'web' }] }
      const other = { path: 'disk/other', contents: [{ secret: 'other' }] }
      const [remove, keep] = [{ onDrop: 'remove' }, { onDrop: 'keep' }]
      const node = new Node(t, [{ ...web, ...keep }, { ...kept, ...remove }, other])
      node.put('Secret', 'web', { key: '1' })
      node.put('Secret', 'other', { key: '1' })
      let agent = node.agentProcess([], prefix)
      await agent.logged('Published', 3)
      const inForce = () => agent.log().filter(({ msg }) => msg.endsWith('is in force')).length
      const take = async (directories: readonly object[]): Promise<void> => {
        node.configure(directories)
        if (by === 'restart') {
          t.equal(await agent.end('SIGTERM'), 0)
          agent = node.agentProcess([], prefix)
          await agent.address()
        } else {
          const before = inForce()
          agent.signal('SIGHUP')
          await until('the file is in force', () => inForce() > before)
        }
      }
      node.remove('web')
      await agent.logged('ObjectMissing', 2)
      await take([{ ...web, ...remove }, { ...kept, ...keep }, other])
      await take([other])
      t.match(await agent.logged('DropPending'), { directory: node.path('disk/web') })
      t.equal(await agent.end('SIGTERM'), 0)
      agent = node.agentProcess([], prefix, node.configuration, hurried)
      await agent.logged('DropPending')
      tenMinutesPass(agent)
      t.match(
        await until('it is told', () =>
          agent.log().find(({ msg }) => /any more(, and stays|.*has removed it)/.test(msg)),
        ),
        {
          reason: 'Dropped',
          directory: node.path('disk/web'),
        },
      )
      t.notOk(existsSync(node.path('disk/web')))
      t.equal(node.read('disk/kept/key'), '1')
      t.equal(await agent.end('SIGTERM'), 0)
    },
  )
}
