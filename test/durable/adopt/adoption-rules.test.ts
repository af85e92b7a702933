/** Each of the seven checks of an adoption by itself: which directories pass, wait, and fail; adoption.test.ts has them in their order. */
import { chmodSync, chownSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type AdoptionLook, adoptionRules } from '../../../src/durable/adopt/adoption-rules.js'
import type { AdoptionCheck } from '../../../src/durable/types.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import type { ExtendedAttributes, FileSystem, Mount, Writers } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { Scope } from '../../../src/durable/path/scope.js'
import { Site } from '../../../src/durable/target/site.js'
import type { TreeEntry } from '../../../src/durable/path/tree.js'
import { access, byDefault, listOf } from '../../crash/model/access-lists.js'
import { failure, intercepted } from '../intercepted.js'
import { scratch } from '../scratch.js'
import { planFor } from '../plan.js'

const isRoot = process.getuid?.() === 0
const real = new NodeFileSystem()

const entry = (path: string, marks: Partial<TreeEntry> = {}): TreeEntry => ({
  path,
  type: path === '' ? 'directory' : 'file',
  mode: path === '' ? 0o755 : 0o640,
  ...real.user,
  sha256: path,
  ...marks,
})
const treeOf = (...entries: TreeEntry[]) => ({ digest: 'a', entries: [entry(''), ...entries] })

/** A directory `secrets/certs`, and what a check answers of it: its verdict and its message. */
async function scene(t: Test) {
  const root = join(scratch(t), 'secrets')
  const target = join(root, 'certs')
  mkdirSync(target, { recursive: true })
  const open = async (): Promise<Pick<AdoptionLook, 'site' | 'target' | 'attributes'>> => {
    const scope = new Scope(real)
    const site = new Site(scope, target)
    await site.resolve()
    await site.open({})
    const opened = await scope.keep(real.openDirectory(site.parent.directory, 'certs'))
    t.teardown(() => scope.closeAll())
    const attributes = await real.look(site.parent.directory, 'certs')
    return { site, attributes, target: () => Promise.resolve({ opened, tree: treeOf() }) }
  }
  let seen = await open()
  const plan = planFor(target, { files: { a: 'new' } })
  const look = (about: Partial<AdoptionLook>, entries?: readonly TreeEntry[]): AdoptionLook => ({
    fs: new Quiet(),
    path: target,
    name: 'certs',
    names: namesFor('certs'),
    busy: false,
    plan,
    ...seen,
    desired: treeOf(entry('a')),
    adopt: { replace: false },
    keepsOwners: false,
    ...(entries && {
      target: async () => ({ ...(await seen.target()), tree: { digest: 'a', entries } }),
    }),
    ...about,
  })
  const says = async (check: AdoptionCheck, about: Partial<AdoptionLook> = {}, entries?: readonly TreeEntry[]) => {
    try {
      const { verdict, message } = await adoptionRules[check].check(look(about, entries))
      return `${verdict}: ${message}`
    } catch (error) {
      return error instanceof DurableWriteError ? error.code : 'fails'
    }
  }
  /** After the parent was changed. */
  const again = async () => {
    seen = await open()
  }
  return { root, target, says, again, plan, attributes: seen.attributes }
}

/** Looks at no process. */
class Quiet extends NodeFileSystem {
  constructor(readonly found: Partial<Writers> = {}) {
    super()
  }
  override writersIn(): Promise<Writers> {
    return Promise.resolve({ writer: undefined, unseen: undefined, ...this.found })
  }
}

