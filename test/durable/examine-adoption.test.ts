/** Looking at a directory that is to be adopted: what the look says where it cannot look, and that it leaves nothing open or made. */
import { hash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { tryLock } from '../../native/index.js'
import { examineAdoption } from '../../src/durable/adopt/adoption.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import { namesFor } from '../../src/durable/path/names.js'
import { Alone, scene } from './adoption-scene.js'
import { codeOf } from '../../src/errors.js'
import { failure, intercepted } from './intercepted.js'

await t.test(
  'examineAdoption of a missing directory says so and makes nothing; a failed one names the failed call',
  async (t) => {
    const { root, target, fs, requestFor } = scene(t)
    const look = async (by: FileSystem = fs, path = target) => {
      try {
        const { own, checks } = await examineAdoption(by, { ...requestFor({}), target: path }, { replace: false })
        return { own, says: checks.map(({ verdict, message }) => `${verdict}: ${message}`) }
      } catch (error) {
        const { name, code, published, message } = error as DurableWriteError
        return { name, code, published, message }
      }
    }
    const missing = join(root, 'missing/certs')
    const [first, ...others] = (await look(fs, missing)).says ?? []
    t.equal(first, `pending: ${missing} does not exist`)
    t.strictSame(new Set(others), new Set([`pending: not looked at: ${missing} does not exist`]))
    t.strictSame(readdirSync(root), ['certs'])

    const failing = (failed: string, error: Error, name?: string) =>
      intercepted((call, args) => {
        if (call === failed && (name === undefined || args[1] === name)) throw error
      }, new Alone()).fs
    const unread = { name: 'DurableWriteError', code: 'EIO', published: false }
    const message = new RegExp(`^could not look at ${target}: `)
    t.match(await look(failing('free', failure('EIO', 'statfs'))), { ...unread, message })
    t.match(await look(failing('openFile', failure('EIO', 'open'), 'tls.key')), { ...unread, message })
    t.match(await look(failing('openFile', new Error('a defect'), 'tls.key')), { message: 'a defect' })

    const unsaid = new DurableWriteError('no pair', {
      code: 'EINVAL',
      syscall: 'read',
      path: target,
      state: 'as it was',
    })
    const keyPairs = () => Promise.reject(unsaid)
    const { checks } = await examineAdoption(fs, requestFor({}), { replace: false, keyPairs })
    const refusal = { verdict: 'refused', message: 'no pair', advice: 'choose another path' }
    t.match(checks.at(-1), refusal, 'what is refused without advice')
    rmSync(target, { recursive: true })
    symlinkSync('elsewhere', target)
    t.match((await look()).says?.[2], /^refused: .*symbolic link/)
    t.match((await look()).says?.[4], /^pending: not looked at: .*symbolic link/)
  },
)

await t.test('a look reads content once, without its labels, and gives the lock back', async (t) => {
  const { root, examine } = scene(t)
  writeFileSync(join(root, namesFor('certs').lock), '')
  const calls: string[] = []
  const { fs: watched } = intercepted((call, [, name]) => calls.push(`${call} ${String(name)}`), new Alone())
  t.strictSame((await examine(watched)).open, [])
  t.equal(calls.filter((call) => call === 'openFile tls.key').length, 1)
  t.strictSame(
    calls.filter((call) => call.startsWith('label')),
    [],
  )
  t.strictSame((await examine()).open, [], 'nobody has it')
})

await t.test(
  'examineAdoption beside another publisher names it; of an owned target it checks nothing more',
  async (t) => {
    const { root, target, fs, take, examine, requestFor } = scene(t)
    const names = namesFor('certs')
    const lock = join(root, names.lock)
    mkdirSync(lock)
    const content = new PassThrough()
    const request = { ...requestFor({}), files: { a: { path: join(root, 'no-content') }, b: content } }
    const refuses = () => examineAdoption(fs, request, { replace: false }).catch((error: unknown) => error)
    const noLock = 'what is no lock, before any content is read'
    t.match(await refuses(), { name: 'DurableWriteError', code: 'EISDIR', published: false }, noLock)
    t.ok(content.destroyed, 'what is not read is closed')
    rmSync(lock, { recursive: true })
    symlinkSync('elsewhere', lock)
    t.match(await refuses(), { name: 'DurableWriteError', code: 'ELOOP', reason: 'TargetUnfit' }, 'nor a link')
    rmSync(lock)
    writeFileSync(lock, '')
    const held = openSync(lock, 'r')
    t.ok(tryLock(held))
    t.match((await examine()).open, [{ check: 'noOtherWriter', message: /another process of holdfast has the lock/ }])
    closeSync(held)
    t.strictSame((await examine()).open, [], 'nobody has it now')
    writeFileSync(join(root, names.record(1)), 'damaged', { mode: 0o600 })
    t.match(await examine(), { own: false }, 'a damaged record tells of nothing')
    rmSync(join(root, names.record(1)))
    const failed = await take({}, { 'tls.crt': 'new' }).catch((error: unknown) => error)
    t.match(failed, { code: 'EEXIST', reason: 'AdoptionRefused', published: false, advice: /adopt: replace/ })
    const staging = join(root, '../staging/installer/secrets/certs')
    mkdirSync(staging, { recursive: true })
    const waits = await take().catch((error: unknown) => error)
    t.match(waits, { code: 'EBUSY', reason: 'AdoptionPending', published: false, advice: /stop it/ })
    rmSync(staging, { recursive: true })
    const body = JSON.stringify({ version: 2 })
    writeFileSync(join(root, names.record(1)), `${hash('sha256', body)} ${body}\n`, { mode: 0o600 })
    t.match(await examine(), { own: true }, 'a newer version publishes there')
    rmSync(join(root, names.record(1)))
    await take()
    t.match(await examine(), { own: true })
    writeFileSync(join(target, 'more'), 'drift')
    t.match(await examine(), { own: true }, 'drift')
    const unreadable = intercepted((call, [, name]) => {
      if (call === 'openFile' && name === 'tls.key') throw failure('EIO', 'open')
    }, new Alone()).fs
    t.equal(await examine(unreadable).catch(codeOf), 'EIO', 'what nobody can read')
    rmSync(target, { recursive: true })
    symlinkSync('elsewhere', target)
    t.match(await examine().catch(codeOf), { own: true }, 'what has taken its place')
  },
)
