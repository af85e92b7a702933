import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DurableCalls, replaceDirectory as publishDirectory } from '../../../src/durable/index.js'
import { lockFile as takeLock } from '../../../src/durable/path/lock.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { tryLock } from '../../../native/index.js'
import { closeSync, openSync } from 'node:fs'
import { codeOf } from '../../../src/errors.js'
import { failing, intercepted } from '../intercepted.js'
import { contents, kept, scratch, scratchWith } from '../scratch.js'

function lockFile(parent: string): string {
  return join(parent, readdirSync(parent).find((name) => name.endsWith('.lock')) ?? 'none')
}

await t.test('another process holds the lock: busy at once, or after the deadline, or when it lets go', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publishDirectory(target, { files: { a: '1' } })
  const inode = statSync(lockFile(parent)).ino
  const holder = spawn('flock', [lockFile(parent), 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  await t.rejects(publishDirectory(target, { files: { a: '2' } }), {
    code: 'EAGAIN',
    syscall: 'flock',
    reason: 'Busy',
    published: false,
    message: /another process is publishing/,
  })
  let turns = 0
  const turning = setInterval(() => (turns += 1), 1)
  const before = performance.now()
  await t.rejects(publishDirectory(target, { files: { a: '2' }, lockTimeout: 100 }), { code: 'EAGAIN' })
  t.ok(performance.now() - before >= 95, 'waited for the deadline')
  clearInterval(turning)
  t.ok(turns > 1, 'and let others work')
  const waiting = publishDirectory(target, { files: { a: '2' }, lockTimeout: 60_000 })
  holder.stdin.end()
  t.match(await waiting, { outcome: 'replaced' })
  t.equal(statSync(lockFile(parent)).ino, inode, 'the lock file is never another one')
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('a lock that is no file is refused; the lock ends with its holder', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publishDirectory(target, { files: {} })
  const path = lockFile(parent)
  const fd = openSync(path, 'r+')
  t.equal(tryLock(fd), true, 'nobody holds it after the call')
  const other = openSync(path, 'r+')
  t.equal(tryLock(other), false)
  closeSync(fd)
  closeSync(other)
  rmSync(path)
  mkdirSync(path)
  await t.rejects(publishDirectory(target, { files: { a: '' } }), { code: 'EISDIR' })
  rmSync(path, { recursive: true })
  symlinkSync('certs', path)
  await t.rejects(publishDirectory(target, { files: { a: '' } }), {
    code: 'ELOOP',
    reason: 'TargetUnfit',
    message: `the lock ${path} is a symbolic link; nothing was changed; remove it: holdfast creates the lock itself`,
  })
  rmSync(path)
  writeFileSync(path, '')
})

await t.test(
  'lock reports EACCES as a missing right to make a lock, or as the lock of another user',
  { skip: process.getuid?.() === 0 ? false : 'changing the user needs root: run by CI' },
  async (t) => {
    const parent = scratch(t)
    chmodSync(parent, 0o755)
    const target = join(parent, 'certs')
    const asNobody = async () => {
      process.seteuid?.(65_534)
      try {
        return await publishDirectory(target, { files: {} })
      } finally {
        process.seteuid?.(0)
      }
    }
    const denied = { code: 'EACCES', syscall: 'open', published: false, reason: 'PublishFailed' }
    await t.rejects(asNobody(), {
      ...denied,
      message: /: EACCES; holdfast left .* as it was; run as a user who may write here/,
    })
    t.same(kept(parent), [])
    await publishDirectory(target, { files: {} })
    t.ok(await answers(asNobody(), 'EACCES'))
    await t.rejects(asNobody(), { ...denied, message: /EACCES; .* the lock file belongs to user 0: run as/ })
  },
)

/** Whether it is refused with this errno: a defect of the program is refused with another one, or none. */
function answers(asked: Promise<unknown>, code: string): Promise<boolean> {
  return asked.then(
    () => false,
    (error: unknown) => codeOf(error) === code,
  )
}

/** A publication that hangs at a flush, under its lock, as on a disk that does not answer. */
function hangingPublication(target: string): { stuck: Promise<void>; answer: () => void; ended: Promise<unknown> } {
  let atFlush!: () => void
  let answer!: () => void
  const stuck = new Promise<void>((resolve) => (atFlush = resolve))
  const answered = new Promise<void>((resolve) => (answer = resolve))
  class Hanging extends NodeFileSystem {
    override async sync(...args: Parameters<NodeFileSystem['sync']>) {
      atFlush()
      await answered
      return super.sync(...args)
    }
  }
  return { stuck, answer, ended: publish([directoryPublication(new Hanging(), { target, files: { a: 'first' } })]) }
}

await t.test('lockTimeout and signal bound the wait for a call of the same process that hangs', async (t) => {
  const target = join(scratch(t), 'certs')
  const first = hangingPublication(target)
  t.teardown(() => first.answer())
  await first.stuck
  const busy = {
    code: 'EAGAIN',
    reason: 'Busy',
    published: false,
    message: /another call of this process is publishing/,
  }
  await t.rejects(publishDirectory(target, { files: { a: '2' }, lockTimeout: 50 }), busy, 'its own limit')
  await t.rejects(publishDirectory(target, { files: { a: '2' }, lockTimeout: 0 }), busy, 'no wait at all')
  t.ok(await answers(publishDirectory(target, { files: { a: '2' }, lockTimeout: 0 }), 'EAGAIN'))
  const controller = new AbortController()
  const aborted = t.rejects(publishDirectory(target, { files: { a: '2' }, signal: controller.signal }), {
    name: 'AbortError',
    code: 'ABORT_ERR',
    published: false,
  })
  controller.abort()
  await aborted
  // They have left the queue: who comes now waits for the first alone, and takes no turn before it.
  const patient = publishDirectory(target, { files: { a: 'last' } })
  first.answer()
  t.match(await first.ended, [{ outcome: 'created' }])
  t.match(await patient, { outcome: 'replaced' })
  t.same(contents(target), { a: 'last' })
})

await t.test('a lock that this process holds already is refused after the time to wait, with its path', async (t) => {
  const path = join(scratch(t), 'lock')
  const durable = new DurableCalls()
  const held = await durable.lock(path, 0, undefined)
  await t.rejects(durable.lock(path, 50, undefined, 'the manifests are as they were'), {
    reason: 'Busy',
    path,
    message: /another call of this process holds the lock .*the manifests are as they were/,
  })
  const next = durable.lock(path, 60_000, undefined)
  await held.release()
  await (await next).release()
})

await t.test('a new caller waits for an earlier waiter that holds the lock now', async (t) => {
  const path = join(scratch(t), 'lock')
  const durable = new DurableCalls()
  const first = await durable.lock(path, 0, undefined)
  const second = durable.lock(path, 60_000, undefined)
  await first.release()
  const held = await second
  await t.rejects(durable.lock(path, 0, undefined), { message: /another call of this process/ })
  await held.release()
})

await t.test("lock reports another entry in the place of its file, and the system's errors", async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'directory'))
  const held = new DurableCalls().lock(join(parent, 'directory'), 0, undefined, 'nothing was begun')
  await t.rejects(held, {
    code: 'EISDIR',
    message: `the lock ${parent}/directory is a directory; nothing was begun; name a regular file, or a path that does not exist yet`,
  })
  for (const code of ['EROFS', 'EIO']) {
    const { fs } = failing('openLock', code, 'openat')
    const refused = {
      name: 'DurableWriteError',
      code,
      published: false,
      problem: new RegExp(`^could not lock ${parent}`),
    }
    await t.rejects(new DurableCalls(fs).lock(join(parent, 'lock'), 0, undefined), refused)
  }
  const defect = new TypeError('a defect')
  const { fs } = intercepted((call) => {
    if (call === 'openLock') throw defect
  })
  await t.rejects(new DurableCalls(fs).lock(join(parent, 'lock'), 0, undefined), defect)
})

