import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { replaceDirectory as publishDirectory } from '../../src/durable/index.js'
import { tryLock } from '../../native/index.js'
import { openSync } from 'node:fs'
import { kept, scratch } from './scratch.js'

function lockFile(parent: string): string {
  return join(parent, readdirSync(parent).find((name) => name.endsWith('.lock')) ?? 'none')
}

await t.test('another process holds the lock: busy at once, or after the deadline, or when it lets go', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
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
  const before = performance.now()
  await t.rejects(publishDirectory(target, { files: { a: '2' }, lockTimeout: 100 }), { code: 'EAGAIN' })
  t.ok(performance.now() - before >= 95, 'waited for the deadline')
  const waiting = publishDirectory(target, { files: { a: '2' }, lockTimeout: 60_000 })
  holder.stdin.end()
  t.match(await waiting, { outcome: 'replaced' })
  t.equal(statSync(lockFile(parent)).ino, inode, 'the lock file is never another one')
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('a lock that is no file is refused; the lock ends with its holder', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  await publishDirectory(target, { files: {} })
  const path = lockFile(parent)
  const fd = openSync(path, 'r+')
  t.equal(tryLock(fd), true, 'nobody holds it after the call')
  const other = openSync(path, 'r+')
  t.equal(tryLock(other), false)
  rmSync(path)
  mkdirSync(path)
  await t.rejects(publishDirectory(target, { files: { a: '' } }), { code: 'EISDIR' })
  rmSync(path, { recursive: true })
  writeFileSync(path, '')
})

await t.test(
  'what is denied is reported as it is: no right to make a lock, or the lock of another user',
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
    await t.rejects(asNobody(), { ...denied, message: /: EACCES; .* is unchanged; give this user the right/ })
    t.same(kept(parent), [])
    await publishDirectory(target, { files: {} })
    await t.rejects(asNobody(), { ...denied, message: /EACCES; .* the lock file belongs to user 0: publish/ })
  },
)
