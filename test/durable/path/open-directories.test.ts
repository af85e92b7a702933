/*
 * A tree can have more directories, and deeper ones, than a process may have descriptors.
 */
import { nameOf, parentOf } from '../../../src/relative-path.js'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { syncBelow } from '../../../src/durable/path/barrier.js'
import { entriesBelow, inside, OpenDirectories } from '../../../src/durable/path/open-directories.js'
import { compareBytes } from '../../../src/durable/path/names.js'
import { replaceDirectory } from '../../../src/durable/publish/replace.js'
import { failure, intercepted } from '../intercepted.js'
import { scratch } from '../scratch.js'

await t.test('a path, the directory that holds it, and its name there', async (t) => {
  for (const [path, parent, name] of [
    ['a', '', 'a'],
    ['a/b', 'a', 'b'],
    ['a/bc/d', 'a/bc', 'd'],
  ] as const) {
    t.strictSame([parentOf(path), nameOf(path), inside(parent, name)], [parent, name, path])
  }
  t.equal(parentOf(''), '', 'the one that all others are in')
})

await t.test('OpenDirectories closes as few directories as the new one needs', async (t) => {
  const root = scratch(t)
  for (const path of ['a', 'b/c', 'd']) mkdirSync(join(root, path), { recursive: true })
  let asked = 0
  const narrow = Object.defineProperty(new NodeFileSystem(), 'openDirectories', {
    get: () => {
      if (++asked > 100) throw failure('ETIMEDOUT', 'room')
      return 1
    },
  })
  const { fs, open } = intercepted(() => undefined, narrow)
  const top = await fs.openPath(root)
  const directories = new OpenDirectories(fs, top)
  const pathOf = (path: string): Promise<string> =>
    directories.use(path, (one) => Promise.resolve(readlinkSync(`/proc/self/fd/${one}`).slice(root.length)))
  for (const path of ['a', 'b/c', 'd', 'b', 'a', 'a']) {
    t.equal(await pathOf(path).catch(String), `/${path}`)
    t.equal(open.size, 2, 'one, and the one that all are in')
  }
  await directories.closeAll()
  await fs.close(top)
})

await t.test('entriesBelow answers entries in the order of their paths, and leaves no descriptor open', async (t) => {
  const root = scratch(t)
  for (const path of ['a/z', 'a-b/c/d', 'a.b/e', 'a0/f', 'b/a!/g', 'b/a/h']) {
    execFileSync('mkdir', ['-p', join(root, path)])
    writeFileSync(join(root, `${path}.txt`), path)
  }
  const { fs, open } = intercepted(() => undefined, Object.assign(new NodeFileSystem(), { openDirectories: 1 }))
  const top = await fs.openPath(root)
  const directories = new OpenDirectories(fs, top)
  const found: string[] = []
  for await (const { path } of entriesBelow(directories)) found.push(path)
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' })
  t.strictSame(found, all.sort(compareBytes))
  await directories.closeAll()
  t.strictSame([...open], [top])
  await fs.close(top)
})

await t.test('a sync of all that is below syncs each once, of so much at a time as may be open', async (t) => {
  const root = scratch(t)
  const paths = Array.from({ length: 20 }, (_, index) => `d${index % 4}/e${index}/file`)
  for (const path of paths) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), path)
  }
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((path) => join(root, path))
  // The last turn has more than one, none, and one.
  for (const [openDirectories, stagedFiles] of [
    [1, 3],
    [1, all.length],
    [100, all.length - 1],
  ] as const) {
    const synced: string[] = []
    let turns = 0
    const narrow = Object.assign(new NodeFileSystem(), { openDirectories, stagedFiles })
    const { fs, open } = intercepted((call, args) => {
      if (call !== 'sync') return
      if (stagedFiles === 3) t.ok(open.size <= 8, `${open.size} descriptors`)
      synced.push(...(args[0] as number[]).map((one) => readlinkSync(`/proc/self/fd/${one}`)))
      if (++turns > all.length) throw new Error('it does not end')
    }, narrow)
    const top = await fs.openPath(root)
    await syncBelow(fs, top, [top])
    await fs.close(top)
    t.strictSame(synced.sort(), [root, ...all].sort())
    t.equal(open.size, 0)
  }
})

