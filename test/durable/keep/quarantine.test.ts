/*
 * Another program puts its own under the target's name in the last instant before the exchange, which takes it out; and the
 * process is killed before it has given it back. What the other program has put there is never deleted, and the next run says so.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Mount } from '../../../src/durable/file-system.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { quarantineOld } from '../../../src/durable/keep/quarantine.js'
import { encodeRecord } from '../../../src/durable/record/record.js'
import type { RecordBody } from '../../../src/durable/record/record-fields.js'
import type { Log } from '../../../src/log.js'
import { intercepted, type Interceptor, Killed } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

const real = new NodeFileSystem()
const names = namesFor('certs')
const staging = /^\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}$/
const foreign = /^\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}\.foreign$/

type Put = (target: string) => void
const directory: Put = (target) => {
  mkdirSync(join(target, 'sub'), { recursive: true })
  writeFileSync(join(target, 'theirs'), 'precious')
  writeFileSync(join(target, 'sub/more'), 'precious too')
}
const theirs = { theirs: 'precious', 'sub/more': 'precious too' }

interface Scene {
  readonly parent: string
  readonly target: string
  /** Whether the process was killed. */
  readonly killed: boolean
}

/** Publishes over an old content, the other program comes first, and the process dies at the n-th call after the exchange. */
async function intruded(t: Test, dies: number, put = directory, family?: string): Promise<Scene> {
  const [parent, target] = scratchWith(t, 'certs')
  const request = { target, ...(family !== undefined && { family }) }
  await publish([directoryPublication(real, { ...request, files: { a: 'old' } })])
  let calls = 0
  const { fs } = intercepted((call) => {
    if (call === 'rename' && calls === 0) {
      renameSync(target, join(parent, 'moved-away'))
      put(target)
    }
    if ((call === 'rename' || calls > 0) && calls++ >= dies) throw new Killed()
  })
  await publish([directoryPublication(fs, { ...request, files: { a: 'new', b: 'new' } })]).catch(() => undefined)
  return { parent, target, killed: calls > dies }
}

/** Names beside the target that match. */
function beside(parent: string, pattern: RegExp): string[] {
  return readdirSync(parent).filter((name) => pattern.test(name))
}

function listening(): { log: Log; warnings: [object, string][] } {
  const warnings: [object, string][] = []
  const nothing = (): void => undefined
  const log = { debug: nothing, info: nothing, warn: (...said: [object, string]) => warnings.push(said) }
  return { log: { ...log, error: nothing }, warnings }
}

/** Another boot, on a file system that keeps its inodes' numbers, or not. */
class Rebooted extends NodeFileSystem {
  constructor(readonly lasting: boolean) {
    super()
  }
  override async bootId(): Promise<string> {
    return Promise.resolve('another boot')
  }
  override async mount(descriptor: number): Promise<Mount> {
    return { ...(await super.mount(descriptor)), lasting: this.lasting }
  }
}

await t.test(
  'killed before it is given back: the next run puts it into quarantine, says so, and it stays',
  async (t) => {
    const { parent, target, killed } = await intruded(t, 1)
    t.ok(killed)
    t.same(contents(target), { a: 'new', b: 'new' }, 'the exchange is done')
    const [taken = ''] = beside(parent, staging)
    t.same(contents(join(parent, taken)), theirs)

    const { log, warnings } = listening()
    const next = directoryPublication(real, { target, files: { a: 'newer' }, log })
    t.match(await publish([next]), [{ outcome: 'replaced' }])
    const quarantined = `${taken}.foreign`
    t.match(warnings, [[{ path: target, quarantined }, /another program replaced .*\.foreign beside it: look at it/]])
    for (const content of ['newest', 'the very newest']) {
      await publish([directoryPublication(real, { target, files: { a: content }, log })])
      t.same(contents(target), { a: content })
      t.same(contents(join(parent, quarantined)), theirs)
      t.same(beside(parent, staging), [], 'nothing of ours is left')
      t.equal(beside(parent, /\.\d+$/).length, 1)
    }
    t.equal(warnings.length, 1, 'once')
  },
)

