/** `removePublished` removes a target once no process uses it, its record last. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import type { Descriptor } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { history as past, readPublication, replaceDirectory, replaceFile } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import type { RemovalOptions } from '../../../src/durable/remove/removal-options.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { intercepted, Killed, watchedSyncs } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

/** On test machines, process 1 may be another user's: ignore its descriptors. */
class Here extends NodeFileSystem {
  override async userOf(parent: Descriptor, name: string, onlySeen?: boolean): Promise<string | undefined> {
    const user = await super.userOf(parent, name, onlySeen)
    return user?.startsWith('process 1 may not be looked at') ? undefined : user
  }
}

/** A scan of all processes takes its time: no process uses anything here. */
class Unused extends NodeFileSystem {
  override userOf(): Promise<string | undefined> {
    return Promise.resolve(undefined)
  }
}

const fs = new Unused()
const removed = (target: string, options: RemovalOptions = {}) => removePublished(fs, target, options)

async function replace(target: string, text: string, options: PublicationOptions = {}): Promise<void> {
  const [outcome] = await publish([directoryPublication(fs, { target, files: { 'a/key': text }, ...options })])
  if (outcome && 'error' in outcome) throw outcome.error
}

async function refused(call: Promise<unknown>, expected: object, message?: string): Promise<void> {
  const error = await call.then(
    () => 'it was removed',
    (thrown: unknown) => thrown,
  )
  t.match(error, expected, message ?? '')
}

/** Names beside a target, but for its lock. */
const left = (parent: string): string[] => readdirSync(parent).filter((name) => !name.endsWith('.lock'))

await t.test('each form goes, with its history, its leftovers and its record; others stay', async (t) => {
  const root = scratch(t)
  writeFileSync(join(root, 'bystander'), '')
  const history = { keep: 2, maxAge: null }
  const directory = join(root, 'directory')
  for (const text of ['1', '2', '3']) await replace(directory, text, { history })
  t.equal((await past.read(directory))?.length, 3)
  const links = join(root, 'links')
  await replaceDirectory(links, { files: { a: '1', 'b/c': '2' }, publish: 'symlink' })
  const file = join(root, 'file')
  await replaceFile(file, 'kind: Pod')
  for (const target of [directory, links, file]) {
    await removed(target)
    t.equal(await readPublication(target), undefined)
    await refused(removed(target), { code: 'ENOENT', published: false, message: /has published nothing/ })
  }
  t.same(left(root), ['bystander'])
  t.match(await replaceDirectory(directory, { files: { a: 'again' } }), { outcome: 'created' })
})

await t.test('what an interrupted first publication has staged goes, where no record names it', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replace(target, '1')
  const [record = ''] = left(root).filter((name) => name !== 'certs')
  renameSync(target, join(root, record.replace(/\.[0-9]+$/, '-0123456789abcdef')))
  rmSync(join(root, record))
  t.equal(left(root).length, 1)
  await removed(target)
  t.same(left(root), [])
  await refused(removed(target), { code: 'ENOENT', published: false })
})

await t.test('removePublished keeps a target in use, names the user, and changes nothing', async (t) => {
  const root = scratch(t)
  const taken = (path: string, options: RemovalOptions = {}) => removePublished(new Here(), path, options)
  const target = join(root, 'certs')
  await replace(target, '1')
  const before = names(root)
  const child = spawn('sleep', ['60'], { cwd: join(target, 'a') })
  const ended = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const message = new RegExp(
    `is in use: process ${child.pid} \\(sleep\\) has it as its working directory .*nothing was changed`,
  )
  await refused(taken(target), { reason: 'InUse', published: false, code: 'EBUSY', message })
  await refused(taken(target, { force: true }), { reason: 'InUse' }, 'force is no reason to take it from somebody')
  t.same(names(root), before)
  child.kill('SIGKILL')
  await ended
  const usedBy = () => Promise.resolve('the static pod web mounts it')
  await refused(taken(target, { usedBy }), { reason: 'InUse', message: /the static pod web mounts it/ })
  await taken(target)
  t.same(left(root), [])
})

