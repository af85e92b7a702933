/** `rollout` from outside: a killed process, its successor, and their output. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { podText } from '../../static-pods/pods.js'
import { RolledNode } from '../../static-pods/rollout/rolled-node.js'
import { until } from '../../until.js'
import { begin, ended, holdfast } from '../holdfast.js'
import { seeingAll } from '../../seeing-all.js'

/** A rollout of version 2 that is ready once a file is there. */
function scene(t: Test, parent?: string) {
  const node = new RolledNode(t, ['web'], parent)
  const sign = join(node.root, 'sign')
  const places = ['--pod-manifest-dir', node.manifests]
  const tree = ['--resources', node.staged(), '--resource-dir', node.pki]
  const ready = ['--ready-exec', `test -e ${sign}`, '--ready-for=0s']
  return { node, sign, places, args: ['rollout', node.source('web', 2), ...places, ...tree, ...ready] }
}

/** On machines of tests, process 1 may be another user's: then the old directory stays, and the output says so. */
const seesAll = async (): Promise<boolean> => (await seeingAll())?.length === 0

const withKept = async (text: string): Promise<RegExp> =>
  new RegExp(
    `^${text.replace(/[().]/g, '\\$&')}${(await seesAll()) ? '' : '\\S+-rollout-pki stays, .*process 1 may not be.*\n'}$`,
  )

/** The leftovers, where every old directory may go. */
async function leftOf(node: RolledNode): Promise<string[]> {
  const left = node.left()
  if (await seesAll()) return left
  const record = /^\.holdfast-[0-9a-f]{16}\.\d+$/
  return left.filter((name) => name !== '.holdfast-rollout-pki' && !record.test(name))
}

await t.test('rollout takes back pods that are not ready in time: exit code 1, in words and as JSON', async (t) => {
  const { node, args, places } = scene(t)
  t.match(await holdfast([...args, '--timeout', '1ms']), {
    code: 1,
    stdout: await withKept(
      'taken back (web.yaml): web.yaml: command: exit code 1; web.yaml does not answer yet: command: exit code 1\n',
    ),
  })
  t.same([node.versions(), node.tree(), await leftOf(node)], [{ web: '1' }, 'old', []])
  t.match(JSON.parse((await holdfast(['rollout', '--resume', ...places, '-o', 'json'])).stdout), {
    outcome: 'nothing-to-resume',
  })
})

await t.test('rollout warns of a file system without proven durability, and refuses it on request', async (t) => {
  const { node, sign, args, places } = scene(t, '/dev/shm')
  const warning = (path: string) => new RegExp(`${path} is on a file system on which durability is not proven`)
  t.match(await holdfast([...args, '--require-proven']), {
    code: 1,
    stderr: /is on tmpfs, where durability is not proven/,
  })
  t.same([node.versions(), node.tree(), node.left()], [{ web: '1' }, 'old', []])
  const killed = await holdfast([...args, '--no-fallback', '--timeout', '1ms', '-o', 'json'])
  t.match(killed, { code: 1, stderr: warning(node.pki) })
  t.match(killed, { stderr: warning(node.manifests) })
  t.match(JSON.parse(killed.stdout), { outcome: 'not-ready', unproven: true })
  writeFileSync(sign, '')
  const resumed = await holdfast(['rollout', '--resume', ...places, '-o', 'json'])
  t.match(resumed, { code: 0, stderr: warning(node.pki) })
  t.match(JSON.parse(resumed.stdout), { outcome: 'ready', unproven: true })
  const again = await holdfast([...args, '-o', 'json'])
  t.match(again, { code: 0, stderr: warning(node.manifests) })
  t.match(JSON.parse(again.stdout), { outcome: 'unchanged', unproven: true })
})

