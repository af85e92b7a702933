import {
  chmodSync,
  lchownSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { openAncestors, openParent, resolve } from '../../../src/durable/path/resolve.js'
import { Scope } from '../../../src/durable/path/scope.js'
import { codeOf } from '../../../src/errors.js'
import { beside, failure, intercepted } from '../intercepted.js'
import { modeOf, scratch } from '../scratch.js'

const fs = new NodeFileSystem()
const isRoot = process.geteuid?.() === 0

/** The place of a target: its real parent below the root, its deepest existing directory, and the missing ones. */
async function found(t: Test, root: string, path: string): Promise<[string, string, readonly string[]]> {
  const scope = new Scope(fs)
  t.teardown(() => scope.closeAll())
  const target = `${root}/${path}`
  const place = await resolve(scope, target)
  t.equal(place.target, target)
  t.equal(`${target.slice(0, target.lastIndexOf('/'))}/${place.name}`, target)
  const below = (full: string): string => full.slice(root.length + 1)
  return [below(place.realParent), below(readlinkSync(`/proc/self/fd/${place.anchor}`)), place.missing]
}

await t.test('the parent, as far as it exists, with the links in it followed', async (t) => {
  const root = realpathSync(scratch(t))
  mkdirSync(join(root, 'a', 'b'), { recursive: true })
  writeFileSync(join(root, 'file'), '')
  symlinkSync('a', join(root, 'link'))
  symlinkSync(join(root, 'a'), join(root, 'absolute'))
  symlinkSync('../a/./b', join(root, 'a', 'round'))
  symlinkSync('link/b', join(root, 'chain'))
  symlinkSync('nowhere/deep', join(root, 'dangling'))
  t.same(await found(t, root, 'a/b/x'), ['a/b', 'a/b', []])
  t.same(await found(t, root, 'a/c/d/x'), ['a/c/d', 'a', ['c', 'd']])
  t.same(await found(t, root, 'link/b/x'), ['a/b', 'a/b', []])
  t.same(await found(t, root, 'absolute/x'), ['a', 'a', []])
  t.same(await found(t, root, 'link/round/x'), ['a/b', 'a/b', []])
  t.same(await found(t, root, 'chain/x'), ['a/b', 'a/b', []])
  t.same(await found(t, root, 'link/new/deep/x'), ['a/new/deep', 'a', ['new', 'deep']])
  t.same(await found(t, root, 'dangling/x'), ['nowhere/deep', '', ['nowhere', 'deep']])
  const scope = new Scope(fs)
  for (const path of ['file/x', 'file/deep/x']) {
    const refused = resolve(scope, join(root, path))
    await t.rejects(refused, { code: 'ENOTDIR', reason: 'TargetUnfit', published: false }, path)
  }
  await scope.closeAll()
})

await t.test('as many links as the kernel follows, and no more', async (t) => {
  const root = realpathSync(scratch(t))
  mkdirSync(join(root, '0'))
  for (let index = 1; index <= 41; index++) symlinkSync(`${index - 1}`, join(root, `${index}`))
  t.same(await found(t, root, '40/x'), ['0', '0', []])
  const scope = new Scope(fs)
  await t.rejects(resolve(scope, join(root, '41', 'x')), { code: 'ELOOP', reason: 'TargetUnfit' })
  symlinkSync('loop', join(root, 'loop'))
  await t.rejects(resolve(scope, join(root, 'loop', 'x')), { code: 'ELOOP', reason: 'TargetUnfit' })
  await scope.closeAll()
})

await t.test(
  'a link is followed that root or this user has made where not everybody may write',
  { skip: isRoot ? false : 'changing owners needs root: run by CI' },
  async (t) => {
    const root = realpathSync(scratch(t))
    chmodSync(root, 0o755)
    mkdirSync(join(root, 'real'))
    const trusted = async (user: number, link: number, holder: number, mode: number): Promise<boolean> => {
      const name = `${user}-${link}-${holder}-${mode.toString(8)}`
      mkdirSync(join(root, name))
      symlinkSync('../real', join(root, name, 'link'))
      lchownSync(join(root, name, 'link'), link, link)
      lchownSync(join(root, name), holder, holder)
      chmodSync(join(root, name), mode)
      class User extends NodeFileSystem {
        override readonly user = { uid: user, gid: user }
      }
      const scope = new Scope(new User())
      try {
        const { realParent } = await resolve(scope, join(root, name, 'link', 'x'))
        return realParent === join(root, 'real')
      } catch (error) {
        t.match(error, { code: 'ELOOP', reason: 'TargetUnfit' })
        return false
      } finally {
        await scope.closeAll()
      }
    }
    t.equal(await trusted(0, 0, 0, 0o755), true)
    t.equal(await trusted(0, 0, 0, 0o775), true)
    t.equal(await trusted(0, 0, 0, 0o757), false)
    t.equal(await trusted(0, 0, 0, 0o1777), false)
    t.equal(await trusted(0, 7, 0, 0o755), false)
    t.equal(await trusted(0, 0, 7, 0o755), false)
    t.equal(await trusted(7, 0, 0, 0o755), true)
    t.equal(await trusted(7, 7, 7, 0o755), true)
    t.equal(await trusted(7, 8, 7, 0o755), false)
    t.equal(await trusted(7, 7, 8, 0o755), false)
  },
)

await t.test(
  'resolve makes missing ancestors 0755 under any umask; a world-writable parent must be sticky',
  async (t) => {
    const root = realpathSync(scratch(t))
    const before = process.umask(0o077)
    t.teardown(() => process.umask(before))
    const scope = new Scope(fs)
    t.teardown(() => scope.closeAll())
    const open = async (path: string) => openParent(scope, await resolve(scope, join(root, path)))
    mkdirSync(join(root, 'old'), 0o700)
    const { directory, attributes } = await open('old/new/deep/x')
    t.equal(readlinkSync(`/proc/self/fd/${directory}`), join(root, 'old', 'new', 'deep'))
    t.equal(attributes.inode, (await fs.attributes(directory)).inode)
    t.same(
      ['old', 'old/new', 'old/new/deep'].map((path) => modeOf(join(root, path))),
      ['700', '755', '755'],
    )
    for (const [mode, isRefused] of [
      [0o777, true],
      [0o1777, false],
      [0o757, true],
      [0o775, false],
    ] as const) {
      chmodSync(join(root, 'old'), mode)
      const opening = open('old/x')
      if (isRefused) await t.rejects(opening, { code: 'EPERM', reason: 'TargetUnfit', path: join(root, 'old') })
      else await t.resolves(opening, mode.toString(8))
    }
    const place = await resolve(scope, join(root, 'old/new/deep/x'))
    const ancestors = await openAncestors(scope, place, place.anchor)
    const paths = ancestors.map((descriptor) => readlinkSync(`/proc/self/fd/${descriptor}`))
    t.same(paths.slice(0, 3), [join(root, 'old', 'new'), join(root, 'old'), root], 'the parent itself is open already')
  },
)

/** The code of the error; undefined without one. */
const codeFrom = (work: Promise<unknown>): Promise<string | undefined> => work.then(() => undefined, codeOf)

await t.test('resolve follows a link that comes during the walk once, and refuses it after that', async (t) => {
  const root = realpathSync(scratch(t))
  mkdirSync(join(root, 'real'))
  let opened = 0
  const late = beside(
    fs,
    (call) => call === 'openPath' && ++opened === 2,
    () => link(root, 'real', 'late'),
  )
  const place = await resolve(scopeOn(t, late), join(root, 'late/b/x'))
  t.match(place, { target: join(root, 'late/b/x'), name: 'x', realParent: join(root, 'real/b'), missing: ['b'] })
  t.same(place.linksIn, [root])

  symlinkSync('real', join(root, 'link'))
  opened = 0
  const again = beside(
    fs,
    (call) => call === 'openPath' && ++opened === 2,
    async () => {
      renameSync(join(root, 'real'), join(root, 'moved'))
      await link(root, 'moved', 'real')
    },
  )
  const message = `${root}/real became a symbolic link while holdfast resolved it`
  await t.rejects(resolve(scopeOn(t, again), join(root, 'link/x')), {
    code: 'ELOOP',
    problem: message,
    reason: 'TargetUnfit',
  })
})

await t.test('a publication accepts a parent that another process makes in the same instant', async (t) => {
  const root = realpathSync(scratch(t))
  const making = (code: string): FileSystem => {
    const { fs: failing } = intercepted((call) => {
      if (call !== 'createDirectory') return
      if (code === 'EEXIST') mkdirSync(join(root, 'new'), 0o700)
      else throw failure(code, 'mkdirat')
    })
    return failing
  }
  const open = async (by: FileSystem) => {
    const scope = scopeOn(t, by)
    return openParent(scope, await resolve(scope, join(root, 'new/x')))
  }
  t.equal(await codeFrom(open(making('ENOSPC'))), 'ENOSPC')
  t.equal((await open(making('EEXIST'))).attributes.mode, 0o700)
})

await t.test('each ancestor is opened once; what this user may not read was not made by him', async (t) => {
  const top = realpathSync(scratch(t))
  const root = join(top, 'root')
  mkdirSync(join(root, 'a/b'), { recursive: true })
  symlinkSync('..', join(root, 'a/b/up'))
  let code = ''
  const { fs: some } = intercepted((call, [path]) => {
    if (code !== '' && call === 'openPath' && path === root) throw failure(code, 'openat2')
  })
  const scope = scopeOn(t, some)
  const place = await resolve(scope, join(root, 'a/b/up/x'))
  const paths = async (): Promise<string[]> =>
    (await openAncestors(scope, place, place.anchor))
      .map((one) => readlinkSync(`/proc/self/fd/${one}`))
      .filter((path) => path.startsWith(top))
      .sort()
  t.same(await paths(), [top, root, join(root, 'a/b')], 'without the parent, which is open')
  code = 'EACCES'
  t.same(await paths(), [top, join(root, 'a/b')])
  code = 'EIO'
  t.equal(await codeFrom(paths()), 'EIO')
  t.equal(await codeFrom(resolve(scope, `${root}/x`)), 'EIO')
})

await t.test('resolve does not even read an untrusted link', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'open'))
  symlinkSync('/', join(root, 'open/link'))
  chmodSync(join(root, 'open'), 0o777)
  const read: string[] = []
  const { fs: watching } = intercepted((call, args) => {
    if (call === 'readLinkPath') read.push(String(args[0]))
  })
  const ended = resolve(scopeOn(t, watching), join(root, 'open/link/x'))
  t.equal(await ended.then(() => 'followed', codeOf), 'ELOOP')
  t.notOk(read.includes(join(root, 'open/link')))
})

function scopeOn(t: Test, by: FileSystem): Scope {
  const scope = new Scope(by)
  t.teardown(() => scope.closeAll())
  return scope
}

function link(root: string, text: string, name: string): Promise<void> {
  symlinkSync(text, join(root, name))
  return Promise.resolve()
}
