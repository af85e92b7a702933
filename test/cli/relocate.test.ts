/** `holdfast relocate OLD NEW`: what was published by hand gets another path, through the same states as the agent's moves. */
import { spawn } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { main } from '../../src/cli/main.js'
import { findOrphans, orphansText } from '../../src/cli/orphans.js'
import { readPublication, relocateByHand, replaceDirectory, setHold } from '../../src/durable/index.js'
import type { Descriptor, Mount } from '../../src/durable/file-system.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { relocateByHand as moveByHand } from '../../src/durable/relocate-by-hand.js'
import { contents } from '../durable/scratch.js'
import { until } from '../until.js'
import { scratch } from './holdfast.js'
import { runInProcess, testIo } from './in-process.js'

/** Where durability is proven on each file system but one. */
class ProvenBut extends NodeFileSystem {
  constructor(readonly device: number) {
    super()
  }

  override async mount(directory: Descriptor): Promise<Mount> {
    const { device } = await this.attributes(directory)
    return { ...(await super.mount(directory)), proven: device !== this.device }
  }
}

async function scene(t: Test, publish: 'exchange' | 'symlink' = 'exchange') {
  const root = scratch(t)
  const at = (name: string) => join(root, name)
  for (const name of ['was', 'is', 'state', 'manifests']) mkdirSync(at(name))
  const [from, to] = [at('was/certs'), at('is/tls')]
  await replaceDirectory(from, { files: { a: { content: '1', mode: 0o640 }, 'sub/b': '2' }, mode: 0o750, publish })
  // Not all processes can be looked at wherever this runs.
  const args = ['--force', '--state-directory', at('state'), '--pod-manifest-dir', at('manifests')]
  const relocate = (...given: string[]) => runInProcess(['relocate', ...given, ...args])
  return { root, at, from, to, args, relocate }
}

await t.test('what is used follows; then it goes, and the same command says so again', async (t) => {
  const { root, from, to, args, relocate } = await scene(t)
  t.match(await relocate(from, to, '--dry-run'), { code: 0, stdout: `would move ${from} to ${to}\n` })
  t.notOk(existsSync(to), 'nothing is made')
  const user = spawn('sleep', ['600'], { cwd: join(from, 'sub'), stdio: 'ignore' })
  t.teardown(() => user.kill('SIGKILL'))
  const waits = await relocate(from, to)
  const message = new RegExp(`moves to ${to} \\(both\\): .*process ${user.pid} \\(sleep\\)`)
  t.match(waits, { code: 1, stdout: '', stderr: message })
  t.match(waits.stderr, /have its users open .*run the same command again/)
  t.notMatch(waits.stderr, /as it was/, 'it has been published again')
  await setHold(from, { reason: 'INC-2', since: Date.now(), until: null })
  t.match(await relocate(from, to, '--dry-run'), { code: 1, stderr: /is held since .*INC-2/ })
  const held = await relocate(from, to)
  t.match(held, { code: 1, stderr: /is held since .*INC-2.*holdfast release .*certs/ })
  t.notMatch(held.stderr, /have its users/)
  await setHold(from, undefined)
  const dry: unknown = JSON.parse((await relocate(from, to, '--as', 'link', '--dry-run', '-o', 'json')).stdout)
  t.match(dry, { outcome: 'would move', as: 'remove', state: 'both' }, 'as it has begun')
  writeFileSync(join(to, 'a'), 'torn')
  t.match(await relocate(from, to), { code: 1, stderr: /tls is not what was published there last.*publish it again/ })
  writeFileSync(join(to, 'a'), '1')
  t.same(contents(to), contents(from))
  t.same(
    [lstatSync(to), lstatSync(join(to, 'a'))].map(({ mode }) => (mode & 0o777).toString(8)),
    ['750', '640'],
  )
  const shown = orphansText(await findOrphans([], [from, to]), new Date())
  t.match(shown, `there, moves to ${to}`)
  t.match(shown, `there, moves from ${from} (both)`)

  const { io, written } = testIo()
  const waiting = main(['relocate', from, to, ...args, '--wait', '1m'], io)
  await until('it waits', () => written.stderr.includes('holdfast waits'))
  t.ok(existsSync(from))
  user.kill('SIGKILL')
  t.equal(await waiting, 0, written.stderr)
  t.equal(written.stdout, `moved ${from} to ${to}\n`)
  t.notOk(existsSync(from))
  t.match(await relocate(from, to, '-o', 'json'), { code: 0, stdout: /"outcome": "moved"/ })
  t.match(await readPublication(to), { relocation: { from, state: 'done' } })

  t.match(await relocate(to, from), { code: 0 }, 'and back')
  t.match(await relocate(from, to), { code: 0 }, 'and once more')
  t.same([existsSync(from), contents(to)], [false, { a: '1', 'sub/b': '2' }])
  t.ok(existsSync(join(root, 'was')))
})

