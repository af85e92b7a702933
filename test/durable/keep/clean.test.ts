/**
 * The work of a publication beside its target before the exchange: its records, the files that it leaves alone, and those that it removes.
 */
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { clean } from '../../../src/durable/keep/clean.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { RecordBody } from '../../../src/durable/record/record-fields.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { failing, failure, intercepted, watchedSyncs } from '../intercepted.js'
import { contents, kept, scratchWith } from '../scratch.js'

const real = new NodeFileSystem()
const names = namesFor('certs')
const hasLists = spawnSync('setfacl', ['--version']).status === 0

function scene(t: Test) {
  const [root, target] = scratchWith(t, 'certs')
  const said: string[] = []
  const hear = (fields: object, message: string): void => {
    said.push('records' in fields ? `${String(fields.records)}: ${message}` : message)
  }
  const log = { debug() {}, info: hear, warn: hear, error: hear }
  const replace = async (text: string, options: PublicationOptions = {}, fs: FileSystem = real) => {
    const [outcome] = await publish([directoryPublication(fs, { target, files: { a: text }, log, ...options })])
    return outcome && 'error' in outcome ? outcome.error.code : outcome?.outcome
  }
  const recordPath = () => join(root, readdirSync(root).find((name) => names.sequenceOf(name) !== undefined) ?? '')
  /** What the record says, without the checksums. */
  const lines = () =>
    readFileSync(recordPath(), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => line.slice(65))
  const body = () => JSON.parse(lines()[0] ?? '') as Partial<RecordBody>
  return { root, target, said, log, replace, recordPath, lines, body }
}

await t.test('a publication of unchanged content writes its configuration into the record, once', async (t) => {
  const { target, replace, recordPath, lines, body } = scene(t)
  await replace('1')
  const first = lines()
  t.equal(body().keepsAttributes, undefined)
  t.equal(await replace('1', { attributes: 'keep' }), 'unchanged')
  t.equal(body().keepsAttributes, true)
  t.strictSame(lines().slice(1), first.slice(1), 'it is still known to be durable')
  const { ino } = statSync(recordPath())
  await replace('1', { attributes: 'keep' })
  t.equal(statSync(recordPath()).ino, ino, 'once')
  await replace('1')
  t.equal(body().keepsAttributes, false)
  const { fs } = failing('openAppend', 'EROFS', 'open')
  t.equal(await replace('1', { attributes: 'keep' }, fs), 'unchanged', 'the next run retries')
  await setHold(real, target, { reason: '', since: 0, until: null }, {})
  await replace('1', { attributes: 'keep' })
  t.equal(body().keepsAttributes, false, 'a held target stays as it is')
})

await t.test('an agent takes what a publication without an identity has left for its own', async (t) => {
  const { replace, body } = scene(t)
  await replace('1', { publisher: 'agent' })
  t.equal(body().agent, undefined)
  t.equal(await replace('1', { agent: 'one' }), 'unchanged')
  t.equal(body().agent, undefined, 'no agent publishes')
  t.equal(await replace('1', { publisher: 'agent', agent: 'one' }), 'unchanged')
  t.match(body(), { agent: { id: 'one', publishedAt: body().publishedAt } })
  t.equal(await replace('1', { publisher: 'agent' }), 'unchanged')
  t.match(body(), { agent: { id: 'one' } })
})

await t.test('a run gives a durable target back the mark of its commit, and leaves a held one without', async (t) => {
  const { target, replace, recordPath, lines } = scene(t)
  /** As a power cut does: the content is there, durably, and the record is that of an earlier boot. */
  const loseMark = () => {
    const body = JSON.stringify({ ...(JSON.parse(lines()[0] ?? '') as object), boot: 'an earlier one' })
    writeFileSync(recordPath(), `${hash('sha256', body)} ${body}\n`)
  }
  await replace('1')
  const mark = lines().slice(1)
  loseMark()
  t.equal(await replace('1'), 'unchanged')
  t.strictSame([mark.length, lines().slice(1)], [1, mark])
  await setHold(real, target, { reason: '', since: 0, until: null }, {})
  loseMark()
  t.equal(await replace('1'), 'unchanged')
  t.strictSame(lines().slice(1), [])
})

await t.test('a changed ACL is reported before it is recorded', { skip: !hasLists && 'needs setfacl' }, async (t) => {
  const { target, said, replace, body } = scene(t)
  await replace('1')
  spawnSync('setfacl', ['-m', 'u:1234:r', join(target, 'a')])
  const { fs } = failing('openAppend', 'EROFS', 'open')
  await replace('1', { attributes: 'keep' }, fs)
  t.matchOnly(said.splice(0), [/^another program changed ACLs/, /could not record what is new/])
  await replace('1', { attributes: 'keep' })
  t.matchOnly(said.splice(0), [/^another program changed ACLs/], 'again, since nothing was recorded')
  t.match(body(), { attributes: /^sha256:/, keepsAttributes: true })
  await replace('1', { attributes: 'keep' })
  t.strictSame(said, [])
})

