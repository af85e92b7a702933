/* ACLs and user attributes stay with their paths, on the real file systems; setfacl, getfacl, setfattr and getfattr set and read them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import {
  directoryPublication,
  filePublication,
  replaceDirectory,
  replaceFile,
} from '../../../src/durable/publish/replace.js'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { failing } from '../intercepted.js'
import { mounted, noLoop } from '../loop-disk.js'
import { contents, kept } from '../scratch.js'

const skip = noLoop('setfacl', 'setfattr', 'mkfs.xfs', 'mkfs.btrfs')

/** How to make a file system, and its size in MiB. */
const makers: Readonly<Record<'ext4' | 'xfs' | 'btrfs', [command: readonly string[], mebibytes: number]>> = {
  ext4: [['mkfs.ext4', '-q'], 16],
  xfs: [['mkfs.xfs', '-q'], 300],
  btrfs: [['mkfs.btrfs', '-q'], 128],
}

function setfacl(...args: readonly string[]): void {
  execFileSync('setfacl', args)
}

/** The ACL in short: `u::rw- u:1000:r-- g::--- m::r-- o::---`, default entries after it. */
function acl(path: string): string {
  const lines = execFileSync('getfacl', ['--absolute-names', '--numeric', '--omit-header', path], { encoding: 'utf8' })
  const short = (line: string): string =>
    line.replace(/\s*#.*/, '').replace(/(user|group|mask|other):/, (name) => `${name[0] ?? ''}:`)
  return lines.trim().split('\n').map(short).join(' ')
}

/** `name=value` of the user attributes. */
function attributes(path: string): string[] {
  const text = execFileSync('getfattr', ['--absolute-names', '-d', path], { encoding: 'utf8' })
  return text
    .split('\n')
    .filter((line) => line.startsWith('user.'))
    .sort()
}

const names = ['opened', 'plain', 'fresh', 'sub/inside', 'new/inside'] as const
const files = (text: string): Record<string, string> => Object.fromEntries(names.map((name) => [name, text]))

for (const type of ['ext4', 'xfs', 'btrfs'] as const) {
  await t.test(type, { skip }, async (t) => {
    const at = mounted(t, ...makers[type])

    await t.test('a directory', async (t) => {
      const target = join(at, 'certs')
      await replaceDirectory(target, { files: { opened: 'old', plain: 'old', 'sub/inside': 'old' } })
      setfacl('-m', 'u:1000:r', join(target, 'opened'))
      setfacl('-m', 'u:1001:rx', join(target, 'sub'))
      setfacl('-m', 'u:1000:rwx', target)
      setfacl('-d', '-m', 'u:1000:rwx', target)
      execFileSync('setfattr', ['-n', 'user.note', '-v', 'of the file', join(target, 'opened')])
      execFileSync('setfattr', ['-n', 'user.note', '-v', 'of the directory', target])
      t.equal(statSync(join(target, 'opened')).mode & 0o777, 0o640, 'the mask')
      const same = { files: { opened: 'old', plain: 'old', 'sub/inside': 'old' } }
      t.equal((await replaceDirectory(target, same)).outcome, 'unchanged', 'a mask is no drift of the mode')
      t.strictSame((await readPublication(new NodeFileSystem(), target))?.differences, [])

      const request = { files: files('new'), fileMode: 0o640 }
      t.equal((await replaceDirectory(target, request)).outcome, 'replaced')
      t.equal(
        acl(join(target, 'opened')),
        'u::rw- u:1000:r-- g::r-- m::r-- o::---',
        'the mode is as asked, the rest is kept',
      )
      t.equal(acl(join(target, 'plain')), 'u::rw- g::r-- o::---', 'had none')
      t.equal(acl(join(target, 'fresh')), 'u::rw- u:1000:rwx g::r-- m::r-- o::---', 'is new, and inherits')
      t.equal(acl(join(target, 'sub')), 'u::rwx u:1001:r-x g::r-x m::r-x o::r-x')
      t.equal(acl(join(target, 'sub/inside')), 'u::rw- g::r-- o::---')
      const byDefault = 'default:u::rwx default:u:1000:rwx default:g::r-x default:m::rwx default:o::r-x'
      t.equal(acl(target), `u::rwx u:1000:rwx g::r-x m::rwx o::r-x ${byDefault}`)
      t.equal(acl(join(target, 'new')), `u::rwx u:1000:rwx g::r-x m::r-x o::r-x ${byDefault}`)
      t.equal(acl(join(target, 'new/inside')), 'u::rw- u:1000:rwx g::r-- m::r-- o::---')
      t.strictSame(attributes(join(target, 'opened')), ['user.note="of the file"'])
      t.strictSame(attributes(target), ['user.note="of the directory"'])
      t.strictSame(attributes(join(target, 'fresh')), [])
      t.equal((await replaceDirectory(target, request)).outcome, 'unchanged')

      // A default ACL above the target: the target exists, and has lost or never had one.
      setfacl('-b', target)
      setfacl('-d', '-m', 'u:1002:rwx', at)
      t.equal((await replaceDirectory(target, { ...request, files: files('newer') })).outcome, 'replaced')
      t.equal(acl(target), 'u::rwx g::r-x o::r-x', 'had none')
      t.equal(acl(join(target, 'plain')), 'u::rw- g::r-- o::---')
      const created = join(at, 'created')
      t.equal((await replaceDirectory(created, request)).outcome, 'created')
      t.match(acl(created), /^u::rwx u:1002:rwx g::r-x m::r-x o::r-x default:u::rwx default:u:1002:rwx /)
      t.equal(acl(join(created, 'new/inside')), 'u::rw- u:1002:rwx g::r-- m::r-- o::---')
      t.equal((await replaceDirectory(created, request)).outcome, 'unchanged')
      setfacl('-k', at)
    })

    await t.test('a mode that changes, over an ACL that stays', async (t) => {
      const target = join(at, 'modes')
      await replaceDirectory(target, { files: { key: 'k' }, mode: 0o700 })
      setfacl('-m', 'u:1000:rx', target)
      setfacl('-m', 'u:1000:r', join(target, 'key'))
      await replaceDirectory(target, { files: { key: 'k' }, mode: 0o750, fileMode: 0o644, owner: { uid: 7, gid: 8 } })
      t.equal(acl(target), 'u::rwx u:1000:r-x g::r-x m::r-x o::---')
      t.equal(acl(join(target, 'key')), 'u::rw- u:1000:r-- g::r-- m::r-- o::r--')
      t.strictSame([statSync(target).uid, statSync(join(target, 'key')).gid], [7, 8])
    })

    await t.test('a file', async (t) => {
      const file = join(at, 'pod.yaml')
      await replaceFile(file, 'old')
      setfacl('-m', 'u:1000:r', file)
      execFileSync('setfattr', ['-n', 'user.note', '-v', 'kept', file])
      t.equal((await replaceFile(file, 'old')).outcome, 'unchanged')
      t.equal((await replaceFile(file, 'new')).outcome, 'replaced')
      t.equal(acl(file), 'u::rw- u:1000:r-- g::--- m::r-- o::---')
      t.strictSame(attributes(file), ['user.note="kept"'])
      setfacl('-b', file)
      setfacl('-d', '-m', 'u:1002:rw', at)
      await replaceFile(file, 'newer', { mode: 0o640 })
      t.equal(acl(file), 'u::rw- g::r-- o::---', 'had none')
      await replaceFile(join(at, 'first'), 'new', { mode: 0o640 })
      t.equal(acl(join(at, 'first')), 'u::rw- u:1002:rw- g::r-- m::r-- o::---', 'is new, and inherits')
      setfacl('-k', at)
    })

    await t.test('the form of links', async (t) => {
      const target = join(at, 'links')
      const published = (text: string, mode = 0o755) =>
        replaceDirectory(target, { files: { opened: text, plain: text }, publish: 'symlink', mode })
      await published('old')
      setfacl('-m', 'u:1000:rx', target)
      setfacl('-m', 'u:1000:r', join(target, 'opened'))
      const own = 'u::rwx u:1000:r-x g::r-x m::r-x o::r-x'
      t.equal((await published('old')).outcome, 'unchanged')
      await published('new')
      t.equal(acl(join(target, 'opened')), 'u::rw- u:1000:r-- g::--- m::r-- o::---')
      t.equal(acl(join(target, 'plain')), 'u::rw- g::--- o::---')
      t.equal(acl(target), own)
      await published('newer', 0o700)
      t.equal(acl(target), 'u::rwx u:1000:r-x g::--- m::r-x o::---', 'the mode changes, the ACL does not')
      t.equal((await published('newer', 0o700)).outcome, 'unchanged')
      t.strictSame((await readPublication(new NodeFileSystem(), target))?.differences, [])
    })
  })
}

await t.test('a user who may not write to an owned file keeps its attributes', { skip }, async (t) => {
  const at = mounted(t, ...makers.ext4)
  chownSync(at, 65534, 65534)
  const file = join(at, 'file')
  writeFileSync(file, 'old')
  chownSync(file, 65534, 65534)
  execFileSync('setfattr', ['-n', 'user.note', '-v', 'kept', file])
  chmodSync(file, 0o400)
  process.setegid?.(65534)
  process.seteuid?.(65534)
  try {
    const [outcome] = await publish([filePublication(new NodeFileSystem(), file, 'new', { mode: 0o400 })])
    t.match(outcome, { outcome: 'replaced' }, JSON.stringify(outcome))
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
  t.strictSame(attributes(file), ['user.note="kept"'])
})

await t.test('what cannot be kept is refused, and nothing has changed', { skip }, async (t) => {
  const at = mounted(t, ...makers.ext4)
  const target = join(at, 'certs')
  const [file, inside] = [join(at, 'pod.yaml'), join(target, 'sub/key')]
  await replaceDirectory(target, { files: { 'sub/key': 'old' } })
  await replaceFile(file, 'old')
  setfacl('-m', 'u:1000:r', inside, file)
  for (const code of ['ENOTSUP', 'EPERM', 'ENOSPC', 'ERANGE', 'EDQUOT']) {
    const { fs } = failing('setExtendedAttribute', code, 'fsetxattr')
    const outcomes = await publish([
      directoryPublication(fs, { target, files: { 'sub/key': 'new' } }),
      filePublication(fs, file, 'new', {}),
    ])
    const error = { name: 'DurableWriteError', code, syscall: 'fsetxattr', published: false, advice: /.+/ }
    t.match(outcomes, [
      { error: { ...error, path: inside, message: new RegExp(`could not keep the ACL of ${inside}`) } },
      { error: { ...error, path: file } },
    ])
    t.strictSame(contents(target), { 'sub/key': 'old' })
    t.equal(acl(file), 'u::rw- u:1000:r-- g::--- m::r-- o::---')
    t.strictSame(kept(at), ['lock', 'lock', 'record', 'record'])
  }
})
