/** Lines are added to a record one after the other: a write that is cut short hides none of the others, and the record has a bound. */
import assert from 'node:assert'
import { hash } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { codeOf, messageOf } from '../../../src/errors.js'
import { Random } from '../../random.js'
import { eachChoice } from '../../crash/model/choices.js'
import { find } from '../../crash/model/content.js'
import { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { powerCut } from '../../crash/model/power-cut.js'
import { makeDirectory } from '../../crash/model/scenario.js'
import { holds } from '../../property.js'
import { until } from '../../until.js'
import { failure, intercepted } from '../intercepted.js'
import { hooks, isWhole, names, real, scene, torn, without } from '../record-scene.js'
import { scratch } from '../scratch.js'

/** The next write to a record stops after so many bytes, as on a full disk. */
interface Cut {
  bytes: number | undefined
}

async function cutShort(cut: Cut, bytes: Uint8Array, write: (bytes: Uint8Array) => Promise<void>): Promise<void> {
  const { bytes: length } = cut
  cut.bytes = undefined
  if (length === undefined) return write(bytes)
  await write(bytes.subarray(0, Math.min(length, bytes.length - 1)))
  throw failure('ENOSPC', 'write')
}

class CutReal extends NodeFileSystem {
  readonly cut: Cut = { bytes: undefined }
  override write(file: number, bytes: Uint8Array): Promise<void> {
    return cutShort(this.cut, bytes, (some) => super.write(file, some))
  }
}

class CutModel extends ModelProcess {
  readonly cut: Cut = { bytes: undefined }
  override write(file: number, bytes: Uint8Array): Promise<void> {
    return cutShort(this.cut, bytes, (some) => super.write(file, some))
  }
}

/** The text of the record on the model disk. */
function recordOn(disk: ModelDisk): string {
  const entries = find(disk, '/etc')?.now.entries ?? new Map<string, number>()
  const [, number = 0] = [...entries].find(([name]) => names.sequenceOf(name) !== undefined) ?? []
  return disk.inode(number).now.data
}

/** A line to be added, and after how many of its bytes its write stops. */
const additions = fc.array(
  fc.record({
    hook: fc.integer({ min: 0, max: 9 }),
    isVersion: fc.boolean(),
    cut: fc.option(fc.integer({ min: 0, max: 120 }), { nil: undefined }),
  }),
  { minLength: 1, maxLength: 8 },
)

/** Adds them all; a reader sees those that were answered with success, and no other. */
async function addAll(
  { complete, version, pending, seenVersion }: Awaited<ReturnType<typeof scene>>,
  cut: Cut,
  text: () => string,
  steps: readonly { readonly hook: number; readonly isVersion: boolean; readonly cut: number | undefined }[],
): Promise<void> {
  const done = new Set<string>()
  let newest = '0'
  for (const [index, step] of steps.entries()) {
    cut.bytes = step.cut
    const [name, next] = [`hook ${step.hook}`, `${index + 1}`]
    const answer = await (step.isVersion ? version(next) : complete(name)).catch(codeOf)
    const wasCut = step.cut !== undefined && cut.bytes === undefined
    cut.bytes = undefined
    assert.strictEqual(answer, wasCut ? 'ENOSPC' : true)
    if (answer === true && step.isVersion) newest = next
    if (answer === true && !step.isVersion) done.add(name)
    assert.deepStrictEqual(await pending(), without(...done))
    assert.strictEqual(await seenVersion(), newest)
    if (answer === true) assert.ok(isWhole(text()), 'every line is whole after a success')
  }
}

await t.test('readers see a line that follows any torn beginning of any other line', async (t) => {
  const root = scratch(t)
  let case_ = 0
  const onReal = fc.asyncProperty(additions, async (steps) => {
    const parent = join(root, `${case_++}`)
    mkdirSync(parent)
    const fs = new CutReal()
    const on = await scene(parent, fs)
    await addAll(on, fs.cut, () => readFileSync(on.recordPath(), 'utf8'), steps)
  })
  await holds(t, 'on this file system', onReal, { runs: 15 })
  const onModel = fc.asyncProperty(additions, async (steps) => {
    const disk = new ModelDisk()
    makeDirectory(disk, '/etc', 0o755)
    const fs = new CutModel(disk)
    const on = await scene('/etc', fs)
    await addAll(on, fs.cut, () => recordOn(disk), steps)
  })
  await holds(t, 'on the model disk', onModel, { runs: 40 })
})

await t.test('what a torn line hid is written once, and the record grows no further', async (t) => {
  const { recordPath, replace, complete, pending } = await scene(scratch(t))
  appendFileSync(recordPath(), torn)
  const changed = { attributes: 'keep' } as const
  t.match(await replace(changed), { outcome: 'unchanged' })
  const { size } = statSync(recordPath())
  for (let count = 0; count < 5; count++) t.match(await replace(changed), { outcome: 'unchanged' })
  t.equal(statSync(recordPath()).size, size)
  const text = readFileSync(recordPath(), 'utf8')
  t.ok(isWhole(text))
  t.match(text, /"keepsAttributes":true/)
  t.equal(await complete('hook 3'), true)
  t.strictSame(await pending(), without('hook 3'))
  t.match(await replace(changed), { outcome: 'unchanged' }, 'it is still known to be durable')
})

await t.test('lines after a damaged one count, as an older version left them', async (t) => {
  const { recordPath, complete, pending } = await scene(scratch(t))
  await complete('hook 1')
  const line = readFileSync(recordPath(), 'utf8').split('\n').at(-2) ?? ''
  const [said, later] = ['{"hook":"hook 2"}', '{"objects":"of a later version"}'].map(
    (json) => `${hash('sha256', json)} ${json}\n`,
  )
  appendFileSync(recordPath(), `${torn}${line}\n${said}${later}${later}`)
  t.strictSame(await pending(), without('hook 1', 'hook 2'))
  t.equal(await complete('hook 3'), true)
  const text = readFileSync(recordPath(), 'utf8')
  t.ok(isWhole(text), 'now an older version reads them, too')
  t.equal(text.split(later ?? '').length, 1, 'a line of a later version goes, as a power cut may take it')
  t.strictSame(await pending(), without('hook 1', 'hook 2', 'hook 3'))
})

await t.test('a record that is written anew is whole at every instant, before and after a power cut', async (t) => {
  const disk = new ModelDisk()
  const etc = makeDirectory(disk, '/etc', 0o755)
  const fs = new ModelProcess(disk)
  const { target, complete, version } = await scene('/etc', fs)
  await complete('hook 1')
  await version('7')
  const recordIn = (found: ModelDisk): number =>
    [...found.inode(etc).now.entries].find(([name]) => names.sequenceOf(name) !== undefined)?.[1] ?? 0
  const number = recordIn(disk)
  // An administrator lets a group read it.
  const granted = { mode: 0o640, uid: 0, gid: 1000 }
  disk.setMetadata(number, granted, 'chown')
  disk.syncAll()
  disk.append(number, torn)
  const instants: ModelDisk[] = []
  disk.changed = () => void instants.push(disk.fork())
  t.equal(await complete('hook 2'), true)
  disk.changed = undefined
  t.ok(instants.length >= 4, `${instants.length} instants: made, written, synced, renamed`)
  const seen = new Set<string>()
  const possible = [without('hook 1'), without('hook 1', 'hook 2')].map((left) => JSON.stringify(left))
  const look = async (found: ModelDisk): Promise<void> => {
    const publication = await readPublication(new ModelProcess(found), target)
    const left = JSON.stringify(publication?.pendingHooks)
    if (!possible.includes(left)) t.fail(`pending: ${left}`)
    if (publication?.objects[0]?.resourceVersion !== '7') t.fail('the newest version is lost')
    if (publication?.durable !== true) t.fail('it is not known to be durable any more')
    const { mode, uid, gid } = found.inode(recordIn(found)).now.attributes
    if (!isDeepStrictEqual({ mode, uid, gid }, granted)) t.fail(`mode ${mode.toString(8)}, owner ${uid}:${gid}`)
    seen.add(left)
  }
  for (const instant of instants) {
    await look(instant)
    const cuts: ModelDisk[] = []
    eachChoice(200, new Random(1), (choose) => void cuts.push(powerCut(instant, choose)))
    for (const cut of cuts) await look(cut)
  }
  t.equal(seen.size, 2, 'the record before, and the one after')
})

await t.test('while another call publishes, a record that must be written anew stays as it is', async (t) => {
  const parent = scratch(t)
  const { target, recordPath, complete, pending } = await scene(parent)
  appendFileSync(recordPath(), torn)
  const [before, directory] = [readFileSync(recordPath(), 'utf8'), await real.openPath(parent)]
  const held = await real.openLock(directory, names.lock)
  t.ok(real.tryLock(held))
  t.equal(
    await complete('hook 1').catch(messageOf),
    `another call of this process is publishing ${target} and holds its lock; nothing was changed; try again when the lock is free`,
  )
  for (const descriptor of [held, directory]) await real.close(descriptor)
  t.equal(readFileSync(recordPath(), 'utf8'), before)
  t.equal(await complete('hook 1'), true)
  t.strictSame(await pending(), without('hook 1'))
})

await t.test('an error behind the write of a line does not say that readers see nothing of it', async (t) => {
  const { complete, pending } = await scene(scratch(t))
  let written = false
  const { fs } = intercepted((call) => {
    if (call === 'attributes' && written) throw failure('EIO', 'fstat')
    if (call === 'write') written = true
  })
  await t.rejects(complete('hook 1', fs), { code: 'EIO', published: true, state: 'its readers may see the line' })
  t.strictSame(await pending(), without('hook 1'))
})

/** Counts how often a call has found a record locked, or has locked it. */
class CountsLocks extends NodeFileSystem {
  tries = 0
  override tryLock(file: number): boolean {
    this.tries += 1
    return super.tryLock(file)
  }
}

await t.test('while another process adds a line, this one waits', async (t) => {
  const parent = scratch(t)
  const { recordPath, complete, pending } = await scene(parent)
  const directory = await real.openPath(parent)
  const held = await real.openAppend(directory, basename(recordPath()))
  t.ok(real.tryLock(held))
  const fs = new CountsLocks()
  const [first, second] = [complete('hook 1', fs), complete('hook 2', fs)]
  await until('both have tried', () => fs.tries > 2)
  t.equal(await Promise.race([first, second, Promise.resolve()]), undefined)
  for (const descriptor of [held, directory]) await real.close(descriptor)
  t.strictSame(await Promise.all([first, second]), [true, true])
  t.strictSame(await pending(), without('hook 1', 'hook 2'))
})

await t.test(
  'a record that another process writes anew meanwhile gets the line, not the file that has lost its name',
  async (t) => {
    const parent = scratch(t)
    const { recordPath, complete, pending } = await scene(parent)
    const [record, directory] = [recordPath(), await real.openPath(parent)]
    const held = await real.openAppend(directory, basename(record))
    t.ok(real.tryLock(held))
    const fs = new CountsLocks()
    const completing = complete('hook 1', fs)
    await until('it has tried twice', () => fs.tries > 1)
    t.equal(await Promise.race([completing, Promise.resolve()]), undefined)
    const anew = join(parent, 'anew')
    writeFileSync(anew, readFileSync(record), { mode: 0o600 })
    renameSync(anew, record)
    for (const descriptor of [held, directory]) await real.close(descriptor)
    t.equal(await completing, true)
    t.strictSame(await pending(), without('hook 1'))
  },
)

await t.test('many processes add lines to one torn record, and none is lost', async (t) => {
  const { recordPath, complete, pending } = await scene(scratch(t))
  appendFileSync(recordPath(), torn)
  // Each file system object is a process to the others: flock is of the open file.
  const some = hooks.slice(0, 20)
  t.strictSame(new Set(await Promise.all(some.map((hook) => complete(hook, new NodeFileSystem())))), new Set([true]))
  t.strictSame(await pending(), without(...some))
})
