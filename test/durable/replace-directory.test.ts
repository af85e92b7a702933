import { createHash } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { replaceDirectories, replaceDirectory } from '../../src/index.js'
import { contents, kept, modeOf, scratch, scratchWith } from './scratch.js'

const isRoot = process.geteuid?.() === 0

await t.test('created, unchanged, replaced; nested paths; keys that are gone go', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const files = { 'tls.crt': 'certificate', 'secrets/serving/tls.key': Buffer.from([0, 255, 10]) }
  t.match(await replaceDirectory(target, { files }), { outcome: 'created', path: target })
  const inode = statSync(target).ino
  t.match(await replaceDirectory(target, { files }), { outcome: 'unchanged' })
  t.equal(statSync(target).ino, inode, 'unchanged means that nothing was written')
  t.match(await replaceDirectory(target, { files: { 'tls.crt': 'certificate' } }), { outcome: 'replaced' })
  t.same(contents(target), { 'tls.crt': 'certificate' })
  t.same(kept(parent), ['lock', 'record'])
  t.match(await replaceDirectory(target, { files: {} }), { outcome: 'replaced' }, 'an empty directory is a content')
  t.same(readdirSync(target), [])
})

await t.test('replaceDirectory sets modes under any umask', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'deep', 'er', 'certs')
  const before = process.umask(0o077)
  t.teardown(() => process.umask(before))
  await replaceDirectory(target, {
    files: { a: '1', 'sub/run.sh': { content: '2', mode: 0o755 } },
    mode: 0o750,
    fileMode: 0o640,
  })
  t.equal(modeOf(target), '750')
  t.equal(modeOf(join(target, 'sub')), '750')
  t.equal(modeOf(join(target, 'a')), '640')
  t.equal(modeOf(join(target, 'sub/run.sh')), '755')
  t.equal(modeOf(join(parent, 'deep')), '755', 'new ancestors')
  t.equal(modeOf(join(parent, 'deep/er')), '755')
  t.equal(
    modeOf(join(parent, 'deep/er', readdirSync(join(parent, 'deep/er')).find((name) => name.endsWith('.lock')) ?? '')),
    '600',
  )
})

await t.test(
  'drift is seen: content, mode, an added file, an empty directory, a file that became a link',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    const options = { files: { a: '1', b: '2' } }
    const drifts: [string, () => void][] = [
      ['content', () => writeFileSync(join(target, 'a'), 'edited')],
      ['mode', () => chmodSync(join(target, 'a'), 0o644)],
      ['mode of the target', () => chmodSync(target, 0o700)],
      ['added file', () => writeFileSync(join(target, 'c'), '')],
      ['added directory', () => mkdirSync(join(target, 'd'))],
      ['added link', () => symlinkSync('a', join(target, 'e'))],
    ]
    await replaceDirectory(target, options)
    for (const [name, drift] of drifts) {
      drift()
      t.match(await replaceDirectory(target, options), { outcome: 'replaced' }, name)
      t.same(contents(target), { a: '1', b: '2' })
      t.match(await replaceDirectory(target, options), { outcome: 'unchanged' })
    }
    t.same(kept(parent), ['lock', 'record'])
  },
)

await t.test('owners', { skip: isRoot ? false : 'changing owners needs root: run by CI' }, async (t) => {
  const target = join(scratch(t), 'certs')
  const options = { files: { a: '1', 'sub/b': '2' }, owner: { uid: 1234, gid: 4321 } }
  await replaceDirectory(target, options)
  for (const path of ['', 'a', 'sub', 'sub/b']) {
    const { uid, gid } = statSync(join(target, path))
    t.same([uid, gid], [1234, 4321], `owner of /${path}`)
  }
  chownSync(join(target, 'a'), 0, 0)
  t.match(await replaceDirectory(target, options), { outcome: 'replaced' }, 'owner drift is seen')
  const inherited = join(scratch(t), 'group')
  mkdirSync(inherited)
  chownSync(inherited, 0, 99)
  chmodSync(inherited, 0o2755)
  await replaceDirectory(join(inherited, 'certs'), { files: { a: '' } })
  t.equal(statSync(join(inherited, 'certs', 'a')).gid, 0, 'not the group that the parent hands down')
})

await t.test("the digest equals its documentation's", async (t) => {
  const target = join(scratch(t), 'certs')
  const owner = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
  // Byte order: 'a-b' comes before 'a/b', and U+10000 after U+FFFD, as UTF-8 has it and UTF-16 has not.
  const files = { 'a/b': 'x', 'a-b': 'y', '\u{10000}': 'z', '\uFFFD': '' }
  const { digest } = await replaceDirectory(target, { files })
  const hash = createHash('sha256')
  const number = (value: number, bytes: 4 | 8): Buffer => {
    const buffer = Buffer.alloc(bytes)
    buffer.writeUInt32LE(value)
    return buffer
  }
  const entry = (type: string, path: string, mode: number, content?: string): void => {
    hash
      .update(type)
      .update(number(Buffer.byteLength(path), 8))
      .update(path)
    hash.update(number(mode, 4)).update(number(owner.uid, 4)).update(number(owner.gid, 4))
    if (content !== undefined) hash.update(number(Buffer.byteLength(content), 8)).update(content)
  }
  entry('d', '', 0o755)
  entry('d', 'a', 0o755)
  entry('f', 'a-b', 0o600, 'y')
  entry('f', 'a/b', 0o600, 'x')
  entry('f', '\uFFFD', 0o600, '')
  entry('f', '\u{10000}', 0o600, 'z')
  t.equal(digest, `sha256:${hash.digest('hex')}`)
})

await t.test('a batch: one entry for each, in order; one fault is its own', async (t) => {
  const parent = scratch(t)
  writeFileSync(join(parent, 'file'), 'not a directory')
  const targets = ['z', 'file', 'a', 'sub/b'].map((name) => join(parent, name))
  const results = await replaceDirectories(targets.map((target) => ({ target, files: { key: target } })))
  t.match(results, [
    { outcome: 'created', path: targets[0] },
    { error: { code: 'ENOTDIR', published: false } },
    { outcome: 'created', path: targets[2] },
    { outcome: 'created', path: targets[3] },
  ])
  for (const target of [targets[0], targets[2], targets[3]]) {
    t.same(contents(target ?? ''), { key: target })
  }
  await t.rejects(
    replaceDirectories([
      { target: join(parent, 'new/x'), files: {} },
      { target: join(parent, 'new/x/y'), files: {} },
    ]),
    { name: 'TypeError', message: /are the same target, or one lies in the other/ },
  )
  symlinkSync(parent, join(parent, 'alias'))
  await t.rejects(
    replaceDirectories([
      { target: join(parent, 'new/x'), files: {} },
      { target: join(parent, 'alias/new/x'), files: {} },
    ]),
    { name: 'TypeError', message: /are the same target, or one lies in the other/ },
    'reported through a symbolic link, too',
  )
  t.notOk(readdirSync(parent).includes('new'), 'and nothing was made')
  t.same(await replaceDirectories([]), [])
})

await t.test('many at once on one target, in one process: each waits for its turn', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const contentsSeen = Array.from({ length: 8 }, (_, index) => ({ a: `${index}`, b: `${index}` }))
  const results = await Promise.all(contentsSeen.map((files) => replaceDirectory(target, { files })))
  t.equal(results.filter(({ outcome }) => outcome === 'created').length, 1)
  const { a, b } = contents(target)
  t.equal(a, b)
  t.same(kept(parent), ['lock', 'record'])
})
