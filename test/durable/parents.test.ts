/** The parent of a target: when a publication refuses it, how often it looks it up, and whether it is still there at the end. */
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { FileSystem, Mount } from '../../src/durable/file-system.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, planDirectory, planOf } from '../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { codeOf } from '../../src/errors.js'
import { failing, failure, intercepted } from './intercepted.js'
import { sameTarget } from '../../src/durable/target/site.js'
import { ModelDisk, rootInode } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { makeDirectory } from '../crash/model/scenario.js'
import { contents, scratch, scratchWith } from './scratch.js'

async function failed(fs: FileSystem, target: string, options: PublicationOptions): Promise<unknown> {
  const [outcome] = await publish([directoryPublication(fs, { target, files: { a: '1' }, ...options })])
  return outcome && 'error' in outcome ? outcome.error : outcome
}

/** A file system without proven durability. */
class Unproven extends NodeFileSystem {
  override async mount(directory: number): Promise<Mount> {
    return { ...(await super.mount(directory)), type: 'odd', proven: false }
  }
}

await t.test('requireProven refuses an unproven file system before it makes anything there', async (t) => {
  const [root, target] = scratchWith(t, 'missing/certs')
  const refused = await failed(new Unproven(), target, { requireProven: true })
  t.equal(codeOf(refused), 'ENOTSUP')
  t.match(refused, {
    reason: 'TargetUnfit',
    message: /certs is on odd, where durability is not proven .*or remove requireProven$/,
  })
  t.strictSame(readdirSync(root), [])
  t.match(await failed(new Unproven(), target, {}), { outcome: 'created', unproven: true })
  const proven = new ModelProcess(new ModelDisk())
  t.match(await failed(proven, '/certs', { requireProven: true }), { outcome: 'created', unproven: undefined })
})

await t.test('parents false reports the first missing parent before all other errors', async (t) => {
  const root = scratch(t)
  const calls: string[] = []
  const { fs } = intercepted((call) => {
    calls.push(call)
    if (call === 'mount') throw failure('EIO', 'fstatfs')
  })
  for (const [below, missing] of [
    ['a', 'a'],
    ['a/b', 'a'],
    ['a/b/c', 'a'],
  ] as const) {
    const path = join(root, missing)
    const target = join(root, below, 'certs')
    const error = {
      code: 'ENOENT',
      path,
      message: new RegExp(`^${path} does not exist, and ${target} would be in it`),
    }
    t.match(await failed(fs, target, { parents: false }), error, below)
  }
  mkdirSync(join(root, 'a'))
  t.match(await failed(fs, join(root, 'a/b/c/certs'), { parents: false }), { path: join(root, 'a/b') })
  t.notOk(calls.includes('mount'))
  t.match(await failed(fs, join(root, 'a/certs'), { parents: false }), { code: 'EIO' }, 'this one is there')
})

await t.test('a directory is listed once, however many targets of a batch it holds', async (t) => {
  const root = scratch(t)
  let listed = 0
  const { fs } = intercepted((call) => {
    if (call === 'list') listed += 1
  })
  const batch = ['a', 'b', 'c'].map((name) => directoryPublication(fs, { target: join(root, name), files: { a: '1' } }))
  t.match(await publish(batch), [{ outcome: 'created' }, { outcome: 'created' }, { outcome: 'created' }])
  t.equal(listed, 1)
})

await t.test('a directory above that cannot be looked at may be a target', async (t) => {
  for (const [code, answer] of [
    ['EACCES', { code: 'EACCES' }],
    ['ENOTDIR', { outcome: 'created' }],
    ['EIO', { code: 'EIO' }],
  ] as const) {
    const root = scratch(t)
    const { fs } = intercepted((call, [path]) => {
      if (call === 'lookPath') throw failure(code, 'lstat')
      if (call === 'openPath' && path === dirname(root)) throw failure('EACCES', 'openat2')
    })
    t.match(await failed(fs, join(root, 'certs'), {}), answer, code)
  }
})