await t.test('rollout --resume finishes a rollout killed by SIGKILL, while another rollout is busy', async (t) => {
  const { node, args, places, sign } = scene(t)
  const first = begin([...args, '--timeout', '5m'])
  const end = ended(first)
  await until('the new manifest is live', () => node.versions().web === '2')
  const at = 'is at web\\.yaml, 1 of 1, with \\d+ s left'
  const [rolled, was] = [`a rollout of web\\.yaml in ${node.manifests}`, 'was interrupted, and']
  const under = `${rolled} ${was} ${at}`
  const end1 = `process ${first.pid} works on it; end that first \\(kill -INT ${first.pid}\\), then holdfast rollout --resume --pod-manifest-dir`
  const atWork = new RegExp(`holds the lock.*${rolled} ${at}; ${end1}`)
  // The manifest is live a moment before the state says how long its pod has.
  const busy = await until('it is refused', async () => {
    const refused = await holdfast([...args, '--timeout', '1ms'])
    return atWork.test(refused.stderr) && refused
  })
  t.equal(busy.code, 75)
  const asJson = ['rollout', '--status', ...places, '-o', 'json']
  t.match(JSON.parse((await holdfast(asJson)).stdout), {
    rollouts: [
      { directory: node.manifests, state: 'under-way', process: first.pid, manifests: ['web.yaml'], reached: 1 },
    ],
  })
  first.kill('SIGKILL')
  t.match(await end, { signal: 'SIGKILL' })
  t.same([node.versions(), node.tree()], [{ web: '2' }, 'new'])
  const interrupted = await holdfast(['rollout', '--status', ...places])
  t.match(interrupted, {
    code: 0,
    stdout: new RegExp(`^${under}; no process is seen that works on it: .* takes it back\n$`),
  })
  t.match(await holdfast([...args, '--dry-run']), { code: 1, stderr: new RegExp(`${under}; no process`) })
  await t.test('nothing else writes over it', async (t) => {
    const written = await holdfast(['write', node.live(), '--from', node.source('web', 1)])
    t.match(written, { code: 1, stderr: new RegExp(`${under}; no process.*is as it was`) })
    const installed = await holdfast(['install', node.source('web', 1, 'web.yaml'), ...places])
    t.match(installed, { code: 1, stderr: new RegExp(`${under}; no process.*nothing was changed`) })
    const replaced = await holdfast(['replace', node.pki, '--from', node.staged(), '--replace-foreign'])
    t.match(replaced, { code: 1, stderr: /\.holdfast-rollout-pki is of a rollout.*--resume.*pki is as it was/ })
    const other = join(node.manifests, 'other.yaml')
    const asOther = new RegExp(`${under}; no process.*other\\.yaml is as it was`)
    t.match(await holdfast(['write', other, '--from', node.source('web', 3)]), { code: 1, stderr: asOther }, 'its pod')
    t.match(await holdfast(['write', other], { input: node.text('web', 3) }), { code: 1, stderr: asOther })
    t.match(await holdfast(['install', node.source('web', 1, 'other.yaml'), ...places]), {
      code: 1,
      stderr: new RegExp(under),
    })
    t.same([node.versions(), node.tree(), existsSync(other)], [{ web: '2' }, 'new', false])
    const uid = podText({ name: 'other', uid: 'a-uid' })
    for (const input of ['x', uid])
      t.match(await holdfast(['write', other], { input }), { code: 0 }, 'what the rollout does not know')
    rmSync(other)
  })
  const second = begin(['rollout', '--resume', ...places, '--log-format', 'json'])
  let log = ''
  second.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
  const resumed = ended(second)
  await until('it has asked', () => log.includes('exit code 1'))
  writeFileSync(sign, '')
  t.match(await resumed, { code: 0, stdout: await withKept('ready: web.yaml\n') })
  t.same([node.versions(), node.tree(), await leftOf(node)], [{ web: '2' }, 'new', []])
})

await t.test('rollout reports wrong flags before it reads or writes anything', async (t) => {
  const { node, args, places } = scene(t)
  const wrong = async (given: readonly string[], stderr: RegExp) =>
    t.match(await holdfast(given), { code: 2, stdout: '', stderr }, given.join(' '))
  await wrong(['rollout', ...places, '--ready-exec=true'], /name at least one MANIFEST, or --resume/)
  await wrong(['rollout', '--resume', 'x.yaml', ...places], /--resume takes no MANIFEST/)
  for (const flag of ['--timeout=1h', '--no-fallback', '--ready-exec=true', '--resources=x', '--require-proven']) {
    const [name = ''] = flag.split('=')
    await wrong(
      ['rollout', '--resume', flag, ...places],
      new RegExp(`--resume goes on as the flags of the interrupted rollout said: leave out ${name}`),
    )
  }
  await wrong(['rollout', 'x.yaml', '--ready-exec=true'], /--pod-manifest-dir is missing/)
  await wrong(['rollout', 'x.yaml', ...places], /name at least one check of readiness/)
  await wrong(
    ['rollout', 'x.yaml', ...places, '--ready-exec=true', '--resources=x'],
    /--resources and --resource-dir go together/,
  )
  await wrong(
    ['rollout', 'x.yaml', ...places, '--kubelet-ca=x', '--ready-exec=true'],
    /--kubelet-ca needs a --kubelet-url/,
  )
  const kubelet = ['rollout', 'x.yaml', ...places, '--kubelet-url=https://127.0.0.1:1']
  await wrong([...args, '--ready-for=5m'], /--ready-for must be shorter than the timeout/)
  await wrong([...kubelet, '--kubelet-cert=x'], /--kubelet-cert and --kubelet-key go together/)
  await wrong(
    [...args, '--kubelet-url=https://127.0.0.1:1', '--kubelet-ca=/none'],
    /--kubelet-ca: could not read \/none/,
  )
  await wrong(
    ['rollout', node.source('bad', 1, 'bad.txt').replace('bad.txt', 'none'), ...places, '--ready-exec=true'],
    /none does not exist/,
  )
  t.equal(readFileSync(node.live(), 'utf8'), node.text('web', 1))
})

