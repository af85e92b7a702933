/*
 * How the real file system opens things: it takes no existing entry for new, follows no link, waits for no fifo, and no child inherits a
 * descriptor, which would keep the lock after our death.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import * as native from '../../../native/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { walkNoSymlinks } from '../../../src/durable/posix/open-path.js'
import { scratch } from '../../durable/scratch.js'

const fs = new NodeFileSystem()

interface Place {
  readonly root: string
  /** The parent, open. */
  readonly parent: number
}

async function place(t: Test): Promise<Place> {
  const root = scratch(t)
  mkdirSync(join(root, 'directory'))
  mkdirSync(join(root, 'victims'))
  writeFileSync(join(root, 'victim'), 'precious')
  writeFileSync(join(root, 'file'), 'there')
  symlinkSync('victim', join(root, 'link'))
  symlinkSync('nobody', join(root, 'dangling'))
  symlinkSync('victims', join(root, 'linked'))
  execFileSync('mkfifo', [join(root, 'fifo')])
  const parent = await fs.openPath(root)
  t.teardown(() => fs.close(parent))
  return { root, parent }
}

await t.test('no descriptor goes to a child', async (t) => {
  const { root, parent } = await place(t)
  const opened = {
    openPath: await fs.openPath(root),
    'openPath, without openat2': await walkNoSymlinks(root),
    openDirectory: await fs.openDirectory(parent, 'directory'),
    openFile: await fs.openFile(parent, 'file'),
    openAppend: await fs.openAppend(parent, 'file'),
    createFile: await fs.createFile(parent, 'new'),
    openLock: await fs.openLock(parent, 'lock'),
    'openLock of one that is there': await fs.openLock(parent, 'lock'),
  }
  t.equal(fs.tryLock(opened.openLock), true)
  // It lives until its standard input ends.
  const child = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.write('x')
  await once(child.stdout, 'data')
  for (const [name, descriptor] of Object.entries(opened)) {
    const path = readlinkSync(`/proc/self/fd/${descriptor}`)
    const theirs = (): string => readlinkSync(`/proc/${child.pid ?? 0}/fd/${descriptor}`)
    t.throws(theirs, { code: 'ENOENT' }, `${name}: ${path}`)
  }
  for (const descriptor of Object.values(opened)) await fs.close(descriptor)
  const another = await fs.openLock(parent, 'lock')
  t.equal(fs.tryLock(another), true, 'the lock has ended with us, though the child lives on')
  await fs.close(another)
  child.stdin.end()
  await once(child, 'close')
})

await t.test('createFile refuses an existing entry', async (t) => {
  const { root, parent } = await place(t)
  for (const name of ['file', 'link', 'dangling', 'directory', 'fifo']) {
    await t.rejects(fs.createFile(parent, name), { code: 'EEXIST' }, name)
  }
  t.equal(readFileSync(join(root, 'file'), 'utf8'), 'there')
  t.throws(() => lstatSync(join(root, 'nobody')), { code: 'ENOENT' })
})

await t.test('no link is followed', async (t) => {
  const { root, parent } = await place(t)
  for (const name of ['link', 'dangling']) {
    await t.rejects(fs.openFile(parent, name), { code: 'ELOOP' }, `openFile of ${name}`)
    await t.rejects(fs.openAppend(parent, name), { code: 'ELOOP' }, `openAppend of ${name}`)
    await t.rejects(fs.openLock(parent, name), { code: 'ELOOP' }, `openLock of ${name}`)
  }
  await t.rejects(fs.openDirectory(parent, 'linked'), { code: /^(ELOOP|ENOTDIR)$/ })
  await t.rejects(fs.openPath(join(root, 'linked')), { code: 'ELOOP' }, 'the last part of a path')
  mkdirSync(join(root, 'victims', 'below'))
  await t.rejects(fs.openPath(join(root, 'linked', 'below')), { code: 'ELOOP' }, 'and one before')
  t.throws(() => lstatSync(join(root, 'nobody')), { code: 'ENOENT' }, 'nothing has come to be')
})

/** Milliseconds after which an open counts as waiting: it is one system call. */
const patience = 10_000

await t.test('no fifo is waited for', { timeout: 60_000 }, async (t) => {
  const { root, parent } = await place(t)
  const open = async (opening: Promise<number>): Promise<string> => {
    const state = { waits: false }
    const timer = setTimeout(() => {
      state.waits = true
      // Both ends, so that a process that waits for one goes on.
      closeSync(openSync(join(root, 'fifo'), constants.O_RDWR | constants.O_NONBLOCK))
    }, patience)
    try {
      const descriptor = await opening
      const { type } = await fs.attributes(descriptor)
      await fs.close(descriptor)
      return state.waits ? 'waits' : type
    } catch (error) {
      return state.waits ? 'waits' : ((error as NodeJS.ErrnoException).code ?? '')
    } finally {
      clearTimeout(timer)
    }
  }
  t.equal(await open(fs.openFile(parent, 'fifo')), 'other')
  t.equal(await open(fs.openLock(parent, 'fifo')), 'other')
  t.equal(await open(fs.openAppend(parent, 'fifo')), 'other')
})

await t.test('renames have their whole effect, or none', async (t) => {
  const { root, parent } = await place(t)
  const text = (name: string): string => readFileSync(join(root, name), 'utf8')
  await t.rejects(native.rename(parent, 'file', parent, 'victim', 'noreplace'), { code: 'EEXIST' })
  t.same([text('file'), text('victim')], ['there', 'precious'])
  await t.rejects(native.rename(parent, 'file', parent, 'nothing', 'exchange'), { code: 'ENOENT' })
  await native.rename(parent, 'file', parent, 'victim', 'exchange')
  t.same([text('file'), text('victim')], ['precious', 'there'])
  await native.rename(parent, 'file', parent, 'victim', 'replace')
  t.equal(text('victim'), 'precious')
})
