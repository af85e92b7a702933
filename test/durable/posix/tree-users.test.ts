/** Who uses a tree, and who can write to it, by the texts of procfs: real files, other processes as they would be told. */
// Own process: it counts the descriptors of its process.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { mountIdOf } from '../../../src/durable/posix/mount.js'
import { userOfTree, writersInTree } from '../../../src/durable/posix/tree-users.js'
import { scratch } from '../scratch.js'
import { endAtOnce, fails, information, proc, type ProcessTexts, type World } from './proc-texts.js'

const fs = new NodeFileSystem()
/** A number that no mount here has: as of an unmounted one with an open file. */
const noMount = 2 ** 30

interface Scene {
  readonly parent: number
  readonly root: string
  /** Of the mount that the tree is on. */
  readonly mount: number
  readonly self: ProcessTexts
}

/** `tree/sub/file`, which has another name beside the tree. */
function scene(t: Test): Scene {
  const root = realpathSync(scratch(t))
  mkdirSync(join(root, 'tree', 'sub'), { recursive: true })
  writeFileSync(join(root, 'tree', 'sub', 'file'), '')
  linkSync(join(root, 'tree', 'sub', 'file'), join(root, 'other-name'))
  writeFileSync(join(root, 'beside'), '')
  const parent = openSync(root, 'r')
  t.teardown(() => closeSync(parent))
  const mount = mountIdOf(parent)
  // As the kernel has it: device and mount point are this machine's.
  const mounts = realMounts()
  return { parent, root, mount, self: { mounts } }
}

function realMounts(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line !== '')
}

const inode = (path: string): bigint => statSync(path, { bigint: true }).ino

const kept: ProcessTexts = { mounts: [] }

await t.test('who uses it: by name, by another name, and by no name at all', async (t) => {
  const { parent, root, mount, self } = scene(t)
  const tree = join(root, 'tree')
  const file = inode(join(tree, 'sub', 'file'))
  const rows: [string, ProcessTexts, string | undefined][] = [
    ['nobody', {}, undefined],
    ['itself', { cwd: tree }, `its working directory (${tree})`],
    ['below', { cwd: `${tree}/sub` }, `its working directory (${tree}/sub)`],
    ['its root', { root: tree, cwd: tree, mounts: [] }, `its working directory (${tree})`],
    ['a name that begins alike', { cwd: `${tree}-2` }, undefined],
    ['beside it', { fds: { '3': [`${root}/beside`, information(mount, inode(join(root, 'beside')))] } }, undefined],
    [
      'another name of a file in it',
      { fds: { '3': [`${root}/other-name`, information(mount, file)] } },
      `an open file (${root}/other-name)`,
    ],
    [
      'the tree itself, under a name that it had',
      { fds: { '3': ['/old', information(mount, inode(tree))] } },
      'an open file (/old)',
    ],
    ['another file by such a mount', { fds: { '3': ['/old', information(noMount, 1)] } }, undefined],
    [
      'a name in it, before Linux 5.14',
      { fds: { '3': [`${tree}/x`, information(mount)] } },
      `an open file (${tree}/x)`,
    ],
    ['a name beside it, before Linux 5.14', { fds: { '3': [`${root}/x`, information(mount)] } }, undefined],
  ]
  const before = readdirSync('/proc/self/fd').length
  for (const [name, process, use] of rows) {
    await t.test(name, async (t) => {
      proc(t, { processes: { self, '1': kept, '7': process } })
      const expected = use && `process 7 (program-7) has it as ${use}`
      t.equal(await userOfTree(fs, parent, 'tree'), expected)
      t.equal(await userOfTree(fs, parent, 'tree', true), expected, 'of what is seen')
    })
  }
  t.equal(readdirSync('/proc/self/fd').length, before, 'nothing is left open')
})