await t.test('removePublished puts a target back that a process opens or changes in the last instant', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replace(target, '1', { history: { keep: 1, maxAge: null } })
  await replace(target, '2', { history: { keep: 1, maxAge: null } })
  const before = names(root)
  let looks = 0
  class Late extends Unused {
    override userOf(): Promise<string | undefined> {
      return Promise.resolve(++looks === 2 ? 'process 7' : undefined)
    }
  }
  await refused(removePublished(new Late(), target, {}), { reason: 'InUse', published: false })
  t.equal(looks, 2)
  t.same(names(root), before, 'the older record stands again')
  class Changed extends Unused {
    override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      if (args[1] === 'certs') writeFileSync(join(target, 'a/key'), 'precious')
      return super.rename(...args)
    }
  }
  await refused(removePublished(new Changed(), target, {}), { reason: 'TargetForeign', published: false })
  t.same(contents(target), { 'a/key': 'precious' })
  await replace(target, '2')
  class Exchanged extends Unused {
    override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      if (args[1] === 'certs') {
        renameSync(target, join(root, 'moved'))
        cpSync(join(root, 'moved'), target, { recursive: true })
      }
      return super.rename(...args)
    }
  }
  await refused(removePublished(new Exchanged(), target, {}), { reason: 'TargetForeign', published: false })
  t.same(contents(target), { 'a/key': '2' })
})

await t.test('removePublished removes only certain content of holdfast’s, unless forced', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await refused(removed(target), { reason: 'TargetUnfit', code: 'ENOENT' })
  await refused(removed(join(root, 'none/certs')), { reason: 'TargetUnfit', code: 'ENOENT' })
  cpSync(import.meta.dirname, target, { recursive: true })
  await refused(removed(target, { force: true }), { reason: 'TargetUnfit', message: /no record beside it/ })
  renameSync(target, join(root, 'foreign'))
  await replace(target, '1')
  writeFileSync(join(target, 'mine'), 'precious')
  await refused(removed(target), {
    reason: 'TargetForeign',
    message: /mine \(unexpected\); nothing was changed; .*--force/,
  })
  t.same(Object.keys(contents(target)).sort(), ['a/key', 'mine'])
  await removed(target, { force: true })
  t.same(left(root), ['foreign'])

  await replace(target, '1')
  renameSync(target, join(root, 'elsewhere'))
  cpSync(join(root, 'elsewhere'), target, { recursive: true })
  await refused(removed(target), { reason: 'TargetForeign', message: /its record is of another one/ })
  renameSync(target, join(root, 'copy'))
  symlinkSync('elsewhere', target)
  await refused(removed(target, { force: true }), { reason: 'TargetForeign', message: /another type/ })
  renameSync(target, join(root, 'link'))
  await removed(target)
  t.same(
    left(root).sort(),
    ['copy', 'elsewhere', 'foreign', 'link'],
    'of what somebody removed by hand, the record goes',
  )

  await replace(target, '1')
  await setHold(fs, target, { reason: 'INC-1', since: Date.now(), until: null }, {})
  await refused(removed(target), { reason: 'Held', published: false })
  await removed(target, { release: true })
  await replace(target, '1', { publisher: 'install' })
  await refused(removed(target), { reason: 'TargetUnfit', message: /holdfast prune/ })
  await refused(
    removed(target, {
      confirm: ({ publisher }) => {
        throw new Error(`${publisher}, and nothing else`)
      },
    }),
    { message: /prune/ },
  )
})

