import { chmodSync, lchownSync, mkdirSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { openAncestors, openParent, resolve } from '../../src/durable/resolve.js'
import { Scope } from '../../src/durable/scope.js'
import { modeOf, scratch } from './scratch.js'

const fs = new NodeFileSystem()
const isRoot = process.geteuid?.() === 0

/** Where a target is: its real parent below the root, where the deepest directory of it is that exists, what is missing. */
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
  'missing ancestors are made 0755, whatever the umask; a parent of everybody’s must be sticky',
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