/** What a run does to names, in order, until it is killed where `dies` says so. */
async function watched(
  target: string,
  fs: NodeFileSystem | undefined,
  dies: (did: readonly string[]) => boolean,
): Promise<string[]> {
  const did: string[] = []
  const watch: Interceptor = (call, args) => {
    if (dies(did)) throw new Killed()
    if (call === 'rename') did.push(`rename ${String(args[3]).replace(/.*\./, '')}`)
    else if (call === 'sync' || call.startsWith('remove')) did.push(call)
  }
  const request = { target, files: { a: 'new', b: 'new' } }
  await publish([directoryPublication(intercepted(watch, fs).fs, request)]).catch(() => undefined)
  return did
}

await t.test('its new name is durable before the record that names it goes', async (t) => {
  const { parent, target } = await intruded(t, 1)
  // Durable by another boot: leftovers go at once, without a publication.
  const did = await watched(target, new Rebooted(true), () => false)
  t.same(did.slice(0, 2), ['rename foreign', 'sync'])
  t.ok(did.slice(2).every((call) => call.startsWith('remove')) && did.length > 2, did.join())
  t.equal(beside(parent, foreign).length, 1)
})

await t.test('the next run syncs the quarantine of a killed predecessor, and keeps it', async (t) => {
  const { parent, target } = await intruded(t, 1)
  t.same(await watched(target, undefined, ({ length }) => length > 0), ['rename foreign'])
  t.equal(beside(parent, foreign).length, 1)
  const did = await watched(target, new Rebooted(true), () => false)
  t.equal(did[0], 'sync')
  t.ok(did.length > 1)
})

await t.test('staging names that targets share: another one finds it', async (t) => {
  const { parent } = await intruded(t, 1, directory, 'family')
  const other = join(parent, 'other')
  await publish([directoryPublication(real, { target: other, files: { a: '1' }, family: 'family' })])
  t.same(beside(parent, staging), [])
  const [quarantined = ''] = beside(parent, foreign)
  t.same(contents(join(parent, quarantined)), theirs)
})

await t.test('numbers of inodes that may be dealt out again are not asked under another boot', async (t) => {
  for (const lasting of [true, false]) {
    const { parent, target } = await intruded(t, 1)
    await publish([directoryPublication(new Rebooted(lasting), { target, files: { a: 'next' } })])
    t.equal(beside(parent, foreign).length, lasting ? 1 : 0)
    t.same(beside(parent, staging), [])
  }
})

await t.test('recovery removes the stage of a 0.1.0 record, which names no inodes', async (t) => {
  const { parent, target } = await intruded(t, 1)
  const record = join(parent, names.record(2))
  const [first = ''] = readFileSync(record, 'utf8').split('\n')
  const { staging: recorded, ...body } = JSON.parse(first.slice(65)) as RecordBody
  t.match(recorded, { name: staging, staged: /^\d+$/, old: /^\d+$/ })
  writeFileSync(record, encodeRecord(body))
  await publish([directoryPublication(real, { target, files: { a: 'next' } })])
  t.same([...beside(parent, foreign), ...beside(parent, staging)], [])
})

await t.test('where it cannot be put into quarantine, nothing is deleted, and nothing is published', async (t) => {
  const { parent, target } = await intruded(t, 1)
  const [taken = ''] = beside(parent, staging)
  mkdirSync(join(parent, `${taken}.foreign`))
  t.match(await publish([directoryPublication(real, { target, files: { a: 'next' } })]), [
    { error: { code: 'EEXIST', published: false, message: new RegExp(`${taken}.*left .* as it was`) } },
  ])
  t.same(contents(join(parent, taken)), theirs)
  t.same(contents(target), { a: 'new', b: 'new' })
})

await t.test(
  'the name of old content that another program has changed: synced once it is there, and told',
  async (t) => {
    const parent = scratch(t)
    const random = '0123456789abcdef'
    mkdirSync(join(parent, names.staging(random)))
    const calls: string[] = []
    const { fs } = intercepted((call) => void calls.push(call))
    const directory = await fs.openPath(parent)
    const lines: unknown[] = []
    const warn = (fields: unknown): void => void (calls.push('told'), lines.push(fields))
    const log = { warn } as unknown as Log
    const path = join(parent, 'certs')
    calls.length = 0
    await quarantineOld({ fs, parent: directory, path, names, log }, random)
    t.same(
      calls.filter((call) => ['rename', 'sync', 'told'].includes(call)),
      ['rename', 'sync', 'told'],
    )
    t.same(readdirSync(parent), [names.quarantine(random)])
    t.same(lines, [{ path, quarantined: names.quarantine(random) }])
    await fs.close(directory)
  },
)
