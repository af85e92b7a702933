/** holdfast makes another program's files durable: names of a directory, and the files behind links among them. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableCalls, fsyncAll } from '../../src/durable/index.js'
import { failing, watchedSyncs } from './intercepted.js'
import { scratch } from './scratch.js'

/** A directory with these files, and the paths below it that `syncNames` syncs. */
function made(t: Test, files: readonly string[], links: Readonly<Record<string, string>> = {}) {
  const root = scratch(t)
  for (const path of files) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    if (path.endsWith('/')) mkdirSync(join(root, path))
    else writeFileSync(join(root, path), '')
  }
  for (const [path, text] of Object.entries(links)) symlinkSync(text, join(root, path))
  const synced = async (path: string, names?: readonly string[]): Promise<string[]> => {
    const { fs, synced } = watchedSyncs()
    await new DurableCalls(fs).syncNames(join(root, path), names)
    return [...synced]
      .filter((at) => at.startsWith(root))
      .map((at) => at.slice(root.length + 1))
      .sort()
  }
  return { root, synced }
}

await t.test('syncNames syncs a directory, its named files, and its ancestors', async (t) => {
  const { synced } = made(t, ['deep/dir/a', 'deep/dir/b', 'deep/dir/sub/'])
  t.same(await synced('deep/dir'), ['', 'deep', 'deep/dir'])
  t.same(await synced('deep/dir', ['a', 'none', 'sub']), ['', 'deep', 'deep/dir', 'deep/dir/a'])
  t.same(await synced('none', ['a']), [], 'nothing where there is no such directory')
  t.same(await synced('none/below', ['a']), [])
})

await t.test('syncNames syncs each link on the way to a file, the file, and the ancestors of each', async (t) => {
  const { synced } = made(t, ['dir/a', 'one/mid/x', 'two/far/file', 'two/far/other'], {
    'dir/link': '../one/mid/link',
    'one/mid/link': '../../two/far/file',
  })
  const all = ['', 'dir', 'one', 'one/mid', 'two', 'two/far', 'two/far/file']
  t.same(await synced('dir', ['link']), all)
  t.same(await synced('dir', ['link', 'a']), [...all, 'dir/a'].sort())
})

await t.test('a link that leads to nothing: the directory in which that would be, as far as it is there', async (t) => {
  const { synced } = made(t, ['dir/a', 'one/mid/x'], {
    'dir/gone': '../one/mid/none',
    'dir/far': '../one/mid/no/such/x',
  })
  t.same(await synced('dir', ['gone']), ['', 'dir', 'one', 'one/mid'])
  t.ok((await synced('dir', ['far'])).includes('one/mid'))
})

await t.test('a failure says what could not be synced, and that nothing was changed; nothing stays open', async (t) => {
  const { root } = made(t, ['dir/a'])
  const { fs, open } = failing('sync', 'EIO', 'fsync')
  const problem = new RegExp(`^could not sync ${root}/dir: `)
  await t.rejects(new DurableCalls(fs).syncNames(join(root, 'dir'), ['a']), {
    name: 'DurableWriteError',
    code: 'EIO',
    published: false,
    problem,
  })
  t.equal(open.size, 0)
})

await t.test('of a directory that is open already: itself alone', async (t) => {
  const root = scratch(t)
  const { fs, synced } = watchedSyncs()
  const durable = new DurableCalls(fs)
  await durable.inDirectory(root, (directory) => fsyncAll(durable.fs, [directory]))
  t.same([...synced], [root])
})
