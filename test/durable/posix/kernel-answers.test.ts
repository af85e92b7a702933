/** What the calls of the file system make of answers that this machine does not give: of other kernels, limits, mounts and disks. */
// Own process: it counts the descriptors of its process.
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { answer, failureOf, memoryAt } from '../../native/libc-calls.js'
import { clock } from '../../../src/clock.js'
import { modeAt } from '../../../src/durable/posix/file-system.js'
import { attributesOf, errorAt, listEntries, lookAt } from '../../../src/durable/posix/calls.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { idFromProcess, isProven, mountIdOf, mountOf } from '../../../src/durable/posix/mount.js'
import { openOnMount, openNoSymlinks, pathOf, walkNoSymlinks } from '../../../src/durable/posix/open-path.js'
import { scratch, scratchWith } from '../scratch.js'
import { texts } from '../system-calls.js'

function opened(t: Test, path: string): number {
  const descriptor = openSync(path, 'r')
  t.teardown(() => closeSync(descriptor))
  return descriptor
}

await t.test('a kernel or a seccomp profile without openat2: another way; any other failure is one', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'a'))
  const parent = opened(t, root)
  for (const code of ['ENOSYS', 'EPERM'] as const) {
    answer(t, { openat2: () => code })
    closeSync(await openNoSymlinks(join(root, 'a')))
    t.equal(await openOnMount(parent, 'a', constants.O_DIRECTORY), undefined, code)
  }
  for (const code of ['EACCES', 'EXDEV'] as const) {
    answer(t, { openat2: () => code })
    t.equal(await failureOf(openNoSymlinks(join(root, 'a'))), `openat2 ${code}`)
    await t.rejects(openOnMount(parent, 'a', constants.O_DIRECTORY), { code, path: join(root, 'a') })
  }
})

await t.test('without openat2 a directory is opened by its name, and nothing else that has it', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'directory'))
  writeFileSync(join(root, 'file'), '')
  symlinkSync('directory', join(root, 'link'))
  const parent = opened(t, root)
  const fs = new NodeFileSystem()
  answer(t, { openat2: () => 'ENOSYS' })
  const opening = (name: string): Promise<unknown> =>
    failureOf(fs.openDirectory(parent, name).then((directory) => fs.close(directory)))
  t.equal(await opening('directory'), undefined)
  t.equal(await opening('file'), 'open ENOTDIR')
  t.equal(await opening('none'), 'open ENOENT')
  t.match(await opening('link'), /^open (ENOTDIR|ELOOP)$/)
  const before = readdirSync('/proc/self/fd').length
  const top = opened(t, '/')
  for (const open of [() => fs.openDirectory(top, 'proc'), () => fs.openFile(top, 'proc')])
    t.equal(await failureOf(open()), 'openat2 EXDEV', 'what is on another mount')
  t.equal(readdirSync('/proc/self/fd').length, before + 1, 'and is not left open')
})

await t.test('walkNoSymlinks leaves only its result open', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'a', 'b'), { recursive: true })
  symlinkSync('a', join(root, 'link'))
  const before = readdirSync('/proc/self/fd').length
  closeSync(await walkNoSymlinks(join(root, 'a', 'b')))
  t.equal(await failureOf(walkNoSymlinks(join(root, 'a', 'none', 'x'))), 'open ENOENT')
  t.equal(await failureOf(walkNoSymlinks(join(root, 'link', 'b'))), 'open ELOOP')
  t.equal(readdirSync('/proc/self/fd').length, before)
})

await t.test('a path as a person knows it', async (t) => {
  const root = scratch(t)
  const [directory, top] = [opened(t, root), opened(t, '/')]
  t.strictSame(
    [pathOf(directory), pathOf(directory, 'a'), pathOf(top), pathOf(top, 'a'), pathOf(999_999), pathOf(999_999, 'a')],
    [root, join(root, 'a'), '/', '/a', 'descriptor 999999', 'descriptor 999999/a'],
  )
})

await t.test('a failure has its code, its path, and both in its words', async (t) => {
  const failed = (fields: object): Error => Object.assign(new Error('libuv'), { syscall: 'write' }, fields)
  const rows: [object, string][] = [
    [{ code: 'ENOSPC', errno: -28 }, 'ENOSPC'],
    // libuv has no name for it.
    [{ code: 'Unknown system error -122', errno: -122 }, 'EDQUOT'],
    [{ code: 'UNKNOWN', errno: -122 }, 'EDQUOT'],
    [{ code: 'UNKNOWN', errno: -117 }, 'EUCLEAN'],
    [{ code: 'Unknown', errno: undefined }, 'Unknown'],
  ]
  for (const [fields, code] of rows) {
    t.match(errorAt('/a/b', failed(fields)), { code, path: '/a/b', message: `write /a/b: ${code}` })
  }
  const defect = new TypeError('a defect')
  t.equal(errorAt('/a', defect), defect)
  t.notOk('code' in defect)
  t.equal(defect.message, 'a defect')
})

