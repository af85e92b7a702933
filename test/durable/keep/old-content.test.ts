/** Of an old content only the entries that the publication has read may go. */
import { EventEmitter, once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isAsRead, isPartOf, removeEntries } from '../../../src/durable/keep/old-content.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { readTree } from '../../../src/durable/path/tree.js'
import { failure, intercepted } from '../intercepted.js'
import { contents, scratchWith } from '../scratch.js'

const fs = new NodeFileSystem()

/** A directory with files, and its tree. */
async function old(t: Test) {
  const [parent, path] = scratchWith(t, 'old')
  mkdirSync(join(path, 'sub/deep/deeper'), { recursive: true })
  for (const name of ['a', 'sub/b', 'sub/deep/c']) writeFileSync(join(path, name), name)
  const [above, opened] = [await fs.openPath(parent), await fs.openPath(path)]
  t.teardown(() => Promise.all([fs.close(above), fs.close(opened)]))
  return { path, above, opened, tree: await readTree(fs, opened, false) }
}

await t.test('isAsRead passes a missing entry, and no added or changed one', async (t) => {
  const { path, opened, tree } = await old(t)
  const same = (): Promise<boolean> => isAsRead(fs, opened, tree)
  t.equal(await same(), true)
  rmSync(join(path, 'a'))
  t.equal(await same(), true, 'a file has gone')
  rmSync(join(path, 'sub'), { recursive: true })
  t.equal(await same().catch(String), true, 'a directory has gone, with others in it')
  writeFileSync(join(path, 'new'), '')
  t.equal(await same(), false, 'there is more')
})

await t.test('a file that was written to is a change, as is a directory that lost one', async (t) => {
  const { path, opened, tree } = await old(t)
  utimesSync(join(path, 'sub/deep/c'), 1, 1)
  t.equal(await isAsRead(fs, opened, tree), false)
  const again = await readTree(fs, opened, false)
  rmSync(join(path, 'sub/deep/c'))
  t.equal(await isAsRead(fs, opened, again), false)
})

await t.test('the rest of a content is part of it by types and contents', async (t) => {
  const { path, above, tree } = await old(t)
  const isPart = (by = fs): Promise<boolean> => isPartOf(by, above, 'old', tree.entries)
  t.equal(await isPart(), true)
  rmSync(join(path, 'sub/b'))
  t.equal(await isPart(), true)
  writeFileSync(join(path, 'a'), 'other')
  t.equal(await isPart(), false, 'another content')
  class Mounted extends NodeFileSystem {
    override mountsBelow(): Promise<string[]> {
      return Promise.resolve(['sub'])
    }
  }
  t.equal(await isPart(new Mounted()), true, 'what is mounted in it keeps it anyway')
  rmSync(join(path, 'a'))
  mkdirSync(join(path, 'a'))
  t.equal(await isPart(), false, 'another type')
})

await t.test(
  'removeEntries removes the known entries, passes over missing ones, and reports any other failure',
  async (t) => {
    const { path, opened, tree } = await old(t)
    for (const [call, name] of [
      ['removeFile', 'unlink'],
      ['removeDirectory', 'rmdir'],
    ] as const) {
      const { fs: failing } = intercepted((made) => {
        if (made === call) throw failure('EIO', name)
      })
      await t.rejects(removeEntries(failing, opened, tree.entries), { code: 'EIO', syscall: name })
      await removeEntries(intercepted(() => undefined).fs, opened, [])
    }
    t.same(contents(path), {}, 'the files went before their directories')
    rmSync(join(path, 'sub/deep'), { recursive: true })
    writeFileSync(join(path, 'more'), '')
    await removeEntries(fs, opened, tree.entries)
    t.same(contents(path), { more: '' })
  },
)

await t.test('a removal ends once its entries are gone', async (t) => {
  const { path, opened, tree } = await old(t)
  const disk = new EventEmitter()
  class Slow extends NodeFileSystem {
    override async removeFile(parent: number, name: string): Promise<void> {
      const answer = once(disk, 'answers')
      disk.emit('asked')
      await answer
      return super.removeFile(parent, name)
    }
  }
  let isOver = false
  const asked = once(disk, 'asked')
  const entries = tree.entries.filter((entry) => entry.path === '' || entry.path === 'a')
  const removing = removeEntries(new Slow(), opened, entries).then(() => (isOver = true))
  await asked
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(isOver)
  disk.emit('answers')
  await removing
  t.notOk(existsSync(join(path, 'a')))
})

await t.test('an owner other than root makes a directory writable, and empties it', async (t) => {
  const { path, opened, tree } = await old(t)
  const uid = process.geteuid?.() === 0 ? 4711 : (process.geteuid?.() ?? 0)
  class Owner extends NodeFileSystem {
    override readonly user = { uid, gid: 0 }
  }
  for (const name of ['sub', 'sub/deep']) {
    if (process.geteuid?.() === 0) chownSync(join(path, name), uid, 0)
    chmodSync(join(path, name), 0o555)
  }
  writeFileSync(join(path, 'more'), '')
  const modes: unknown[] = []
  const { fs: owner } = intercepted((call, [, mode]) => {
    if (call === 'setMode') modes.push(mode)
  }, new Owner())
  await removeEntries(owner, opened, tree.entries)
  t.strictSame(contents(path), { more: '' })
  t.strictSame(modes, [0o755, 0o755])
})
