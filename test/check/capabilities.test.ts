/** Users and capabilities: the missing one is named, and what works without is not asked for. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { isRoot, Scene } from './scene.js'

const skip = !isRoot || spawnSync('setpriv', ['--version']).status !== 0 ? 'needs root and setpriv' : false

const thisProcess = 'this process'
const without = (...names: string[]): { under: string[] } => ({
  under: ['setpriv', `--bounding-set=${names.map((name) => `-${name}`).join(',')}`, '--inh-caps=-all'],
})
const as = (uid: number): { under: string[] } => ({
  under: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--bounding-set=-all', '--inh-caps=-all'],
})

const contents = [{ secret: 'serving-cert' }]

await t.test('check needs no capability without an owner', { skip }, async (t) => {
  const scene = new Scene(t)
  const checked = await scene.check(t, without('all'))
  t.match(checked.one('capabilities', thisProcess), {
    status: 'OK',
    found: 'this configuration needs none',
  })
  t.equal(checked.one('exchange').status, 'OK')
})

await t.test('check names each missing capability for another owner', { skip }, async (t) => {
  const scene = new Scene(t)
  scene.configure([{ path: scene.target, contents, owner: '1234:1234' }])
  t.same(
    (await scene.check(t)).all('capabilities', thisProcess).map(({ status, found }) => [status, found.split(' ')[0]]),
    [
      ['OK', 'CAP_CHOWN'],
      ['OK', 'CAP_DAC_OVERRIDE'],
      ['OK', 'CAP_FOWNER'],
    ],
  )
  for (const name of ['chown', 'dac_override', 'fowner']) {
    const capability = `CAP_${name.toUpperCase()}`
    const checked = await scene.check(t, without(name))
    const missing = checked.all('capabilities', thisProcess).filter(({ status }) => status === 'FAULT')
    t.match(
      missing,
      [
        {
          found: `${capability} is missing: ${scene.target} must belong to 1234:1234`,
          advice: new RegExp(`add: \\[${name.toUpperCase()}\\] in a pod`),
        },
      ],
      name,
    )
    t.equal(missing.length, 1)
  }
  // The capabilities that check calls enough do suffice; without CHOWN or FOWNER they do not.
  const drop = (...kept: string[]) => ({
    under: ['setpriv', `--bounding-set=-all,${kept.map((name) => `+${name}`).join(',')}`, '--inh-caps=-all'],
  })
  for (let round = 1; round <= 2; round++) {
    scene.put('serving-cert', { 'tls.crt': `${round}` })
    const { code, stdout } = await scene.run('sync', [], drop('chown', 'fowner', 'dac_override'))
    t.equal(code, 0, stdout)
  }
  scene.put('serving-cert', { 'tls.crt': 'more' })
  for (const kept of [
    ['fowner', 'dac_override'],
    ['chown', 'dac_override'],
    ['chown', 'fowner'],
  ]) {
    t.equal((await scene.run('sync', [], drop(...kept))).code, 1, `with ${kept.join(' and ')} alone`)
  }
})

const unshare = ['unshare', '--user', '--map-root-user']
const noNamespace = spawnSync('unshare', [...unshare.slice(1), 'true']).status === 0 ? skip : 'needs user namespaces'

await t.test(
  'check and sync name the owners that the user namespace does not map',
  { skip: noNamespace },
  async (t) => {
    const scene = new Scene(t)
    scene.configure([{ path: scene.target, contents, owner: '1234:1235' }])
    const checked = await scene.check(t, { under: unshare })
    t.match(checked.all('capabilities', thisProcess), [
      {
        status: 'FAULT',
        found: `${scene.target} must belong to 1234:1235; the user namespace of holdfast does not map user 1234 and group 1235`,
        advice: /uid_map/,
      },
    ])
    for (const publish of ['exchange', 'symlink']) {
      scene.configure([{ path: scene.target, contents, owner: '0:1235', publish }])
      const { code, stdout, stderr } = await scene.run('sync', [], { under: unshare })
      t.equal(code, 1)
      t.match(
        stdout + stderr,
        /does not map group 1235 \(fchown: EINVAL\); holdfast left .* as it was; map them/,
        publish,
      )
      t.same(
        readdirSync(scene.parent).filter((name) => !name.startsWith('.')),
        [],
      )
    }
    scene.configure([{ path: scene.target, contents }])
    mkdirSync(scene.target)
    chownSync(scene.target, 1234, 1234)
    t.match((await scene.check(t, { under: unshare })).one('capabilities', thisProcess), {
      status: 'FAULT',
      found: /currently belongs to user 65534; the user namespace of holdfast does not map user 65534$/,
    })
  },
)

await t.test('check needs no capability for one of our own groups', { skip }, async (t) => {
  const scene = new Scene(t)
  scene.configure([{ path: scene.target, contents, owner: '0:1234' }])
  const under = ['setpriv', '--groups=1234', '--bounding-set=-all', '--inh-caps=-all']
  t.match((await scene.check(t, { under })).one('capabilities', thisProcess), {
    status: 'OK',
    found: /needs none$/,
  })
  t.equal((await scene.run('sync', [], { under })).code, 0)
  const others = await scene.check(t, without('all'))
  t.match(others.one('capabilities', thisProcess), { status: 'FAULT', found: /^CAP_CHOWN is missing/ })
})

await t.test(
  "check needs CAP_DAC_OVERRIDE for another user's parent and another user's target",
  { skip },
  async (t) => {
    const scene = new Scene(t)
    chownSync(scene.parent, 1234, 1234)
    const checked = await scene.check(t, without('dac_override'))
    t.match(checked.one('exchange'), { status: 'FAULT', found: /EACCES/, advice: /CAP_DAC_OVERRIDE/ })
    t.match(checked.one('capabilities', thisProcess), {
      status: 'FAULT',
      found: /^CAP_DAC_OVERRIDE is missing: .* is in a directory whose mode does not let user 0 write$/,
    })
    chownSync(scene.parent, 0, 0)
    mkdirSync(scene.target)
    chownSync(scene.target, 1234, 1234)
    const found = (await scene.check(t, without('dac_override'))).one('capabilities', thisProcess)
    t.match(found, { status: 'FAULT', found: /currently belongs to user 1234$/ })
  },
)

await t.test('check passes for an ordinary user in a directory of that user', { skip }, async (t) => {
  const scene = new Scene(t)
  chmodSync(scene.root, 0o755)
  mkdirSync(scene.path('own'))
  chownSync(scene.path('own'), 4321, 4321)
  const path = `${scene.path('own')}/certs`
  scene.configure([{ path, contents }], { stateDirectory: scene.path('own/state') })
  const { code, stdout, stderr } = await scene.run('check', ['-o', 'json'], as(4321))
  t.equal(code, 0, stdout + stderr)
  // The same user in a directory of root.
  scene.configure([{ path: scene.target, contents }])
  const { document } = await scene.check(t, as(4321))
  const faults = document.checks.filter(({ status }) => status === 'FAULT').map(({ check }) => check)
  t.same(faults, ['exchange', 'state directory', 'capabilities'])
})

await t.test('check needs CAP_KILL for signals to processes of other users', { skip }, async (t) => {
  const scene = new Scene(t)
  const pidFile = scene.path('x.pid')
  scene.configure([{ path: scene.target, contents, afterPublish: [{ signal: { name: 'SIGHUP', pidFile } }] }])
  const sleeper = spawn('setpriv', ['--reuid=1234', '--clear-groups', 'sleep', '600'], { stdio: 'ignore' })
  t.teardown(async () => {
    const ended = once(sleeper, 'exit')
    sleeper.kill('SIGKILL')
    await ended
  })
  await once(sleeper, 'spawn')
  writeFileSync(pidFile, `${sleeper.pid}\n`)
  const missing = {
    status: 'FAULT',
    found: /x\.pid: CAP_KILL is missing: the process runs as user 1234, holdfast as user 0$/,
    advice: /add: \[KILL\]/,
  }
  // setpriv is still root's until it has become the sleeper.
  let hook = (await scene.check(t, without('kill'))).one('hook')
  for (let tries = 0; hook.status !== 'FAULT' && tries < 20; tries++) {
    hook = (await scene.check(t, without('kill'))).one('hook')
  }
  t.match(hook, missing)
  t.match((await scene.check(t)).one('hook'), {
    status: 'OK',
    found: new RegExp(`holdfast may signal process ${sleeper.pid} \\(sleep\\) of user 1234$`),
  })
  writeFileSync(pidFile, `${process.pid}\n`)
  t.equal((await scene.check(t, without('kill'))).one('hook').status, 'OK', 'its own user needs none')
})