await t.test('rollout --dry-run says what rollout then does, and refuses what it refuses', async (t) => {
  const { node, args, places } = scene(t)
  const all = () => [
    readFileSync(node.live(), 'utf8'),
    node.tree(),
    readdirSync(node.manifests),
    readdirSync(node.root),
  ]
  const before = all()
  const dry = [...args, '--dry-run']
  t.match(await holdfast(dry), {
    code: 0,
    stdout: /^would be replaced +\S+\/pki\n  ~ ca\.crt\n(  . \S+\n)+would be replaced +\S+\/web\.yaml\n$/,
  })
  t.match(JSON.parse((await holdfast([...dry, '-o', 'json'])).stdout), {
    dryRun: true,
    manifests: [{ path: node.live(), outcome: 'replaced' }],
    tree: { path: node.pki },
  })
  const blind = await holdfast([...dry, '--ready-exec', '/no/such/program'])
  t.match(blind, { code: 1, stderr: /command: exit code 127.*nothing was changed; name a program/ })
  t.same(all(), before)
  const live = ['rollout', node.live(), ...places, '--ready-exec=true', '--dry-run']
  t.match(await holdfast(live), { code: 0, stdout: /^unchanged: / })
})

await t.test('rollout --status and --resume name the directory, and one without a rollout is no success', async (t) => {
  const { node, args, places } = scene(t)
  const none = `no rollout was ever begun in ${node.manifests}`
  t.match(await holdfast(['rollout', '--status', ...places]), { code: 0, stdout: `${none}\n` })
  t.match(await holdfast(['rollout', '--resume', ...places]), { code: 1, stdout: new RegExp(`^${none}: is this`) })
  await holdfast([...args, '--timeout', '1ms'])
  const ended = `the last rollout in ${node.manifests} ended: taken-back: web.yaml: command: exit code 1`
  t.match(await holdfast(['rollout', '--status', ...places]), { code: 0, stdout: `${ended}\n` })
  t.match(await holdfast(['rollout', '--resume', ...places]), { code: 0, stdout: new RegExp(`interrupted: ${ended}`) })
  t.match(await holdfast(['rollout', '--status', '--resume', ...places]), { code: 2, stderr: /leave out --resume/ })
  t.match(await holdfast(['rollout', '--status', 'x.yaml', ...places]), { code: 2, stderr: /leave out MANIFEST/ })
  const nowhere = ['rollout', '--status', '--pod-manifest-dir', join(node.root, 'none')]
  t.match(await holdfast(nowhere), { code: 2, stderr: /none does not exist/ })
})

await t.test('rollout --timeout 0 waits without a limit, and a monitor without any time is wrong usage', async (t) => {
  const { node, sign, args } = scene(t)
  const child = begin([...args, '--timeout', '0', '--log-format', 'json'])
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
  const end = ended(child)
  await until('it has asked', () => log.includes('"state":"command: exit code 1"'))
  t.same(node.versions(), { web: '2' })
  writeFileSync(sign, '')
  t.match(await end, { code: 0 })
  const monitor = ['monitor', '--revision=1', '--target-name=x', '--resource-dir=/x', '--manifests-dir=/x']
  const zero = await holdfast([...monitor, '--ready-exec=true', '--fallback-timeout-duration=0'])
  t.match(zero, { code: 2, stderr: /--fallback-timeout-duration must be more than 0/ })
})