await t.test('who writes there is waited for, by exactly his name', async (t) => {
  const { root, target, says, attributes } = await scene(t)
  t.equal(await says('exists'), `passed: ${target} exists`)
  t.equal(await says('exists', { attributes: undefined }), `pending: ${target} does not exist`)
  const none = 'passed: no other writer is seen'
  const above = join(root, '..')
  for (const near of ['staging/cert-sync/secrets/other', 'staging/cert-sync/certs', 'staging/secrets/certs'])
    mkdirSync(join(above, near), { recursive: true })
  t.equal(await says('noOtherWriter'), none)
  const staging = join(above, 'staging/installer/secrets/certs')
  mkdirSync(staging, { recursive: true })
  t.equal(await says('noOtherWriter'), `pending: library-go's installer stages new content in ${staging}`)
  const busy = `pending: another process of holdfast has the lock of ${target}`
  t.equal(await says('noOtherWriter', { busy: true }), busy)
  const other = { name: 'other' }
  t.match(await says('noOtherWriter', other), /library-go's cert-sync stages/)

  const by = (found: Partial<Writers>) => ({ name: 'alone', fs: new Quiet(found) })
  t.equal(await says('noOtherWriter', by({ writer: 'process 7 writes' })), 'pending: process 7 writes')
  t.equal(await says('noOtherWriter', by({ unseen: 'no /proc' })), `${none}, but not everybody: no /proc`)
  const file = attributes && { ...attributes, type: 'file' as const }
  t.equal(await says('noOtherWriter', { ...by({ writer: 'process 7' }), attributes: file }), none, 'it is no directory')
  const inside = (path: TreeEntry) => says('noOtherWriter', by({}), [entry(''), entry('sub'), path])
  t.equal(await inside(entry('sub/tls.crt.tmp-12')), 'pending: somebody is writing sub/tls.crt.tmp-12 in it')
  t.equal(await inside(entry('sub/tls.crt.tmp')), none)
  const unopened = { ...by({}), target: () => Promise.reject(new Error('it cannot be opened')) }
  t.equal(await says('noOtherWriter', unopened), none, "that is the next check's matter")
})

await t.test("only a link ..data is another program's form", async (t) => {
  const { says } = await scene(t)
  const passed = "passed: a directory on its parent's mount"
  const holding = (path: string, type: TreeEntry['type']) =>
    says('realDirectory', {}, [entry(''), entry(path, { type })])
  t.match(await holding('..data', 'symlink'), /^refused: it holds a link \.\.data/)
  t.equal(await holding('..data', 'file'), passed)
  t.equal(await holding('current', 'symlink'), passed)
})

await t.test('a file system must exchange names and sync directories', async (t) => {
  const { root, says } = await scene(t)
  class Of extends Quiet {
    constructor(readonly mounted: Partial<Mount>) {
      super()
    }
    override async mount(at: number): Promise<Mount> {
      return { ...(await super.mount(at)), ...this.mounted }
    }
  }
  const ext4 = { type: 'ext4', proven: true }
  const on = (mounted: Partial<Mount>, fs: FileSystem = new Of(mounted)) => says('fileSystem', { fs })
  t.equal(await on(ext4), 'passed: ext4 exchanges and syncs')
  t.equal(await on({ ...ext4, proven: false }), 'passed: ext4 exchanges and syncs; durability is not proven here')
  t.equal(await on({ ...ext4, type: 'nfs4' }), 'passed: nfs4 exchanges and syncs', 'its name decides nothing')
  t.strictSame(readdirSync(root), ['certs'], 'what it made is gone')
  const answering = (failed: string, code: string) =>
    intercepted((call) => {
      if (call === failed) throw failure(code, failed)
    }, new Of(ext4)).fs
  const made = 'could not create a directory beside the target: createDirectory: EROFS'
  t.equal(await on(ext4, answering('createDirectory', 'EROFS')), `pending: ${made}`)
  const flag = 'refused: a file system of type ext4 cannot exchange two names in one step (RENAME_EXCHANGE)'
  t.equal(await on(ext4, answering('rename', 'EINVAL')), flag)
  // A seccomp profile, or an old kernel, answers so on each file system.
  t.match(await on(ext4, answering('rename', 'ENOSYS')), /^pending: could not exchange two directories .*ENOSYS$/)
  const left = await on(ext4, answering('removeDirectory', 'EIO'))
  t.match(left, /^pending: the exchange worked, but its two test directories could not be removed: \S+, \S+$/)
  class Any extends Of {
    override rename(): Promise<void> {
      return Promise.resolve()
    }
  }
  t.match(await on(ext4, new Any(ext4)), /^pending: .*the two directories did not change places$/)
  class Syncing extends Of {
    constructor(readonly code: string) {
      super(ext4)
    }
    override sync(): ReturnType<NodeFileSystem['sync']> {
      return Promise.resolve([failure(this.code, 'fsync')])
    }
  }
  t.equal(await on(ext4, new Syncing('EINVAL')), 'refused: a file system of type ext4 cannot sync a directory')
  for (const code of ['EIO', 'ENOSYS'])
    t.equal(await on(ext4, new Syncing(code)), `pending: the target's parent could not be synced: ${code}`)
})

await t.test(
  'safeOwner refuses a directory that others may write to, by modes, owners and ACLs of its entries',
  async (t) => {
    const { target, says, plan } = await scene(t)
    const passed = 'passed: nobody else may write to it'
    const holding = (marks: Partial<TreeEntry>, about: Partial<AdoptionLook> = {}) =>
      says('safeOwner', about, [entry(''), entry('sub/key', marks)])
    const file = `${target}/sub/key`
    const group = `refused: group 4321 may write to ${file}`
    t.equal(await holding({}), passed)
    t.equal(await holding({ mode: 0o642 }), `refused: everybody may write to ${file}`)
    t.equal(await says('safeOwner', {}, [entry('', { mode: 0o1777 })]), `refused: everybody may write to ${target}`)
    t.equal(await holding({ mode: 0o660 }), passed, 'the group is ours')
    t.equal(await holding({ mode: 0o660, gid: 4321 }), group)
    t.equal(await holding({ mode: 0o640, gid: 4321 }), passed, 'a group that only reads')
    t.equal(await holding({ uid: 4321 }), `refused: user 4321 owns ${file}, and may write to it`)
    t.equal(await holding({ uid: 4321, gid: 4321, mode: 0o660 }), group, 'whoever owns it')
    t.equal(await holding({ uid: 4321, gid: 4321, mode: 0o777, type: 'symlink' }), passed, 'a link has no mode')
    const owner = { uid: 4321, gid: 4321 }
    t.equal(await holding({ ...owner, mode: 0o660 }, { plan: { ...plan, owner } }), passed, 'the owner is configured')
    const kept = [entry('', owner), entry('a'), entry('b', { ...owner, mode: 0o660 })]
    t.equal(await says('safeOwner', { keepsOwners: true }, kept), passed, 'the owner is kept')
    t.match(await says('safeOwner', {}, kept), /^refused: user 4321 owns/)

    const list = (permissions: number) => Buffer.from(listOf(6, permissions, 4, 7, 0), 'latin1')
    const lists = (name: string, permissions: number): ExtendedAttributes => new Map([[name, list(permissions)]])
    const byAcl = `refused: an ACL lets user 1000 write to ${file}`
    t.equal(await holding({ extended: lists(access, 6) }), byAcl)
    t.equal(await holding({ extended: lists(access, 4) }), passed)
    t.equal(await holding({ extended: lists(access, 6) }, { plan: { ...plan, owner: { uid: 1000, gid: 0 } } }), passed)
    const later = `refused: the default ACL lets user 1000 write to what is made in ${file}`
    t.equal(await holding({ extended: lists(byDefault, 6) }), later)
  },
)

await t.test('safeOwner lets root and the present user write', { skip: !isRoot && 'needs root' }, async (t) => {
  const { says } = await scene(t)
  class Other extends Quiet {
    override readonly user = { uid: 500, gid: 501 }
  }
  const holding = (marks: Partial<TreeEntry>) =>
    says('safeOwner', { fs: new Other() }, [entry('', { uid: 0, gid: 0 }), entry('a', { mode: 0o660, ...marks })])
  for (const marks of [
    { uid: 0, gid: 0 },
    { uid: 500, gid: 501 },
  ])
    t.match(await holding(marks), /^passed/)
  for (const marks of [{ uid: 1 }, { uid: 500, gid: 1 }, { uid: 501 }]) t.match(await holding(marks), /^refused/)
})

await t.test(
  'safeOwner refuses a parent in which others may replace the directory',
  { skip: !isRoot && 'needs root' },
  async (t) => {
    const { root, says, again } = await scene(t)
    const parent = async (mode: number, gid = 0, about: Partial<AdoptionLook> = {}) => {
      chownSync(root, 0, gid)
      chmodSync(root, mode)
      await again()
      return says('safeOwner', about)
    }
    t.equal(await parent(0o775, 4321), `refused: group 4321 may write to ${root}`)
    t.equal(await parent(0o775, 4321, { path: '/certs' }), 'refused: group 4321 may write to /')
    for (const mode of [0o1777, 0o1775]) t.match(await parent(mode, 4321), /^passed/, 'who only makes files there')
  },
)

await t.test('a key that everybody may read is named where modes stay', async (t) => {
  const { says } = await scene(t)
  const passed = 'passed: nobody else may write to it'
  const holding = (entries: TreeEntry[], keepsOwners = true) =>
    says('safeOwner', { keepsOwners }, [entry(''), ...entries])
  const open = entry('tls.key', { mode: 0o644 })
  const named = `${passed}; everybody may read tls.key, which attributes: keep leaves so`
  t.equal(await holding([open, entry('tls.crt', { mode: 0o644 })]), named)
  const more = ['a', 'b', 'c', 'd'].map((name) => entry(`${name}.key`, { mode: 0o644 }))
  t.match(await holding(more), /may read a\.key, b\.key, c\.key and 1 more, which/)
  t.equal(await holding([open], false), passed)
  t.equal(await holding([entry('tls.key', { mode: 0o641 })]), passed)
})

await t.test('just enough space is enough', async (t) => {
  const { says, plan } = await scene(t)
  const free = (bytes: number, inodes: number | undefined) =>
    Object.assign(new Quiet(), { free: () => Promise.resolve({ bytes, inodes, blockSize: 4096 }) })
  // Two directories and a new file, a block each.
  t.equal(await says('space', { fs: free(12_288, 3) }), 'passed: 12288 bytes are needed, 12288 are free')
  t.equal(await says('space', { fs: free(12_287, 3) }), 'pending: 12287 bytes are free, 12288 are needed')
  t.equal(await says('space', { fs: free(12_288, 2) }), 'pending: 2 inodes are free, 3 are needed')
  t.match(await says('space', { fs: free(12_288, undefined) }), /^passed/)
  const deeper = { ...plan, planned: [...plan.planned, { path: 'sub', mode: 0o755 }] }
  t.equal(await says('space', { plan: deeper, fs: free(0, 0) }), 'pending: 0 bytes are free, 16384 are needed')
})

await t.test('content refuses unknown types, unmatched keys, and entries that the new content lacks', async (t) => {
  const { says } = await scene(t)
  const holding = (entries: TreeEntry[], about: Partial<AdoptionLook> = {}) =>
    says('content', about, [entry(''), ...entries])
  const pipe = 'refused: it holds what is no file, directory or link (pipe)'
  t.equal(await holding([entry('a'), entry('pipe', { type: 'other' })], { adopt: { replace: true } }), pipe)
  const four = (type: TreeEntry['type']) => ['b', 'c', 'd', 'e'].map((path) => entry(path, { type }))
  for (const type of ['other', 'file'] as const)
    t.match(await holding(four(type)), /^refused: .*\(b, c, d and 1 more\)$/, 'the first three')
  t.equal(await holding([entry('a')]), 'passed: equal')
  t.equal(await holding([entry('b')]), 'refused: it holds what the new content does not have (b)')
  t.match(await holding([entry('b')], { adopt: { replace: true } }), /^passed: different: it has b besides/)
  const keyPairs = (texts: Record<string, string | undefined>) => {
    const answers = [texts['coming'], texts['there']]
    return () => Promise.resolve(answers.shift())
  }
  const asked = (texts: Record<string, string>, replace = false) =>
    holding([entry('a')], { adopt: { replace, keyPairs: keyPairs(texts) } })
  t.equal(await asked({}), 'passed: equal')
  t.equal(await asked({ coming: 'no pair' }), 'refused: the new content: no pair')
  t.equal(await asked({ there: 'no pair' }), 'pending: no pair: somebody may be between the two files')
  t.equal(await asked({ there: 'no pair' }, true), 'passed: equal')
})
