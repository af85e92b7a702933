/** `rollout` from outside: a killed process, its successor, and their output. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
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
    stdout: await withKept('taken back (web.yaml): web.yaml: command: exit code 1\n'),
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
  t.match(await holdfast([...args, '--timeout', '1ms']), { code: 75, stderr: /holds the lock/ })
  first.kill('SIGKILL')
  t.match(await end, { signal: 'SIGKILL' })
  t.same([node.versions(), node.tree()], [{ web: '2' }, 'new'])
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
