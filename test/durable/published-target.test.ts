/** What calls on a published target have in common: their refusals, before anything is made, and their lock. On the model disk. */
import { hash } from 'node:crypto'
import t from 'tap'
import type { FileSystem } from '../../src/durable/file-system.js'
import { readPublication } from '../../src/durable/look/inspect.js'
import { pruneHistory } from '../../src/durable/look/read-history.js'
import { setHold } from '../../src/durable/operator/hold.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import type { HoldOptions } from '../../src/durable/types.js'
import { find } from '../crash/model/content.js'
import type { ModelDisk } from '../crash/model/model-disk.js'
import type { ModelProcess } from '../crash/model/model-process.js'
import { makeEntry } from '../crash/model/scenario.js'
import { Asked, names, published, refusal, target, Unproven } from './model-target.js'

const hold = { reason: 'INC-7', since: 1, until: null }
const changes = /^(create|openLock|write|sync|rename|remove)/

type Call = (fs: FileSystem, path?: string, options?: HoldOptions) => Promise<unknown>

const prune: Call = (fs, path = target, options = {}) => pruneHistory(fs, path, { keep: 0, maxAge: null }, options)
const writing: Readonly<Record<string, Call>> = {
  setHold: (fs, path = target, options = {}) => setHold(fs, path, hold, options),
  removePublished: (fs, path = target, options = {}) => removePublished(fs, path, options),
}

/** With an earlier content: without one, nothing is to be pruned. */
async function publishedTwice<Process extends ModelProcess = ModelProcess>(Process?: new (disk: ModelDisk) => Process) {
  const history = { keep: 1, maxAge: null }
  const scene = await published(Process, { history })
  await publish([directoryPublication(scene.fs, { target, files: { a: '2' }, history })])
  scene.calls.length = 0
  return scene
}

for (const [name, call] of Object.entries({ ...writing, pruneHistory: prune })) {
  await t.test(`${name} refuses an unproven file system only with requireProven`, async (t) => {
    const { fs, calls, beside } = await publishedTwice(Unproven)
    const before = beside()
    const refused = await refusal(call(fs, target, { requireProven: true }))
    t.match(refused, { code: 'ENOTSUP', published: false })
    t.notOk(calls.some((made) => changes.test(made) && made !== `openLock ${names.lock}`))
    t.strictSame(beside(), before)
    t.equal(await refusal(call(fs)), undefined)
  })

  await t.test(`a newer version's record refuses ${name}, which reads nothing of the target then`, async (t) => {
    const { disk, fs, calls, beside } = await publishedTwice()
    const line = JSON.stringify({ version: 1000, name: 'certs' })
    makeEntry(disk, `/etc/${names.record(9)}`, 'file', 0o600, `${hash('sha256', line)} ${line}\n`)
    const before = beside()
    t.match(await refusal(call(fs)), { code: 'ENOTSUP', message: /another version of holdfast/ })
    t.strictSame(beside(), before)
    t.notOk(name === 'removePublished' && calls.includes('openDirectory certs'))
  })

  await t.test(`a waiter in this process gets the lock of ${name} once that has closed all descriptors`, async (t) => {
    const { fs } = await publishedTwice(Asked)
    t.strictSame([await fs.during(() => call(fs)), fs.descriptors], [undefined, 0])
    t.strictSame([...new Set(fs.told)], [`another call of this process is publishing ${target} and holds its lock`])
    t.ok(fs.told.length > 3)
    const next = await refusal(setHold(fs, target, undefined, {}))
    t.strictSame((next as { code?: string } | undefined)?.code, name === 'removePublished' ? 'ENOENT' : undefined)
  })
}

for (const [name, call] of Object.entries(writing)) {
  await t.test(`${name} of an unpublished path makes no directory`, async (t) => {
    const { fs, beside } = await published()
    const before = beside()
    for (const path of ['/etc/none/certs', '/etc/none/there/certs']) {
      t.match(await refusal(call(fs, path)), { code: 'ENOENT', message: /^holdfast has published nothing at / })
      t.strictSame(beside(), before)
    }
  })

  await t.test(`${name} keeps a file that takes its record's name in the last instant, and the target`, async (t) => {
    const { disk, fs, calls } = await published()
    const theirs = `/etc/${names.record(2)}`
    fs.before = (made, entry) => {
      calls.push(made)
      if (made === 'createFile' && entry === names.record(2)) makeEntry(disk, theirs, 'file', 0o600, 'precious')
    }
    const problem = name === 'setHold' ? /^could not hold \/etc\/certs/ : /^could not remove \/etc\/certs: /
    t.match(await refusal(call(fs)), { code: 'EEXIST', published: false, problem })
    t.equal(find(disk, theirs)?.now.data, 'precious')
    const made = calls.filter((one) => /^(create|write|sync|rename|remove)/.test(one))
    t.strictSame(made, ['createFile'], 'nothing is to be taken back')
    const { differences, removing, hold: held } = (await readPublication(fs, target)) ?? {}
    t.strictSame([differences, removing, held], [[], undefined, undefined])
  })
}