await t.test('lookAt answers nothing, or type and identity, and no birth', async (t) => {
  const [root, file] = scratchWith(t, 'file')
  writeFileSync(file, 'x')
  mkdirSync(join(root, 'directory'))
  symlinkSync('file', join(root, 'symlink'))
  execFileSync('mkfifo', [join(root, 'other')])
  t.equal(await lookAt(join(root, 'none')), undefined)
  t.equal(await failureOf(lookAt(join(file, 'x'))), 'lstat ENOTDIR')
  t.match(await lookAt(file), { type: 'file', size: 1, birth: 0n })
  const entries = await listEntries(() => root, root)
  t.strictSame(entries.map(({ name }) => name).sort(), ['directory', 'file', 'other', 'symlink'])
  for (const { name, type } of entries) t.equal(type, name)
})

await t.test('the mode of a path: its own, or where an ACL has the group bits, what that says', async (t) => {
  // Of the owner rw, of the group r, the mask rw, of others nothing (include/uapi/linux/posix_acl_xattr.h).
  const list = Buffer.from('0200000001000600ffffffff04000400ffffffff10000600ffffffff20000000ffffffff', 'hex')
  answer(t, {
    lgetxattr(path, name, value) {
      if (path !== '/listed' || name !== 'system.posix_acl_access') return 'ENODATA'
      ;(value as Uint8Array).set(list)
      return list.length
    },
  })
  t.strictSame(await Promise.all(['/listed', '/plain'].map((path) => modeAt(path, 0o660))), [0o640, 0o660])
})

await t.test('mountOf finds a mount’s ID without statx, and caches its details for a second', async (t) => {
  const descriptor = opened(t, '/')
  const known = idFromProcess(descriptor)
  answer(t, { statx: () => 'ENOSYS' })
  t.equal(mountIdOf(descriptor), known)
  const id = 2 ** 20
  answer(t, {
    statx(...args) {
      const view = memoryAt(args[4])
      view.setUint32(0, 0x1800, true)
      view.setBigUint64(144, BigInt(id), true)
      return 0
    },
  })
  const now = clock.now()
  let later = 5_000
  t.intercept(clock, 'now', { value: () => now + later })
  const kinds = ['xfs', 'tmpfs', 'btrfs', undefined]
  const told = kinds.map((type) => {
    texts(t, { '/proc/self/mountinfo': type === undefined ? '' : `${id} 1 0:9 /r /m rw - ${type} a rw\n` })
    const fresh = mountOf(descriptor)
    later += 900
    texts(t, { '/proc/self/mountinfo': '' })
    t.strictSame(mountOf(descriptor), fresh, 'not read again at once: a node can have thousands')
    t.equal(fresh.proven, type === 'xfs' || type === 'btrfs', `${type}`)
    later += 200
    return fresh
  })
  t.strictSame(told, [
    { id, type: 'xfs', device: '0:9', root: '/r', mountPoint: '/m', proven: true, lasting: true },
    { id, type: 'tmpfs', device: '0:9', root: '/r', mountPoint: '/m', proven: false, lasting: false },
    { id, type: 'btrfs', device: '0:9', root: '/r', mountPoint: '/m', proven: true, lasting: true },
    { id, type: 'unknown', device: 'unknown', root: '/', mountPoint: '/', proven: false, lasting: false },
  ])
})

await t.test('what is open has a birth only where statx(2) answers, and its file system keeps one', async (t) => {
  const descriptor = opened(t, '/')
  const { inode, type, device } = attributesOf(descriptor)
  answer(t, { statx: () => 'ENOSYS' })
  t.match(attributesOf(descriptor), { inode, type, device, birth: 0n, flags: 0 })
  for (const [told, birth] of [
    [0x7ff, 0n],
    [0xfff, 5_000_000_007n],
  ] as const) {
    answer(t, {
      statx(...args) {
        const view = memoryAt(args[4])
        view.setUint32(0, told, true)
        view.setUint32(8, 0x800, true)
        view.setBigInt64(80, 5n, true)
        view.setUint32(88, 7, true)
        return 0
      },
    })
    t.match(attributesOf(descriptor), { birth, flags: 0x800 })
    t.equal(mountOf(descriptor).proven && birth === 0n, false)
  }
})

await t.test('ext4 is proven where its device has a journal', async (t) => {
  const uevent = 'MAJOR=8\nMINOR=99\nDEVNAME=sdx99\nDEVTYPE=partition\n'
  const proven = (task: string, type = 'ext4'): boolean => {
    texts(t, { '/sys/dev/block/8:99/uevent': uevent, '/sys/fs/ext4/sdx99/journal_task': task })
    return isProven({ type, device: '8:99', options: ['rw'] })
  }
  t.strictSame([proven('312\n'), proven('<none>\n'), proven('312\n', 'ext3')], [true, false, false])
})