await t.test('a file in it by a mount that is in no table, until its descriptor is closed', async (t) => {
  const { parent, root, self } = scene(t)
  const path = join(root, 'tree/sub/file')
  const user = spawn('sh', ['-c', 'exec 3<"$0"; echo; exec cat', path], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(user.stdout, 'data')
  const told: ProcessTexts = { fds: { '3': ['/old', information(noMount, inode(path))] } }
  proc(t, { processes: { self, '1': kept, [String(user.pid)]: told } })
  const use = `process ${user.pid} (program-${user.pid}) has it as an open file (/old)`
  t.equal(await userOfTree(fs, parent, 'tree'), use)
  user.kill()
  await once(user, 'close')
  t.equal(await userOfTree(fs, parent, 'tree'), undefined, 'the scan met the process before its end')
})

await t.test('userOfTree names a process that it cannot inspect, unless onlySeen', async (t) => {
  const { parent, self } = scene(t)
  endAtOnce(t, 2_000)
  const processes = { self, '1': kept, '7': {} }
  const sockets = Object.fromEntries(Array.from({ length: 600_000 }, (_, fd) => [`${fd}`, ['socket:[1]', ''] as const]))
  const rows: [World, string][] = [
    [{ processes: { ...processes, '7': { root: fails('EACCES') } } }, 'process 7 may not be looked at (EACCES)'],
    [{ processes, pidNamespace: 'pid:[4026532000]' }, 'only the processes of this PID namespace are seen'],
    [{ processes: { self, '7': {} } }, '/proc hides the processes of other users (hidepid)'],
    [{ processes: { self, '1': kept, '9': { maps: new Promise(() => undefined) } } }, 'process 9 does not answer'],
    [
      { processes: { ...processes, '7': { fds: sockets } } },
      'more is open, mapped and mounted, or in it, than is looked at',
    ],
  ]
  for (const [world, unseen] of rows) {
    await t.test(unseen, async (t) => {
      proc(t, world)
      t.equal(await userOfTree(fs, parent, 'tree'), unseen)
      t.equal(await userOfTree(fs, parent, 'tree', true), undefined)
      t.strictSame(await writersInTree(fs, parent, 'tree'), { writer: undefined, unseen })
    })
  }
})

await t.test('writersInTree finds a descriptor for writing, but not of a removed file', async (t) => {
  const { parent, root, mount, self } = scene(t)
  const tree = join(root, 'tree')
  const path = `${tree}/sub/file`
  const file = inode(path)
  const writing = (name: string): ProcessTexts => ({ fds: { '3': [name, information(mount, file, '0100001')] } })
  const rows: [string, ProcessTexts, string | undefined][] = [
    ['for reading', { fds: { '3': [path, information(mount, file)] } }, undefined],
    ['for writing', writing(path), `process 7 (program-7) has ${path} as an open file, for writing`],
    ['removed', writing(`${tree}/x (deleted)`), undefined],
  ]
  for (const [name, process, writer] of rows) {
    await t.test(name, async (t) => {
      proc(t, { processes: { self, '1': kept, '7': process } })
      t.strictSame(await writersInTree(fs, parent, 'tree'), { writer, unseen: undefined })
    })
  }
})

await t.test(
  'a file of another file system that was unmounted, with the number of a file in it, is no part of it',
  { skip: process.geteuid?.() === 0 ? false : 'mounting needs root: run by CI' },
  async (t) => {
    const root = realpathSync(scratch(t))
    for (const name of ['ours', 'theirs', 'bound']) mkdirSync(join(root, name))
    for (const name of ['ours', 'theirs']) execFileSync('mount', ['-t', 'tmpfs', 'none', join(root, name)])
    t.teardown(() => execFileSync('umount', [join(root, 'ours')]))
    const file = join(root, 'ours/tree/file')
    mkdirSync(join(root, 'ours/tree'))
    writeFileSync(file, '')
    // Each tmpfs counts for itself.
    const theirs = Array.from({ length: 20 }, (_, index) => join(root, 'theirs', String(index)))
    for (const path of theirs) writeFileSync(path, '')
    const same = theirs.find((path) => inode(path) === inode(file)) ?? ''
    const parent = openSync(join(root, 'ours'), 'r')
    t.teardown(() => closeSync(parent))
    const uses = async (path: string, meanwhile: () => void): Promise<string | undefined> => {
      const user = spawn('sh', ['-c', 'exec 3<"$0"; echo; exec cat', path], { stdio: ['pipe', 'pipe', 'inherit'] })
      await once(user.stdout, 'data')
      meanwhile()
      const found = await userOfTree(fs, parent, 'tree', true)
      user.kill()
      await once(user, 'close')
      return found
    }
    const isUsed = /^process \d+ \(cat\) has it as an open file/
    t.match(await uses(file, () => undefined), isUsed)
    const unmount = (name: string) => () => void execFileSync('umount', ['--lazy', join(root, name)])
    t.equal(await uses(same, unmount('theirs')), undefined)
    execFileSync('mount', ['--bind', join(root, 'ours'), join(root, 'bound')])
    t.match(await uses(join(root, 'bound/tree/file'), unmount('bound')), isUsed, 'by another mount of its own')
  },
)