await t.test(
  'OpenDirectories tries a failed directory again, and closes and refuses another one at its path',
  async (t) => {
    const root = scratch(t)
    for (const path of ['a/b', 'c', 'other']) mkdirSync(join(root, path), { recursive: true })
    let failing = ''
    const { fs, open } = intercepted(
      (call, [, name]) => {
        if (call === 'openDirectory' && name === failing) throw failure('EIO', 'openat2')
      },
      Object.assign(new NodeFileSystem(), { openDirectories: 1 }),
    )
    const top = await fs.openPath(root)
    const directories = new OpenDirectories(fs, top)
    const pathOf = (path: string): Promise<string> =>
      directories.use(path, (one) => Promise.resolve(readlinkSync(`/proc/self/fd/${one}`).slice(root.length)))
    for (const name of ['a', 'b']) {
      failing = name
      await t.rejects(pathOf('a/b'), { code: 'EIO' })
      failing = ''
      t.equal(await pathOf('a/b'), '/a/b')
      t.equal(open.size, 2, 'the one that was used last stays open, and no other')
      t.equal(await pathOf('c'), '/c')
      t.equal(open.size, 2)
    }
    renameSync(join(root, 'a/b'), join(root, 'b'))
    renameSync(join(root, 'other'), join(root, 'a/b'))
    await t.rejects(pathOf('a/b'), { code: 'ESTALE', message: 'a/b has become another directory meanwhile' })
    await directories.closeAll()
    t.strictSame([...open], [top])
    await fs.close(top)
  },
)

await t.test(
  'OpenDirectories keeps as many open as it may, also a directory that a caller uses before its close',
  async (t) => {
    const root = scratch(t)
    for (const path of ['a', 'b', 'c', 'd']) mkdirSync(join(root, path))
    const pathOf = (descriptor: number): string => readlinkSync(`/proc/self/fd/${descriptor}`).slice(root.length)
    let whenLooked = (): void => undefined
    const narrow = Object.assign(new NodeFileSystem(), { openDirectories: 2 })
    const { fs, open } = intercepted((call) => {
      if (call === 'attributes') whenLooked()
    }, narrow)
    const top = await fs.openPath(root)
    const directories = new OpenDirectories(fs, top)
    const read = (path: string): Promise<string> => directories.use(path, (one) => Promise.resolve(pathOf(one)))
    t.strictSame([await read('a'), await read('b'), open.size], ['/a', '/b', 3], 'two and the one that they are in')

    let goOn = (): void => undefined
    const using = new Promise<void>((resolve) => (goOn = resolve))
    const asked: Promise<string>[] = []
    whenLooked = () => {
      whenLooked = () => undefined
      asked.push(directories.use('a', async (one) => (await using, pathOf(one))).catch(String))
    }
    t.equal(await read('c'), '/c')
    goOn()
    t.strictSame(await Promise.all(asked), ['/a'])
    t.equal(await read('d'), '/d')
    t.equal(open.size, 3)

    await directories.closeAll()
    const other = await fs.openPath(join(root, 'a'))
    await directories.closeAll()
    t.equal(await Promise.resolve(other).then(pathOf).catch(String), '/a', 'a number that another file has by now')
    await fs.close(other)
    t.strictSame([...open], [top])
    await fs.close(top)
  },
)

await t.test('a caller during the close of a directory gets a new descriptor', async (t) => {
  const root = scratch(t)
  for (const path of ['a', 'b']) mkdirSync(join(root, path))
  let whenClosed = (): void => undefined
  class Closing extends NodeFileSystem {
    override readonly openDirectories = 1
    override async close(descriptor: number): Promise<void> {
      await super.close(descriptor)
      whenClosed()
    }
  }
  const fs = new Closing()
  const top = await fs.openPath(root)
  const directories = new OpenDirectories(fs, top)
  const read = (path: string): Promise<string> =>
    directories
      .use(path, (one) => Promise.resolve(readlinkSync(`/proc/self/fd/${one}`).slice(root.length)))
      .catch(String)
  const asked: Promise<string>[] = []
  t.equal(await read('a'), '/a')
  whenClosed = () => {
    whenClosed = () => undefined
    asked.push(read('a'))
  }
  t.equal(await read('b'), '/b')
  t.strictSame(await Promise.all(asked), ['/a'])
  await directories.closeAll()
  await fs.close(top)
})

await t.test(
  'who goes a deep path up again opens each directory a few times, and not all above it each time',
  async (t) => {
    const opened = async (depth: number): Promise<number> => {
      const target = join(scratch(t), 'certs')
      const files = { [`${'a/'.repeat(depth)}f`]: 'x' }
      let count = 0
      const { fs } = intercepted((call) => {
        if (call === 'openDirectory') count++
      })
      await replaceDirectory(target, { files }, fs)
      await replaceDirectory(target, { files: { ...files, other: 'y' } }, fs)
      return count
    }
    const [some, more] = [await opened(200), await opened(400)]
    t.ok(more < 2.2 * some, `${some} openings, ${more} of twice the depth`)
  },
)