await t.test('--as link leaves a link, which leads on; whoever publishes the old path again leads again', async (t) => {
  const { from, to, relocate } = await scene(t, 'symlink')
  t.match(await relocate(from, to, '--as', 'link'), { code: 0, stdout: /; the old path is a link\n$/ })
  t.equal(readlinkSync(from), '../is/tls')
  t.equal(readlinkSync(join(to, 'a')), '..data/a', 'in its form')
  t.equal(readFileSync(join(from, 'sub/b'), 'utf8'), '2')
  t.match(await relocate(from, to, '--as', 'link'), { code: 0 })
  const history = { keep: 2, maxAge: null }
  await replaceDirectory(from, { files: { a: 'newer' }, publish: 'symlink', movedTo: null, history })
  t.match(await relocate(from, to), { code: 0 })
  t.equal(readFileSync(join(to, 'a'), 'utf8'), 'newer')
  await replaceDirectory(to, { files: { a: 'newest' }, publish: 'symlink' })
  t.ok((await readPublication(to))?.pastSince, 'as many earlier contents stay as at the old path')
  t.notOk(existsSync(from))
})

await t.test('bad input is refused with what to do, and nothing is touched', async (t) => {
  const { at, from, to, relocate } = await scene(t)
  const none = at('was/none')
  const refused = async (given: string[], code: number, stderr: RegExp): Promise<void> => {
    t.match(await relocate(...given), { code, stderr }, given.join(' '))
    t.notOk(existsSync(to))
    t.equal((await readPublication(from))?.movedTo, undefined)
  }
  await refused([from], 2, /missing required argument/)
  await refused([from, to, '--as', 'copy'], 2, /Allowed choices are remove, link/)
  await refused([from, join(from, 'sub/new')], 1, /lies in the other.*choose a new path beside it/s)
  await refused([from, from], 1, /are the same directory/)
  symlinkSync('was', at('alias'))
  await refused([from, at('alias/certs')], 1, /are the same directory/)
  await refused([none, to], 1, /has published nothing at .*none/)
  await setHold(from, { reason: 'INC-1', since: Date.now(), until: null })
  await refused([from, to], 1, /is held since .*INC-1/)
  await setHold(from, undefined)

  mkdirSync(at('is/theirs'))
  writeFileSync(at('is/theirs/precious'), '')
  await refused([from, at('is/theirs')], 1, /was not published by holdfast, and holds files .*move it away/s)
  await replaceDirectory(at('is/other'), { files: { a: 'other' } })
  await refused([from, at('is/other')], 1, /holds other content.*holdfast remove/s)
  const swapped = await relocate(at('was/none'), at('is/other'))
  t.match(swapped, { code: 1, stderr: /has published nothing at .*none/ }, 'a mistyped OLD, or the two swapped')
  t.notMatch(swapped.stderr, /holdfast remove/, 'which would remove the only copy')

  await replaceDirectory(at('was/ours'), { files: { a: '' }, publisher: 'agent' })
  await refused([at('was/ours'), to], 1, /holdfast agent publishes .*write .*movedFrom: .*ours.* at .*tls/s)
  await replaceDirectory(at('was/cert'), { files: { a: '' }, publisher: 'install' })
  await refused([at('was/cert'), to], 1, /holdfast install publishes/)
  const directory = { path: from, conditions: [], objects: [], pendingHooks: [] }
  const agent = { version: '', writtenAt: '', pid: 7, configuration: { file: '/etc/holdfast.yaml' } }
  writeFileSync(at('state/status.json'), JSON.stringify({ agent, directories: [directory] }))
  await refused([from, to], 1, /\(process 7\) publishes .*movedFrom: .* at .*tls in \/etc\/holdfast\.yaml instead/s)
})