await t.test('a publication reports a damaged record where no other one describes the target', async (t) => {
  const { root, said, replace, recordPath } = scene(t)
  await replace('1')
  t.strictSame(said, [])
  const damaged = join(root, names.record(7))
  writeFileSync(damaged, 'damaged', { mode: 0o600 })
  t.equal(await replace('1'), 'unchanged')
  t.strictSame([said, kept(root)], [[], ['lock', 'record']])
  rmSync(recordPath())
  writeFileSync(damaged, 'damaged', { mode: 0o600 })
  t.equal(await replace('1'), 'replaced')
  t.match(said, [new RegExp(`^${names.record(7)}: the publication record is damaged`)])
})

await t.test(
  'a publication durably removes generations beyond the limits, and copies that no record names',
  async (t) => {
    const { root, replace } = scene(t)
    const history = (keep: number) => ({ history: { keep, maxAge: null } })
    for (const text of ['1', '2', '3']) await replace(text, history(2))
    const { fs, synced } = watchedSyncs()
    t.equal(await replace('3', history(2), fs), 'unchanged')
    t.notOk(synced.has(root))
    t.equal(await replace('3', history(1), fs), 'unchanged')
    t.ok(synced.has(root), 'one is enough')
    t.strictSame(kept(root), ['generation', 'lock', 'record'])

    const left = names.generation(1, '0123456789abcdef')
    /** Whether it is still there when the new content becomes visible. */
    const staysUntilThen = async (text: string, broken: boolean): Promise<boolean | undefined> => {
      mkdirSync(join(root, left), { recursive: true })
      let stays: boolean | undefined
      const { fs } = intercepted((call) => {
        if (call === 'rename') stays ??= existsSync(join(root, left))
        if (call === 'sync' && broken && stays !== undefined) throw failure('EIO', 'sync')
      })
      t.equal(await replace(text, history(1), fs), broken ? 'EIO' : 'replaced')
      return stays
    }
    t.equal(await staysUntilThen('4', true), false)
    t.equal(await staysUntilThen('5', false), true, 'what is there may not be durable')
    t.notOk(existsSync(join(root, left)), 'now it is')
    writeFileSync(join(root, names.record(99)), 'damaged', { mode: 0o600 })
    t.equal(await staysUntilThen('6', false), false, 'one intact record says which copies are named')
  },
)

await t.test('where a newer version has published, nothing is renamed or removed', async (t) => {
  const { root, target, said, replace, lines } = scene(t)
  await replace('1')
  mkdirSync(join(root, 'theirs'))
  await replace('2')
  const [body = ''] = lines()
  const { staging } = JSON.parse(body) as { staging: { name: string } }
  renameSync(join(root, 'theirs'), join(root, staging.name))
  const newer = JSON.stringify({ ...(JSON.parse(body) as object), version: 2 })
  writeFileSync(join(root, names.record(9)), `${hash('sha256', newer)} ${newer}\n`, { mode: 0o600 })
  const before = readdirSync(root)
  t.equal(await replace('3'), 'ENOTSUP')
  t.strictSame([readdirSync(root), contents(target), said], [before, { a: '2' }, []])
  rmSync(join(root, names.record(9)))
  t.equal(await replace('3'), 'replaced')
  t.matchOnly(said, [/another program replaced/], 'this version gives it another name')
})

await t.test('a staging name that leads to the target itself is refused; to another disk, it is none', async (t) => {
  const { root, target, said, replace, recordPath } = scene(t)
  await replace('1')
  rmSync(recordPath())
  writeFileSync(join(root, names.record(7)), 'damaged', { mode: 0o600 })
  const staging = names.staging('0123456789abcdef')
  mkdirSync(join(root, staging))
  class OneInode extends NodeFileSystem {
    device = 0
    override async look(directory: number, name: string): ReturnType<NodeFileSystem['look']> {
      if (name !== staging) return super.look(directory, name)
      const found = await super.look(directory, 'certs')
      return found && { ...found, device: found.device + this.device }
    }
  }
  const fs = new OneInode()
  t.equal(await replace('1', {}, fs), 'EUCLEAN')
  t.strictSame([said, contents(target)], [[], { a: '1' }], 'before anything is said of what is beside it')
  fs.device = 1
  t.equal(await replace('1', {}, fs), 'replaced')
})

await t.test(
  'clean logs a leftover that it cannot remove, leaves it to the next run, and removes the rest',
  async (t) => {
    const { root, target, said, log } = scene(t)
    for (const name of ['first', 'second']) writeFileSync(join(root, name), '')
    const { fs } = intercepted((call, args) => {
      if (call === 'removeFile' && args[1] === 'first') throw failure('EPERM', 'unlink')
    })
    const parent = await real.openPath(root)
    const failures: unknown[] = []
    const left = await clean({ fs, parent, path: target, names, log }, ['first', 'second'], { most: 1 }, (error) =>
      failures.push(error),
    )
    await real.close(parent)
    t.strictSame([left, readdirSync(root)], [['first'], ['first']])
    t.match([said, failures], [['could not remove a leftover; the next run retries'], [{ code: 'EPERM' }]])
  },
)
