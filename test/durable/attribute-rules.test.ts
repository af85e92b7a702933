/** Which ACLs, user attributes and labels new content gets: the rules alone, without a file system that has any. */
import t from 'tap'
import {
  accessAttribute,
  attributesDigest,
  defaultAttribute,
  isKept,
  KeptAttributes,
  setExtended,
  nearest,
  withMode,
} from '../../src/durable/path/kept-attributes.js'
import type { ExtendedAttributes } from '../../src/durable/file-system.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { OldMetadata } from '../../src/durable/publish/stage.js'
import type { TreeEntry } from '../../src/durable/path/tree.js'
import { listOf } from '../crash/model/access-lists.js'
import { failure } from './intercepted.js'
import { valueOf } from './judgements.js'

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const shown = (extended: ExtendedAttributes | undefined): Record<string, string> | undefined =>
  extended && Object.fromEntries([...extended].map(([name, value]) => [name, Buffer.from(value).toString('latin1')]))

/** Lets in user 1000, to read and to write. */
const open = listOf(6, 6, 4, 6, 0)
const byDefault = listOf(7, 7, 5, 7, 0)
const nothing = undefined

function entry(path: string, type: TreeEntry['type'], extended?: Record<string, string>): TreeEntry {
  const own = extended && new Map(Object.entries(extended).map(([name, value]) => [name, bytes(value)]))
  return { path, type, mode: 0o600, uid: 0, gid: 0, sha256: '', ...(own && { extended: own }) }
}

await t.test('a path, and the directories above it up to the one in which all are', async (t) => {
  const asked = (path: string, known?: string): string[] => {
    const paths: string[] = []
    nearest(path, (at) => (paths.push(at), at === known ? true : undefined))
    return paths
  }
  t.strictSame(asked('a/b/c'), ['a/b/c', 'a/b', 'a', ''])
  t.strictSame(asked('a/b/c', 'a/b'), ['a/b/c', 'a/b'])
  t.strictSame(asked('a'), ['a', ''])
  t.strictSame(asked(''), [''])
})

await t.test(
  'an existing entry keeps its list; a new one inherits the default list of the directory above it',
  async (t) => {
    const old = [
      entry('', 'directory', { [defaultAttribute]: byDefault }),
      entry('listed', 'file', { [accessAttribute]: open, 'user.note': 'x' }),
      entry('plain', 'file'),
      entry('bare', 'directory'),
      entry('was a file', 'file', { 'user.note': 'x' }),
      entry('bare/listed', 'directory', { [defaultAttribute]: open }),
    ]
    const kept = new KeptAttributes(old, bytes(open))
    const of = (path: string, type: 'file' | 'directory', mode: number) =>
      valueOf(() => shown(kept.of(path, type, mode)))
    t.strictSame(of('listed', 'file', 0o640), { [accessAttribute]: listOf(6, 6, 4, 6, 0), 'user.note': 'x' })
    t.strictSame(of('listed', 'file', 0o400), { [accessAttribute]: listOf(4, 6, 0, 6, 0), 'user.note': 'x' })
    t.strictSame(of('plain', 'file', 0o640), nothing, 'had none')
    t.strictSame(of('new', 'file', 0o640), { [accessAttribute]: listOf(6, 7, 4, 4, 0) }, 'within its mode')
    const asDirectory = { [accessAttribute]: listOf(7, 7, 5, 5, 5), [defaultAttribute]: byDefault }
    t.strictSame(of('was a file', 'directory', 0o755), asDirectory, 'of another type: is new')
    t.strictSame(of('new', 'directory', 0o755), asDirectory)
    t.strictSame(of('new/below', 'directory', 0o755), asDirectory, 'also in what is new itself')
    t.strictSame(of('was a file/below', 'directory', 0o755), asDirectory)
    t.strictSame(of('bare/new', 'file', 0o640), nothing, 'a directory that has no default list hands none down')
    t.strictSame(of('bare/new/below', 'file', 0o640), nothing)
    t.strictSame(of('bare/listed/new', 'file', 0o640), { [accessAttribute]: listOf(6, 6, 4, 4, 0) })
  },
)

