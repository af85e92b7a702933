/** Two trees that change places, and the removal of the old one. */
import { closeSync, mkdirSync, openSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceDirectory } from '../../../src/durable/index.js'
import { tryLock } from '../../../native/index.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import {
  identityAt,
  knownContent,
  removeTarget,
  swapPlaces,
  syncPlaces,
} from '../../../src/durable/single-calls/swap-places.js'
import { failure, intercepted, type Interceptor } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

const system = new NodeFileSystem()
const nothing: Interceptor = () => undefined

function scene(t: Test, ...names: string[]): { root: string; here: string; there: string } {
  const root = scratch(t)
  for (const name of names) {
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'of'), name)
  }
  return { root, here: join(root, 'here'), there: join(root, 'there') }
}

/** How many there are above depends on where this runs: the way up ends at a mount point. */
const syncOf = ({ length }: readonly number[]): string => `sync of ${length > 1 ? 'several' : 'one'}`

/** Each call that changes a name or makes something durable. */
function watched(calls: string[], fails: Interceptor = nothing): FileSystem {
  const { fs } = intercepted((call, args, index) => {
    if (/^(rename|sync|remove|create)/.test(call)) {
      calls.push(
        call === 'rename' ? `rename ${String(args[4])}` : call === 'sync' ? syncOf(args[0] as readonly number[]) : call,
      )
    }
    fails(call, args, index)
  })
  return fs
}

await t.test('both change places at once; one alone takes the place of the other', async (t) => {
  for (const [names, after, mode] of [
    [['here', 'there'], { 'here/of': 'there', 'there/of': 'here' }, 'exchange'],
    [['there'], { 'here/of': 'there' }, 'noreplace'],
    [['here'], { 'there/of': 'here' }, 'noreplace'],
    [[], {}, undefined],
  ] as const) {
    const { root, here, there } = scene(t, ...names)
    const calls: string[] = []
    await swapPlaces(watched(calls), here, there)
    t.same(contents(root), { ...after, [namesFor('here').lock]: '' }, names.join())
    const renames = mode === undefined ? [] : [`rename ${mode}`]
    t.same(calls, [...renames, 'sync of several', 'createFile', 'removeFile'], 'with all directories above')
  }
  const { root, here } = scene(t, 'here')
  await t.rejects(swapPlaces(system, here, join(root, 'x', 'there')), {
    name: 'TypeError',
    message: /are not in one directory$/,
  })
})

await t.test('syncPlaces syncs both parents again', async (t) => {
  const { here, there } = scene(t, 'here', 'there')
  const calls: string[] = []
  await syncPlaces(watched(calls), here, there)
  t.same(calls, ['sync of several', 'createFile', 'removeFile'])
})

await t.test('what fails says whether they have changed places', async (t) => {
  for (const [operation, at, published, doing] of [
    [swapPlaces, 'rename', false, 'could not exchange'],
    [swapPlaces, 'sync', true, 'could not exchange'],
    [syncPlaces, 'sync', true, 'could not sync'],
  ] as const) {
    const { here, there } = scene(t, 'here', 'there')
    const fs = watched([], (call) => {
      if (call === at) throw failure('EIO', at)
    })
    await t.rejects(
      operation(fs, here, there),
      { code: 'EIO', published, path: here, message: new RegExp(`^${doing} `) },
      at,
    )
    // The lock is free again, for this process and for others.
    await operation(system, here, there)
  }
})

await t.test('swapPlaces holds the lock against every publisher', async (t) => {
  const { root, here, there } = scene(t, 'here', 'there')
  const lock = openSync(join(root, namesFor('here').lock), 'w', 0o600)
  t.ok(tryLock(lock))
  const opened: unknown[] = []
  const { fs } = intercepted((call, [path]) => {
    if (call === 'openPath') opened.push(path)
  })
  await t.rejects(swapPlaces(fs, here, there), { code: 'EAGAIN', reason: 'Busy', message: /holds its lock/ })
  t.same(contents(join(root, 'here')), { of: 'here' })
  closeSync(lock)
  const last = [...opened]
  await swapPlaces(fs, here, there)
  t.ok(opened.length > 2 * last.length, 'what is above is opened under the lock')
})