await t.test('a removal that was interrupted goes on, or a publication takes its place', async (t) => {
  const history = { keep: 1, maxAge: null }
  const prepared = async (): Promise<string> => {
    const target = join(scratch(t), 'certs')
    await replace(target, '1', { history })
    await replace(target, '2', { history })
    return target
  }
  const places: readonly (readonly [string, number])[] = [
    ['rename', 1],
    ['removeFile', 3],
    ['removeDirectory', 1],
    ['removeDirectory', 3],
  ]
  for (const at of places) {
    const again = await prepared()
    await killedAt(again, ...at)
    t.match(await readPublication(again), { removing: true }, at.join(' '))
    await removed(again)
    t.same(left(join(again, '..')), [])

    const published = await prepared()
    await killedAt(published, ...at)
    await replace(published, '3', { history })
    t.same((await readPublication(published))?.differences, [])
    t.equal((await readPublication(published))?.removing, undefined)
    t.same(contents(published), { 'a/key': '3' })
    for (const { state } of (await past.read(published)) ?? []) t.not(state, 'damaged')
    const beside = left(join(published, '..')).filter((name) => name !== basename(published))
    t.equal(beside.filter((name) => !name.includes('-', 20)).length, 1, 'one record')
    t.equal((await past.read(published))?.length, 1 + beside.length - 1)
  }
})

await t.test('the same content published again ends a removal that had not come to its rename', async (t) => {
  const target = join(scratch(t), 'certs')
  await replace(target, '1')
  await killedAt(target, 'rename', 1)
  t.match(await readPublication(target), { removing: true, durable: true })
  await replace(target, '1')
  t.match(await readPublication(target), { removing: undefined, durable: true })
})

await t.test(
  'a removal that continues, or finds nothing left, syncs the ancestors: one may have been renamed',
  async (t) => {
    const target = join(scratch(t), 'above/certs')
    await replace(target, '1')
    await killedAt(target, 'removeFile', 2)
    t.notOk(existsSync(target))
    for (const isOver of [false, true]) {
      const { fs: watched, synced } = watchedSyncs(fs)
      const answer = await removePublished(watched, target, {}).catch((error: unknown) => error)
      t.equal(answer instanceof Error, isOver, 'where nothing is left, it says so')
      t.ok([dirname(target), join(target, '../../..')].every((path) => synced.has(path)))
    }
  },
)

await t.test('confirm sees the newest record, also where the content has stayed the same', async (t) => {
  const target = join(scratch(t), 'certs')
  const keeper = async (options: RemovalOptions = {}): Promise<unknown> => {
    let seen: unknown
    const confirm: RemovalOptions['confirm'] = ({ publisher, agent }) => {
      seen = [publisher, agent?.id]
      throw new TypeError('only a look')
    }
    await t.rejects(removed(target, { ...options, confirm }), TypeError)
    return seen
  }
  await replace(target, '1', { publisher: 'agent' })
  t.same(await keeper(), ['agent', undefined])
  await replace(target, '1', { publisher: 'agent', agent: 'this one' })
  t.same(await keeper(), ['agent', 'this one'])
  await setHold(fs, target, { reason: '', since: 1, until: null }, {})
  t.same(await keeper({ release: true }), ['agent', 'this one'])
  await replace(target, '2', { release: true })
  t.same(await keeper(), [undefined, undefined])
})

/** Nothing happens from this call on. */
async function killedAt(target: string, name: string, nth: number): Promise<void> {
  let seen = 0
  const { fs: dying } = intercepted((call) => {
    if (call === name) seen++
    if (seen >= nth) throw new Killed()
  }, fs)
  await t.rejects(removePublished(dying, target, {}))
}

function names(root: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'latin1')]),
  )
}

await t.test('a dry run of a removal syncs nothing where nothing is left', async (t) => {
  const target = join(scratch(t), 'certs')
  await replace(target, '1')
  await removed(target)
  for (const dryRun of [true, false]) {
    const { fs: watched, synced } = watchedSyncs(fs)
    await t.rejects(removePublished(watched, target, { dryRun }))
    t.equal(synced.size > 0, !dryRun)
  }
})
