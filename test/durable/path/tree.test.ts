/** A directory as read from the disk: its entries, and the digest over them, which digest.test.ts tests. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { Digest, type EntryHead, readFileTree, readTree, type Tree } from '../../../src/durable/path/tree.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { codeOf } from '../../../src/errors.js'
import { failure, intercepted } from '../intercepted.js'
import { scratch } from '../scratch.js'

/** Sizes below and above the bytes that a reader reads ahead. */
const [small, large] = ['small', 'x'.repeat(50_000)]

/** By these entries: the type, path, mode and content of each. */
function digestOf(entries: readonly (readonly [EntryHead['type'], string, number, string?])[]): string {
  const digest = new Digest()
  const { uid, gid } = new NodeFileSystem().user
  for (const [type, path, mode, content = ''] of entries) {
    digest.entry({ type, path, mode, uid, gid }, content.length)
    digest.content(Buffer.from(content))
  }
  return digest.text()
}

await t.test('files, directories and links by their content; what else there is by its type', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'sub'))
  writeFileSync(join(root, 'sub/large'), large, { mode: 0o640 })
  writeFileSync(join(root, 'sub/small'), small, { mode: 0o600 })
  symlinkSync('sub/small', join(root, 'link'))
  const server = createServer().listen(join(root, 'socket'))
  await once(server, 'listening')
  const fs = new NodeFileSystem()
  const opened = await fs.openPath(root)
  const read = (by: Parameters<typeof readTree>[0] = fs): Promise<Tree | string> =>
    readTree(by, opened, false).catch(String)
  const modeOf = (path: string): number => statSync(join(root, path)).mode & 0o7777
  const entries = [
    ['directory', '', modeOf('')],
    ['symlink', 'link', 0o777, 'sub/small'],
    ['other', 'socket', modeOf('socket')],
    ['directory', 'sub', modeOf('sub')],
    ['file', 'sub/large', 0o640, large],
    ['file', 'sub/small', 0o600, small],
  ] as const
  const tree = await read()
  const found = typeof tree === 'string' ? [] : tree.entries
  t.match(tree, { digest: digestOf(entries), identity: { inode: statSync(root, { bigint: true }).ino.toString() } })
  t.same(
    found.map(({ type, path, mode, sha256, size }) => [type, path, mode, sha256, size]),
    entries.map(([type, path, mode, content]) => [
      ...[type, path, mode, content === undefined ? '' : hash('sha256', content)],
      type === 'file' ? content.length : undefined,
    ]),
  )
  t.ok(found.every(({ path, changed }) => path === '' || changed !== undefined))

  const { fs: late } = intercepted((call, [, name]) => {
    if (call === 'look' && name === 'link') rmSync(join(root, 'link'))
  })
  t.match(
    await read(late),
    { digest: digestOf(entries.filter(([, path]) => path !== 'link')) },
    'one that goes meanwhile',
  )
  const { fs: watched, open } = intercepted(() => undefined)
  await read(watched)
  t.equal(open.size, 0, 'nothing stays open')
  await fs.close(opened)
  server.close()
})

await t.test('few files are open at a time, and none once a reading has ended or failed', async (t) => {
  const root = scratch(t)
  for (let index = 0; index < 12; index++) writeFileSync(join(root, `${index}`), index < 11 ? small : large)
  const fs = Object.assign(new NodeFileSystem(), { callsAtATime: 1 })
  const opened = await fs.openPath(root)
  let most = 0
  let fails = false
  const { fs: watched, open } = intercepted((call) => {
    most = Math.max(most, open.size)
    if (call === 'read' && fails) throw failure('EIO', 'read')
  }, fs)
  await readTree(watched, opened, false)
  t.ok(most < 6, `${most} descriptors`)
  t.equal(open.size, 0)
  fails = true
  t.equal(await readTree(watched, opened, false).catch(codeOf), 'EIO')
  t.equal(open.size, 0)
  await fs.close(opened)
})

await t.test('a file alone is a tree of one entry', async (t) => {
  const root = scratch(t)
  writeFileSync(join(root, 'file'), small, { mode: 0o600 })
  const fs = new NodeFileSystem()
  const opened = await fs.openPath(root)
  const { fs: watched, open } = intercepted(() => undefined)
  const { inode } = { inode: statSync(join(root, 'file'), { bigint: true }).ino.toString() }
  t.match(await readFileTree(watched, opened, 'file').catch(String), {
    digest: digestOf([['file', '', 0o600, small]]),
    entries: [{ path: '', type: 'file', size: small.length }],
    identity: { inode },
  })
  t.equal(open.size, 0)
  await fs.close(opened)
})

await t.test('readTree hashes each piece before it gives the buffer back', async (t) => {
  const root = scratch(t)
  writeFileSync(join(root, 'file'), small, { mode: 0o600 })
  /** The next call of the iterator finds the last piece overwritten. */
  class Reusing extends NodeFileSystem {
    constructor(private readonly most: number) {
      super()
    }

    override async *read(file: number): AsyncGenerator<Uint8Array, void, void> {
      for await (const all of super.read(file)) {
        for (let at = 0; at < all.length; at += this.most) {
          const piece = Buffer.from(all.subarray(at, at + this.most))
          try {
            yield piece
          } finally {
            piece.fill(0)
          }
        }
      }
    }
  }
  const expected = digestOf([
    ['directory', '', statSync(root).mode & 0o7777],
    ['file', 'file', 0o600, small],
  ])
  for (const most of [small.length, 2]) {
    const fs = new Reusing(most)
    const opened = await fs.openPath(root)
    const { digest, entries } = await readTree(fs, opened, false)
    t.same([digest, entries[1]?.sha256], [expected, hash('sha256', small)], `${most} bytes at a time`)
    await fs.close(opened)
  }
})