await t.test('lock gives a free lock even to a caller whose signal has aborted', async (t) => {
  const path = join(scratch(t), 'lock')
  for (const what of ['a new one', 'one that this process held before']) {
    const held = await new DurableCalls().lock(path, 0, AbortSignal.abort()).catch(codeOf)
    t.equal(typeof held, 'object', what)
    if (typeof held === 'object') await held.release()
  }
})

await t.test('calls of one process queue, and ask the kernel for the lock at their turn alone', async (t) => {
  const parent = scratch(t)
  let tries = 0
  class Counting extends NodeFileSystem {
    override tryLock(descriptor: number): boolean {
      tries += 1
      return super.tryLock(descriptor)
    }
  }
  const fs = new Counting()
  const take = (name: string) => takeLock(fs, join(parent, name), 60_000, undefined, 'nothing was changed')
  const first = await take('lock')
  const waiting = [2, 3, 4].map(async () => (await take('lock')).release())
  const before = tries
  // Locks of other files come and go meanwhile: a caller that does not queue would have tried by then.
  for (let round = 0; round < 20; round++) await (await take(`other-${round}`)).release()
  t.equal(tries - before, 20, 'none of those that wait has asked')
  await first.release()
  await Promise.all(waiting)
  t.equal(tries, 24, 'each asks once')
})