await t.test('one that has drifted moves only if it is forced to; one that moves already, not elsewhere', async (t) => {
  const { at, from, to, args, relocate } = await scene(t)
  const user = spawn('sleep', ['600'], { cwd: from, stdio: 'ignore' })
  t.teardown(() => user.kill('SIGKILL'))
  const third = at('is/third')
  t.match(await relocate(from, to), { code: 1, stderr: /\(both\)/ })
  t.match(await relocate(from, third), { code: 1, stderr: /moves to .*tls already/ })
  t.match(await relocate(third, from), { code: 1, stderr: /certs itself moves to .*tls.*to its end/s })
  t.match(await relocate(to, from), { code: 1, stderr: /certs itself moves to .*tls.*to its end/s }, 'no cycle')
  t.notOk(existsSync(third))
  user.kill('SIGKILL')
  await until('it has ended', () => user.signalCode !== null)
  t.match(await relocate(from, to), { code: 0 })

  writeFileSync(join(to, 'a'), 'changed')
  const plain = ['relocate', to, third, ...args.slice(1)]
  t.match(await runInProcess(plain), { code: 1, stderr: /is not what holdfast published: a \(content\).*--force/s })
  t.notOk(existsSync(third))
  t.match(await relocate(to, third), { code: 0 })
  t.match(contents(third), { a: 'changed', 'sub/b': '2' }, 'as it is')
  t.notOk(existsSync(to))
})

await t.test('what is newer at NEW stays, also after an earlier move', async (t) => {
  const { from, to, relocate } = await scene(t)
  t.match(await relocate(from, to), { code: 0 })
  await replaceDirectory(from, { files: { a: 'stray' } })
  await replaceDirectory(to, { files: { a: 'newest' } })
  t.match(await relocate(from, to), { code: 1, stderr: /holds other content.*holdfast remove/s })
  t.same([contents(from), contents(to)], [{ a: 'stray' }, { a: 'newest' }])
})

await t.test('moved is only what is not at OLD any more', async (t) => {
  const { from, to, relocate } = await scene(t)
  t.match(await relocate(from, to, '--as', 'link'), { code: 0 })
  rmSync(from)
  mkdirSync(from)
  writeFileSync(join(from, 'theirs'), '')
  t.match(await relocate(from, to), { code: 1, stdout: '', stderr: /certs is not what holdfast left there/ })
  rmSync(from, { recursive: true })
  t.match(await relocate(from, to, '-o', 'json'), { code: 0, stdout: /"as": "remove"/ })
  symlinkSync('elsewhere', from)
  t.match(await relocate(from, to), { code: 1, stdout: '' })
  t.same(contents(to), { a: '1', 'sub/b': '2' })
})

await t.test('a move to where durability is not proven is forced, and says so', async (t) => {
  const { from, args } = await scene(t)
  const memory = mkdtempSync('/dev/shm/holdfast-test-')
  t.teardown(() => rmSync(memory, { recursive: true }))
  const to = join(memory, 'tls')
  const refused = async (given: string[], stderr: RegExp): Promise<void> => {
    t.match(await runInProcess(['relocate', from, to, ...given]), { code: 1, stderr }, given.join(' '))
    t.same([existsSync(from), existsSync(to)], [true, false])
  }
  const onTmpfs = /tls is on tmpfs, where durability is not proven/
  await refused([...args, '--require-proven'], onTmpfs)
  const device = statSync(memory).dev
  const refusal = { reason: 'TargetUnfit', message: /certs is on .*, where durability is proven.*--force/ }
  for (const dryRun of [false, true])
    await t.rejects(moveByHand(new ProvenBut(device), from, to, { as: 'removed', dryRun }), refusal)
  t.same([existsSync(from), existsSync(to)], [true, false])
  const moved = await runInProcess(['relocate', from, to, ...args, '-o', 'json'])
  t.match(moved, { code: 0, stderr: /tls is on a file system on which durability is not proven/ })
  t.match(JSON.parse(moved.stdout), { outcome: 'moved', unproven: true })
  t.match(
    await runInProcess(['relocate', from, to, ...args, '--require-proven']),
    { code: 1, stderr: onTmpfs },
    'again',
  )
})

await t.test('what an agent has come to publish meanwhile stays', async (t) => {
  const { from, to } = await scene(t)
  const configured = new Error('an agent publishes it')
  const confirm = () => Promise.reject(configured)
  await t.rejects(relocateByHand(from, to, { as: 'removed', force: true, confirm }), configured)
  t.same(contents(from), { a: '1', 'sub/b': '2' })
  t.match(await relocateByHand(from, to, { as: 'removed', force: true }), { state: 'done' })
})