await t.test('a new target inherits the default list of its parent', async (t) => {
  const of = (inherited: string | undefined, path: string, type: 'file' | 'directory') =>
    valueOf(() =>
      shown(new KeptAttributes([], inherited === nothing ? nothing : bytes(inherited)).of(path, type, 0o750)),
    )
  const list = listOf(7, 7, 5, 5, 0)
  for (const path of ['', 'a', 'a/b']) {
    t.strictSame(of(byDefault, path, 'directory'), { [accessAttribute]: list, [defaultAttribute]: byDefault }, path)
    t.strictSame(of(byDefault, path, 'file'), { [accessAttribute]: list }, path)
    t.strictSame(of(nothing, path, 'file'), nothing, path)
  }
  const short = Buffer.from(byDefault, 'latin1')
    .subarray(0, 4 + 8)
    .toString('latin1')
  t.strictSame(of(short, 'a', 'file'), {}, 'a list without a mask: the mode says all')
  t.strictSame(of(short, 'a', 'directory'), { [defaultAttribute]: short })
})

await t.test('withMode leaves alone values that are no access list', async (t) => {
  const note = new Map([['user.note', bytes('x')]])
  t.equal(withMode(note, 0o640), note)
  t.equal(withMode(undefined, 0o640), undefined)
  const both = new Map([...note, [accessAttribute, bytes(open)] as const])
  t.strictSame(shown(withMode(both, 0o400)), { 'user.note': 'x', [accessAttribute]: listOf(4, 6, 0, 6, 0) })
  t.strictSame(shown(both), { 'user.note': 'x', [accessAttribute]: open }, 'that of the old content is as it was')
  t.strictSame([accessAttribute, defaultAttribute, 'user.x', 'security.selinux', 'trusted.x'].map(isKept), [
    true,
    true,
    true,
    false,
    false,
  ])
})

await t.test('the digest of attributes tells which path has which value, in any order of reading', async (t) => {
  const at = (path: string, extended: Record<string, string>) => entry(path, 'file', extended)
  t.equal(attributesDigest([]), null)
  t.equal(attributesDigest([entry('a', 'file'), at('b', {})]), null)
  const digests = [
    [at('a', { 'user.x': '1' })],
    [at('b', { 'user.x': '1' })],
    [at('a', { 'user.y': '1' })],
    [at('a', { 'user.x': '2' })],
    [at('a', { 'user.x': '1', 'user.y': '1' })],
  ].map(attributesDigest)
  t.equal(new Set(digests).size, digests.length)
  t.ok(digests.every((digest) => digest?.startsWith('sha256:')))
  t.equal(attributesDigest([at('a', { 'user.y': '1', 'user.x': '1' })]), digests[4])
  const metadata = new OldMetadata({ entries: [at('a', { 'user.x': '1' })], digest: '' }, undefined)
  const head = (path: string) => ({ ...entry(path, 'file'), type: 'file' as const })
  t.equal(metadata.digest([head('a'), head('b')]), digests[0])
  t.equal(metadata.digest([head('b')]), null)
})

await t.test(
  'setExtended sets user attributes before the owner and lists after the mode, and names the one it cannot set',
  async (t) => {
    const set: string[] = []
    let code = ''
    class Recording extends NodeFileSystem {
      override setExtendedAttribute(_: number, name: string): Promise<void> {
        set.push(name)
        return code === '' ? Promise.resolve() : Promise.reject(failure(code, 'fsetxattr'))
      }
    }
    const fs = new Recording()
    const of = (...names: readonly string[]) => new Map(names.map((name) => [name, bytes('x')]))
    const all = of(accessAttribute, 'user.a', defaultAttribute, 'user.b')
    for (const [when, names] of [
      ['before', ['user.a', 'user.b']],
      ['after', [accessAttribute, defaultAttribute]],
    ] as const) {
      await setExtended(fs, 0, all, when, '/t')
      t.strictSame(set.splice(0), names, when)
      t.equal(await setExtended(fs, 0, undefined, when, '/t').catch(() => 'fails'), undefined)
    }
    t.strictSame(set, [])
    for (const [name, what, remove] of [
      ['user.a', 'the attribute user.a', 'setfattr -x user.a'],
      [accessAttribute, 'the ACL', 'setfacl -b'],
      [defaultAttribute, 'the default ACL', 'setfacl -k'],
    ] as const) {
      for (code of ['EPERM', 'ENOSPC']) {
        const refused = setExtended(fs, 0, of(name), name.startsWith('user.') ? 'before' : 'after', '/t/sub')
        await t.rejects(refused, {
          code,
          syscall: 'fsetxattr',
          path: '/t/sub',
          published: false,
          message: `could not keep ${what} of /t/sub: fsetxattr: ${code}`,
          advice: code === 'EPERM' ? `take it away (${remove}), or publish as root` : /space/,
        })
      }
    }
    class Broken extends NodeFileSystem {
      override setExtendedAttribute(): Promise<void> {
        return Promise.reject(new Error('a mistake'))
      }
    }
    await t.rejects(setExtended(new Broken(), 0, of('user.a'), 'before', '/t'), { message: 'a mistake' })
  },
)
