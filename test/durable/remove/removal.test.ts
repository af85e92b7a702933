/** `removePublished` removes a target once no process uses it, its record last. */
import { cpSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { setHold } from '../../../src/durable/operator/hold.js'
import { history as past, readPublication, replaceDirectory, replaceFile } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { removePublished, type RemovalOptions } from '../../../src/durable/remove/removal.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { intercepted, Killed, watchedSyncs } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

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

/** Nothing happens from this call on. */
async function killedAt(target: string, name: string, nth: number): Promise<void> {
  let seen = 0
  const { fs: dying } = intercepted((call) => {
    if (call === name) seen++
    if (seen >= nth) throw new Killed()
  }, fs)
  await t.rejects(removePublished(dying, target, {}))
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
