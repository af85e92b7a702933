/** What a batch has staged stays open until it is synced, and no more of it than the bound says. */
// Own process: it counts the descriptors of its process.
import { closeSync, constants, openSync, readdirSync, readlinkSync } from 'node:fs'
import t, { type Test } from 'tap'
import { fsyncAll, StagedEntries } from '../../src/durable/path/barrier.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { Scope } from '../../src/durable/path/scope.js'
import { failure } from './intercepted.js'
import { scratch } from './scratch.js'

/** Throws after more calls than any answer takes. */
function ending(): () => void {
  let times = 0
  return () => {
    if (++times > 50) throw new Error('it does not end')
  }
}

/** The real file system with room for two, on which nothing is synced, but counted. */
class Bounded extends NodeFileSystem {
  readonly synced: number[] = []
  readonly failing = new Map<number, Error>()
  /** Called while they are synced. */
  meanwhile: (() => unknown) | undefined

  constructor() {
    super()
    const asked = ending()
    const get = () => {
      asked()
      return 2
    }
    Object.defineProperty(this, 'stagedFiles', { get })
  }

  override async startWriteOut(files: readonly number[]) {
    await Promise.resolve()
    return files.map(() => undefined)
  }

  override async sync(descriptors: readonly number[]) {
    this.synced.push(descriptors.length)
    await this.meanwhile?.()
    return descriptors.map((descriptor) => this.failing.get(descriptor))
  }
}

class Asked extends StagedEntries<string> {
  readonly #asked = ending()
  override take() {
    this.#asked()
    return super.take()
  }
}

function scene(t: Test) {
  const root = scratch(t)
  const parent = openSync(root, constants.O_RDONLY)
  const fs = new Bounded()
  const scope = new Scope(fs)
  t.teardown(async () => {
    await scope.closeAll()
    closeSync(parent)
  })
  const staged = new Asked(fs)
  let made = 0
  /** The descriptor of a new file, or that there is none. */
  const create = () => staged.create(scope, parent, `file-${made++}`).catch(() => -1)
  const openFiles = (): string[] =>
    readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        const path = readlinkSync(`/proc/self/fd/${fd}`)
        return path.startsWith(`${root}/`) ? [path.slice(root.length + 1)] : []
      } catch {
        return []
      }
    })
  return { root, fs, scope, staged, create, openFiles }
}

await t.test('staged files stay open up to their bound, and a sync precedes the next ones', async (t) => {
  const { fs, scope, staged, create, openFiles } = scene(t)
  let last = -1
  for (const [index, owner] of ['a', 'b', 'c', 'd', 'e'].entries()) {
    last = await create()
    // Numbers are given out again: a failure of the second file alone.
    if (index === 1) fs.failing.set(last, new Error('the disk'))
    if (index === 2) fs.failing.clear()
    staged.add(scope, last, owner, index === 4)
  }
  t.same(fs.synced, [2, 2], 'two barriers of two')
  t.same([...staged.failures.keys()], ['b'])
  t.same(
    staged.take().map(({ descriptor, owners, later }) => [descriptor, owners, later]),
    [[last, ['e'], true]],
  )
  t.same(staged.take(), [], 'handed over once')
  t.ok(scope.holds(last))
  t.same(openFiles(), ['file-4'], 'what is synced is closed')
})

await t.test('staged directories, too: no more are open than the bound says', async (t) => {
  const { root, fs, scope, staged } = scene(t)
  const open: unknown[] = []
  for (const owner of ['a', 'b', 'c', 'd', 'e']) {
    const directory = await scope.keep(fs.openPath(root))
    const added = await staged.addDirectory(scope, directory, owner).catch(() => 'fails')
    open.push(added ?? readdirSync('/proc/self/fd').filter((fd) => scope.holds(Number(fd))).length)
  }
  t.same(open, [1, 2, 1, 2, 1])
  t.same(fs.synced, [2, 2])
  t.same(
    staged.take().map(({ type, owners, later }) => [type, owners, later]),
    [['directory', ['e'], false]],
  )
  t.same(staged.take(), [], 'handed over once')
})

await t.test('files and directories have a bound each, and are synced in one barrier', async (t) => {
  const { root, fs, scope, staged, create } = scene(t)
  staged.add(scope, await create(), 'a')
  await staged.addDirectory(scope, await scope.keep(fs.openPath(root)), 'a')
  staged.add(scope, await create(), 'a')
  t.same(fs.synced, [], 'two files and a directory have room')
  await create()
  t.same(fs.synced, [3])
})

await t.test('a waiter for a barrier waits for another one where a third takes the room meanwhile', async (t) => {
  const { fs, scope, staged, create } = scene(t)
  // Written by others, who were let in before.
  const others = [await create(), await create()]
  for (const owner of ['a', 'b']) staged.add(scope, await create(), owner)
  fs.meanwhile = () => {
    for (const file of others.splice(0)) staged.add(scope, file, 'c')
  }
  t.same(fs.synced, [])
  const waiting = [create(), create()]
  t.notMatch(await Promise.all(waiting), [-1, -1])
  t.same(fs.synced, [2, 2], 'both wait for the same two barriers')
})

await t.test('StagedEntries keeps the first failure of an owner', async (t) => {
  const { fs, scope, staged, create } = scene(t)
  const [first, second] = [failure('EIO', 'fsync'), failure('ENOSPC', 'fsync')]
  for (const error of [first, second]) {
    for (const owner of ['a', 'b']) {
      const file = await create()
      fs.failing.clear()
      fs.failing.set(file, error)
      staged.add(scope, file, owner)
    }
  }
  await create()
  t.same([...staged.failures], [['b', first]])
})

await t.test('of all that are synced at once, the first failure is thrown', async (t) => {
  const fs = new Bounded()
  await fsyncAll(fs, [1, 2])
  fs.failing.set(2, failure('EIO', 'fsync')).set(3, failure('ENOSPC', 'fsync'))
  await t.rejects(fsyncAll(fs, [1, 2, 3]), { code: 'EIO' })
  t.same(fs.synced, [2, 3])
})