await t.test('a preview of a target whose parent is missing makes none', async (t) => {
  const root = scratch(t)
  const { fs } = failing('accessPath', 'EACCES', 'access')
  for (const below of ['one/certs', 'one/two/certs']) {
    const request = { target: join(root, below), files: { a: '1' } }
    t.match(await planDirectory(request), { outcome: 'created', changes: [{ path: 'a', change: 'add' }] })
    t.strictSame(readdirSync(root), [])
    await t.rejects(planDirectory({ ...request, parents: false }), { code: 'ENOENT', path: join(root, 'one') })
    t.match(await planOf(directoryPublication(fs, request)), { outcome: 'created' })
    await t.rejects(planOf(directoryPublication(fs, request), true), { code: 'EACCES' }, 'as this user, who may not')
  }
})

await t.test(
  'a publication whose parent is renamed meanwhile reports that its path no longer leads to the content',
  async (t) => {
    for (const at of ['rename', 'the mutation that asks the journal']) {
      const root = scratch(t)
      const [before, after] = [join(root, 'before'), join(root, 'after')]
      mkdirSync(before)
      const calls: string[] = []
      const { fs, open } = intercepted((call) => {
        const isAsking = call === 'createFile' && calls.includes('rename')
        if ((at === 'rename' ? call === at : isAsking) && existsSync(before)) renameSync(before, after)
        calls.push(call)
      })
      t.match(await failed(fs, join(before, 'certs'), {}), {
        code: 'ESTALE',
        syscall: 'openat2',
        path: join(before, 'certs'),
        published: true,
        message:
          /a directory above .*before\/certs was renamed or removed while it was published; the new content is in that/,
      })
      t.strictSame(contents(join(after, 'certs')), { a: '1' }, at)
      t.equal(open.size, 0)
    }
  },
)

await t.test('the same inode of another file system is another directory', async (t) => {
  const disk = new ModelDisk()
  disk.mountSecond('other', { mode: 0o755, uid: 0, gid: 0, label: '', extended: '' })
  const process = new ModelProcess(disk)
  const inodeOf = async (path: string) => {
    const opened = await process.openPath(path)
    return process.attributes(opened).finally(() => process.close(opened))
  }
  t.equal((await inodeOf('/')).inode, (await inodeOf('/other')).inode)
  t.equal(await sameTarget(process, '/certs', ['/missing/certs', '/keys', '/other/certs']), undefined)
  t.equal(await sameTarget(process, '/certs', ['/other/certs', '/certs']), '/certs')
  t.equal(process.descriptors, 0)
})

await t.test('a parent of the same number on another device is another one', async (t) => {
  let isRenamed = false
  class Remounted extends ModelProcess {
    override async attributes(descriptor: number) {
      const found = await super.attributes(descriptor)
      return isRenamed ? { ...found, device: found.device + 1 } : found
    }
  }
  const process = new Remounted(new ModelDisk())
  process.before = (call) => {
    isRenamed ||= call === 'rename'
  }
  t.match(await failed(process, '/certs', {}), { code: 'ESTALE', published: true })
})

await t.test('a new place that may not be durable is not recorded, and is synced by the next run', async (t) => {
  const disk = new ModelDisk()
  const directory = makeDirectory(disk, '/before', 0o755)
  t.match(await failed(new ModelProcess(disk), '/before/certs', {}), { outcome: 'created' })
  const moved: [string, number | undefined][] = [
    ['before', undefined],
    ['after', directory],
  ]
  disk.link(rootInode, moved, 'mv')
  const attempt = async (code?: string): Promise<unknown> => {
    const process = new ModelProcess(disk)
    let syncs = 0
    process.before = (call) => {
      if (call !== 'sync') return
      syncs += 1
      if (code !== undefined) throw failure(code, 'fsync')
    }
    const outcome = await failed(process, '/after/certs', {})
    return codeOf(outcome) ?? syncs
  }
  t.equal(await attempt('EIO'), 'EIO')
  t.not(await attempt(), 0)
  t.equal(await attempt(), 0)
})