await t.test('calls for one path come one after the other; those for others do not wait', async (t) => {
  const { here, there } = scene(t, 'here', 'there')
  const other = scene(t, 'here', 'there')
  const outcome = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => 'done',
      (error: unknown) => (error as { message?: string }).message,
    )
  const others: unknown[] = []
  const same: unknown[] = []
  class Watched extends NodeFileSystem {
    override async sync(...args: Parameters<NodeFileSystem['sync']>): ReturnType<NodeFileSystem['sync']> {
      others.push(await outcome(swapPlaces(system, other.here, other.there)))
      return super.sync(...args)
    }
    override async close(descriptor: number): Promise<void> {
      if (others.length > 0) same.push(await outcome(swapPlaces(system, here, there)))
      return super.close(descriptor)
    }
  }
  await swapPlaces(new Watched(), here, there)
  t.strictSame(new Set(others), new Set(['done']))
  const [first, ...more] = new Set(same)
  t.match(first, /^another call of this process is publishing/, 'until the last descriptor is closed')
  t.strictSame(more, [])
})

await t.test('identityAt tells a directory from a later one', async (t) => {
  const { root, here, there } = scene(t, 'here', 'there')
  const before = await identityAt(system, here)
  t.match(before, { inode: statSync(here, { bigint: true }).ino.toString() })
  t.notSame(before, await identityAt(system, there))
  t.equal(await identityAt(system, join(root, 'none')), undefined)
})

async function known(path: string) {
  const directory = await system.openPath(path)
  try {
    return await knownContent(system, directory)
  } finally {
    await system.close(directory)
  }
}

await t.test(
  'removeTarget removes known entries with the records, and renames a directory with unknown ones',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    await replaceDirectory(target, { files: { a: '1', 'sub/b': '2' } })
    await replaceDirectory(join(parent, 'other'), { files: { c: '3' } })
    const others = readdirSync(parent).filter(
      (name) => name === 'other' || name.includes(namesFor('other').lock.slice(0, -5)),
    )
    const entries = await known(target)
    t.same(entries.map(({ path }) => path).sort(), ['', 'a', 'sub', 'sub/b'])
    const names = namesFor('certs')
    // As a kill leaves it.
    mkdirSync(join(parent, names.staging('0123456789abcdef')))
    mkdirSync(join(parent, names.generation(1, '0123456789abcdef')))
    const calls: string[] = []
    t.equal(await removeTarget(watched(calls), target, entries), undefined)
    t.same(readdirSync(parent).sort(), [...others, names.lock].sort(), 'only its own went, and its lock stays')
    t.equal(calls.at(-1), 'sync of several')
    t.equal(await removeTarget(system, target, entries), undefined, 'what is not there is no failure')

    for (const [what, change] of [
      ['more in it', () => writeFileSync(join(target, 'more'), 'x')],
      ['more below', () => writeFileSync(join(target, 'sub', 'more'), 'x')],
      ['other content', () => writeFileSync(join(target, 'a'), 'other')],
    ] as const) {
      await replaceDirectory(target, { files: { a: '1', 'sub/b': '2' } })
      change()
      const before = contents(target)
      const kept = await removeTarget(system, target, entries)
      t.ok(names.quarantineOf(kept ?? ''), what)
      t.same(contents(join(parent, kept ?? 'none')), before, what)
    }
    symlinkSync('other', target)
    const link = await removeTarget(system, target, entries)
    t.ok(link !== undefined && readdirSync(parent).includes(link), 'a link is no directory of ours')
  },
)

await t.test('nothing goes of a directory in which another program has mounted something', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  await replaceDirectory(target, { files: { a: '1', 'sub/b': '2' } })
  const entries = await known(target)
  class Mounted extends NodeFileSystem {
    override mountsBelow(): Promise<string[]> {
      return Promise.resolve(['sub'])
    }
  }
  await t.rejects(removeTarget(new Mounted(), target, entries), {
    code: 'EBUSY',
    published: false,
    cause: { message: /mount point of another/ },
  })
  t.same(contents(target), { a: '1', 'sub/b': '2' })
})

await t.test('what comes while it is removed stays, as a whole; another failure is an error', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: '1' } })
  const entries = await known(target)
  const late = watched([], (call) => {
    if (call === 'removeDirectory') writeFileSync(join(target, 'late'), 'x')
  })
  const kept = await removeTarget(late, target, entries)
  t.same(contents(join(parent, kept ?? 'none')), { late: 'x' })
  await replaceDirectory(target, { files: { a: '1' } })
  const broken = watched([], (call) => {
    if (call === 'removeFile') throw failure('EIO', 'unlink')
  })
  await t.rejects(removeTarget(broken, target, entries), {
    code: 'EIO',
    published: true,
    message: /^could not remove .*may be gone/,
  })
  t.ok(readdirSync(parent).includes('certs'), 'it is where it was')
})
