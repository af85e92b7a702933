/** Taken-over content stays as content 0, until the next publication; equal content makes no consumer reload. */
import { lchownSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { takeOver } from '../../../src/durable/adopt/adoption.js'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { pruneHistory } from '../../../src/durable/look/read-history.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import { adopt, Alone, before, files, none, scene } from '../adoption-scene.js'
import { intercepted, Killed } from '../intercepted.js'
import { contents, kept, modeOf } from '../scratch.js'

const isRoot = process.getuid?.() === 0

await t.test(
  'an adoption keeps the old content as content 0, beyond all limits, until the next publication',
  async (t) => {
    const { root, target, fs, take, examine, past } = scene(t)
    symlinkSync('tls.crt', join(target, 'current'))
    if (isRoot) lchownSync(join(target, 'current'), 1234, 5678)
    const { uid: owner } = lstatSync(join(target, 'current'))
    const { checks } = await examine(fs, { replace: true })
    t.match(checks.at(-1), {
      check: 'content',
      verdict: 'passed',
      message: 'different: it has current besides and has another tls.crt',
    })
    t.match(await take({ adopt: takeOver({ replace: true }) }), { outcome: 'replaced' })
    t.strictSame(contents(target), files)
    t.strictSame(await past(), ['1 published present', '0 adopted whole'])
    const [copy = ''] = readdirSync(root).filter((name) => name.includes('.0-'))
    t.strictSame(contents(join(root, copy)), { 'certs/tls.crt': 'old', 'certs/tls.key': 'key' })
    t.equal(modeOf(join(root, copy)), '700')
    t.equal(modeOf(join(root, copy, 'certs/tls.crt')), '640')
    t.equal(lstatSync(join(root, copy, 'certs/current')).uid, owner)
    t.match(await take(), { outcome: 'unchanged' })
    t.equal(await pruneHistory(fs, target, none, {}), 0)
    t.strictSame(await past(), ['1 published present', '0 adopted whole'])
    await t.rejects(
      rollBack(fs, target, { to: 0, pin: { reason: '', until: 'released' } }),
      /symbolic link \(current\).*copy what you need from/,
    )
    t.match(await take({}, { 'tls.crt': 'newer' }), { outcome: 'replaced' })
    t.strictSame(kept(root), ['lock', 'record'])
    t.same(await examine(), { own: true, checks: [], open: [] })
  },
)

await t.test('content 0 with a name that is no text stays where it is, and rollback says so', async (t) => {
  const { target, fs, take, past } = scene(t)
  writeFileSync(Buffer.concat([Buffer.from(`${target}/name-`), Buffer.from([0xff])]), '')
  await take({ adopt: takeOver({ replace: true }) })
  t.strictSame(await past(), ['1 published present', '0 adopted whole'])
  await t.rejects(rollBack(fs, target, { to: 0, pin: { reason: '', until: 'released' } }), {
    code: 'EILSEQ',
    published: false,
    message:
      /the content 0 of .* has a name that is not UTF-8 \("name-\\udcff"\), which holdfast does not publish.*copy what you need from/,
  })
  t.strictSame(contents(target), files)
})

await t.test('with history, content 0 is one of those that stay', async (t) => {
  const { take, past } = scene(t)
  const history = { keep: 2, maxAge: null }
  await take({ history })
  await take({ history }, { 'tls.crt': '2' })
  t.strictSame(await past(), ['2 published present', '1 published whole', '0 adopted whole'])
  await take({ history }, { 'tls.crt': '3' })
  t.strictSame(await past(), ['3 published present', '2 published whole', '1 published whole'])
})

await t.test('rollback --to 0 brings it back', async (t) => {
  const { target, fs, take, past } = scene(t)
  await take()
  t.match(await rollBack(fs, target, { to: 0, pin: { reason: '', until: 'released' } }), { sequence: 0 })
  t.strictSame(contents(target), before)
  t.equal(modeOf(join(target, 'tls.key')), '640')
  t.strictSame(await past(), ['2 rolledBack present', '0 adopted whole'])
})

await t.test('what no publication makes is refused as that, and is not called damaged', async (t) => {
  const { root, target, fs, take, past } = scene(t)
  mkdirSync(join(target, 'private'), { mode: 0o700 })
  await take({ adopt: takeOver({ replace: true }) })
  t.strictSame(await past(), ['1 published present', '0 adopted whole'])
  const back = rollBack(fs, target, { to: 0, pin: { reason: '', until: 'released' } })
  await t.rejects(back, { message: /its entries have different owners or modes.*copy what you need from/ })
  await t.rejects(back, { message: new RegExp(`${root}/\\.holdfast-`) })
  t.strictSame(contents(target), files)
})

await t.test('an adoption writes equal content as new files, and runs no hook', async (t) => {
  const { target, fs, take, past, examine } = scene(t, files)
  t.equal((await examine()).checks.at(-1)?.message, 'equal')
  const inode = statSync(join(target, 'tls.key')).ino
  t.same((await take()).pendingHooks, [])
  t.not(statSync(join(target, 'tls.key')).ino, inode)
  t.same((await readPublication(fs, target))?.pendingHooks, [])
  t.strictSame(await past(), ['1 published present', '0 adopted whole'])
  const other = await take({}, before)
  t.notOk('pendingHooks' in other, 'what comes next is announced')
  t.match(await readPublication(fs, target), { pendingHooks: ['reload'] })
})

await t.test('killed between the exchange and the mark, it is published again, and content 0 stays', async (t) => {
  const { take, publishBy, past } = scene(t)
  let renames = 0
  // The first one only asks the kernel.
  const { fs } = intercepted((call) => {
    if (call === 'rename') renames += 1
    else if (renames === 2) throw new Killed()
  }, new Alone())
  await publishBy(fs).catch(() => undefined)
  t.match(await take(), { outcome: 'replaced', pendingHooks: ['reload'] })
  t.strictSame(await past(), ['2 published present', '0 adopted whole'])
})

await t.test('killed before the exchange, the next run clears it up, even where a check fails now', async (t) => {
  const { root, publishBy, refuses, take, past } = scene(t)
  const killed = async (history = none): Promise<void> => {
    let renames = 0
    const { fs } = intercepted((call) => {
      if (call === 'rename') renames += 1
      if (renames === 2) throw new Killed()
    }, new Alone())
    await publishBy(fs, { history }).catch(() => undefined)
    t.strictSame([...new Set(kept(root))], ['generation', 'lock', 'record', 'staging'])
  }
  await killed()
  class Full extends Alone {
    override readonly free = () => Promise.resolve({ bytes: 1, inodes: undefined, blockSize: 4096 })
  }
  // The stage goes; the record stays until the next publication, as every reader's answer does.
  await refuses('space', 'pending', /are needed/, new Full(), adopt, ['record'])
  const history = { keep: 2, maxAge: null }
  await killed(history)
  await take({ history })
  t.matchOnly(await past(), [/^\d published present$/, '0 adopted whole'])
})

await t.test('what another program puts there while holdfast looks is never lost', async (t) => {
  const came: number[] = []
  for (let at = 1; came.length === at - 1; at++) {
    const { root, target, publishBy } = scene(t, {})
    rmSync(target, { recursive: true })
    let staging = false
    const { fs } = intercepted((call, _, index) => {
      staging ||= call === 'createDirectory'
      if (index !== at || staging) return
      came.push(at)
      mkdirSync(target)
      for (const name of ['tls.key', 'tls.crt']) writeFileSync(join(target, name), 'theirs')
    }, new Alone())
    await publishBy(fs).catch(() => undefined)
    if (came.includes(at)) t.ok(Object.values(contents(root)).includes('theirs'), `it came before call ${at}`)
  }
  t.ok(came.length > 10)
})
