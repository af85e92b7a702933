/** A rollback publishes an earlier content unchanged, by the rules of the present content's publisher; or refuses it. */
import { chmodSync, chownSync, existsSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { takeOver } from '../../src/durable/adopt/adoption.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import { withRecord } from '../../src/durable/record/record-files.js'
import { rollBack } from '../../src/durable/operator/rollback.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { silent } from '../../src/log.js'
import { scene as adoption } from './adoption-scene.js'
import { failure, intercepted, Killed, Rebooted, Unproven } from './intercepted.js'
import { answer, pin, scene } from './rollback-scene.js'
import { contents, modeOf } from './scratch.js'

const isRoot = process.getuid?.() === 0

for (const form of ['exchange', 'symlink'] as const) {
  await t.test(`a rollback keeps the publisher of the present content (publish: ${form})`, async (t) => {
    const { target, fs, replace, back } = scene(t, form)
    const recorded = () => withRecord(fs, target, (_, __, [newest]) => Promise.resolve(newest))
    const more: PublicationOptions = {
      publisher: 'agent',
      hooks: ['reload'],
      ...(form === 'exchange' && { attributes: 'keep', emptyDirectories: ['none/yet'] }),
    }
    await replace('1', more)
    if (form === 'exchange') chmodSync(join(target, 'sub'), 0o711)
    await replace('2', more)
    t.equal(await back(), 1)
    t.match(await recorded(), {
      kind: form,
      why: 'rolledBack',
      publisher: 'agent',
      pendingHooks: ['reload'],
      history: { hooks: ['reload'] },
      keepsAttributes: form === 'exchange' ? true : undefined,
    })
    if (form === 'exchange') {
      t.strictSame(contents(target), { 'tls.crt': '1', 'sub/tls.key': '1' })
      t.ok(existsSync(join(target, 'none/yet')))
      t.equal(modeOf(join(target, 'sub')), '711', 'with the modes that an administrator gave it')
    }

    const plain = scene(t, form)
    await plain.replace('1')
    await plain.replace('2')
    t.equal(await plain.back(), 1)
    const { publisher, keepsAttributes, pendingHooks, history } =
      (await withRecord(plain.fs, plain.target, (_, __, [newest]) => Promise.resolve(newest))) ?? {}
    t.strictSame([publisher, keepsAttributes, pendingHooks, history?.hooks], [undefined, undefined, [], undefined])
  })
}

await t.test('a rollback calls its check, writes to its log, and ends with its signal', async (t) => {
  const { root, fs, replace, back } = scene(t)
  const { digest } = await replace('1')
  await replace('2')
  const asked: string[] = []
  const accepts = (one: string) => {
    asked.push(`accepts ${one}`)
  }
  const check = {
    accepts,
    examine: (content: { digest: string }) => {
      asked.push(`examine ${content.digest}`)
      throw new DurableWriteError('not this one', { code: 'EPERM', syscall: 'none', path: root })
    },
  }
  t.equal(await back({ check }), 'EPERM: not this one')
  t.strictSame(asked, [`accepts ${digest}`, `examine ${digest}`])
  t.match(await back({ signal: AbortSignal.abort() }), /^ABORT_ERR: the caller aborted the publication of /)
  const told: string[] = []
  const { fs: busy } = intercepted((call, [, name]) => {
    if (call === 'removeFile' && /^\.holdfast-[0-9a-f]{16}\.2$/.test(String(name))) throw failure('EIO', 'unlinkat')
  }, fs)
  const log = { ...silent, warn: (_: object, message: string) => void told.push(message) }
  t.equal(await back({ log }, busy), 1)
  t.strictSame(told, ['could not remove a leftover; the next run retries'])
})

await t.test('a rollback refuses an unproven file system only with requireProven', async (t) => {
  const { target, replace } = scene(t)
  await replace('1')
  await replace('2')
  const back = (requireProven?: true) =>
    rollBack(new Unproven(), target, { pin, ...(requireProven && { requireProven }) })
  t.match(await answer(back(true)), /not proven/)
  t.match(await back(), { sequence: 1, unproven: true })
})

await t.test('a rollback of unreadable content says that it failed and changed nothing', async (t) => {
  const { root, target, fs, replace, back } = scene(t)
  await replace('1')
  await replace('2')
  const { fs: failing } = intercepted((call) => {
    if (call === 'read') throw failure('EIO', 'read')
  }, fs)
  await t.rejects(rollBack(failing, target, { pin }), {
    code: 'EIO',
    published: false,
    problem: `could not read the earlier contents of ${target}: read ${target}: EIO`,
    state: `holdfast left ${target} as it was`,
  })
  const [copy = ''] = readdirSync(root).filter((name) => name.includes('.1-'))
  rmSync(join(root, copy, 'certs'), { recursive: true })
  t.match(await back(), /^EBADMSG: the content 1 of .* is damaged: it cannot be read: openat2 .*ENOENT$/)
})

const changes: Record<string, [(target: string) => void, string | undefined]> = {
  'a file of another mode': [(target) => chmodSync(join(target, 'tls.crt'), 0o400), undefined],
  'a directory of another mode': [(target) => chmodSync(join(target, 'sub'), 0o700), 'sub'],
  ...(isRoot && {
    'a file of another user': [(target) => chownSync(join(target, 'tls.crt'), 1234, 0), 'tls.crt'],
    'a file of another group': [(target) => chownSync(join(target, 'tls.crt'), 0, 1234), 'tls.crt'],
  }),
}

for (const [what, [change, refused]] of Object.entries(changes)) {
  await t.test(`${what}, which an administrator made`, async (t) => {
    const { root, target, fs, replace, back } = scene(t)
    await replace('1', { attributes: 'keep' })
    change(target)
    await replace('2', { attributes: 'keep' })
    await replace('3')
    if (refused === undefined) {
      t.equal(await back({ to: 2 }), 2)
      return
    }
    const path = join(root, readdirSync(root).find((name) => name.includes('.2-')) ?? '')
    const why = `cannot be published as it was: its entries have different owners or modes (${refused})`
    await t.rejects(rollBack(fs, target, { to: 2, pin }), {
      code: 'ENOTSUP',
      problem: `the content 2 of ${target} ${why}`,
      path,
      state: 'nothing was changed',
      advice: `copy what you need from ${path}`,
    })
  })
}

await t.test('a rollback refuses a link in taken-over content', async (t) => {
  const { target, fs, take } = adoption(t)
  symlinkSync('tls.crt', join(target, 'current'))
  await take({ adopt: takeOver({ replace: true }) })
  const problem = `the content 0 of ${target} holds a symbolic link (current), which holdfast does not publish`
  const confirmFiles = () => t.fail('nobody is asked about what is not published')
  await t.rejects(rollBack(fs, target, { to: 0, pin, confirmFiles }), { code: 'ELOOP', problem })
})

await t.test('a rollback of drifted content, killed before its exchange, pins nothing after a reboot', async (t) => {
  for (const visible of [false, true]) {
    const { target, fs, replace, back, edit } = scene(t)
    await replace('1')
    await replace('2')
    edit()
    let renames = 0
    let dead = false
    const { fs: killed } = intercepted((call) => {
      if (call === 'rename') renames += 1
      dead ||= call === (visible ? 'sync' : 'rename') && renames === 1
      if (dead) throw new Killed()
    }, fs)
    t.equal(await back({}, killed), 'a defect', 'killed')
    t.equal(contents(target)['tls.crt'], visible ? '1' : 'edited')
    // As after a reboot: the content on the disk is that of another boot's record.
    const rebooted = new Rebooted()
    const next = replace('3', { supersedes: () => false }, rebooted)
    if (visible) await t.rejects(next, /is rolled back since/, 'its pin is in force once it is visible')
    else t.match(await next, { outcome: 'replaced' }, 'nobody was told that it was rolled back')
  }
})
