/** The files of publication records: which of them count, and how readers take an unreadable or closed one. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { codeOf } from '../../../src/errors.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { StagedEntries } from '../../../src/durable/path/barrier.js'
import { replaceDirectory, setHold } from '../../../src/durable/index.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import {
  append,
  completeHook,
  nextSequence,
  readAllRecords,
  readRecords,
  RecordFile,
  recordObjects,
} from '../../../src/durable/record/record-files.js'
import { encodeLine } from '../../../src/checked-lines.js'
import { recordBody } from '../../../src/durable/record/record.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { Scope } from '../../../src/durable/path/scope.js'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { silent } from '../../../src/log.js'
import { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { forever } from '../history-scene.js'
import { failure, intercepted } from '../intercepted.js'
import { record } from '../judge-rows.js'
import { scratch, scratchWith } from '../scratch.js'

const names = namesFor('certs')
const isRoot = process.geteuid?.() === 0
const needsRoot = { skip: isRoot ? false : 'needs root (chown)' }
const recordIn = (parent: string): string =>
  readdirSync(parent).find((name) => names.sequenceOf(name) !== undefined) ?? 'none'

/** The records beside `certs`; or the errno of their reader. */
async function said(parent: string, fs: FileSystem = new NodeFileSystem()): Promise<string> {
  const directory = await fs.openPath(parent)
  try {
    const { valid, taken, torn, missed } = await readRecords(fs, directory, 'certs', names)
    return `${valid.length} valid, ${taken.size} taken, ${torn.length} torn, ${missed ? '' : 'none '}missed`
  } catch (error) {
    return String(codeOf(error))
  } finally {
    await fs.close(directory)
  }
}

await t.test('nextSequence is above every name that is taken, within bounds', async (t) => {
  /** It fails where it does not end. */
  class Taken extends Set<number> {
    asked = 0
    override has(sequence: number): boolean {
      if (++this.asked > 100) throw failure('ETIMEDOUT', 'has')
      return super.has(sequence)
    }
  }
  const next = (valid: number[], torn: number[], taken: number[]): number | string => {
    try {
      return nextSequence({
        valid: valid.map((sequence) => record(sequence, null, 'a')),
        torn,
        taken: new Taken(taken),
      })
    } catch (error) {
      return String(error)
    }
  }
  t.equal(next([], [], []), 1)
  t.equal(next([3, 2], [], []), 4)
  t.equal(next([3], [7], []), 8)
  t.equal(next([], [], [1, 2, 4]), 5, 'a record that comes back outranks none after it')
  t.equal(next([3], [], [4, 999_999_999_999_999]), 5, 'another user takes no room away')
  t.equal(next([9e14], [], [9e14 + 1, 9e14 + 2]), 9e14 + 3)
})

const believed = '1 valid, 0 taken, 0 torn, none missed'
const another = '0 valid, 1 taken, 0 torn, none missed'

await t.test('who else may write to it is not to be believed', async (t) => {
  const parent = scratch(t)
  await replaceDirectory(join(parent, 'certs'), { files: { a: '1' } })
  const record = join(parent, recordIn(parent))
  for (const [mode, expected] of [
    [0o600, believed],
    [0o644, believed],
    [0o701, believed],
    [0o620, isRoot ? believed : 'EPERM'],
    [0o602, 'EPERM'],
    [0o666, 'EPERM'],
  ] as const) {
    chmodSync(record, mode)
    t.equal(await said(parent), expected, mode.toString(8))
  }
  linkSync(record, join(parent, 'linked'))
  t.equal(await said(parent), 'EPERM', 'two names')
  chmodSync(parent, 0o1777)
  t.equal(await said(parent), another, 'another user may have given it this name')
})

await t.test(
  'a record to which others may write is refused: neither hold nor history is lost',
  needsRoot,
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    const history = forever(3)
    await replaceDirectory(target, { files: { a: '1' }, history })
    await replaceDirectory(target, { files: { a: '2' }, history })
    await setHold(target, { reason: 'wait', since: 1, until: null })
    const record = join(parent, recordIn(parent))
    const listing = (): string[] => readdirSync(parent).sort()
    const before = listing()
    const publish = (more = {}): Promise<unknown> =>
      replaceDirectory(target, { files: { a: '3' }, history, ...more }).catch((error: unknown) => error)
    for (const [mode, uid, gid, list] of [
      [0o660, 0, 1234, ''],
      [0o606, 0, 0, ''],
      [0o600, 1234, 1234, ''],
      [0o600, 0, 0, 'u:1234:rw'],
    ] as const) {
      chownSync(record, uid, gid)
      chmodSync(record, mode)
      if (list !== '') execFileSync('setfacl', ['-m', list, record])
      t.match(await publish(), { reason: 'TargetUnfit', published: false, path: record, message: record })
      t.match(await readPublication(new NodeFileSystem(), target).catch((error: unknown) => error), {
        reason: 'TargetUnfit',
      })
      t.strictSame([listing(), readFileSync(join(target, 'a'), 'utf8')], [before, '2'])
    }
    execFileSync('setfacl', ['-b', record])
    chownSync(record, 0, 0)
    chmodSync(record, 0o660)
    t.match(await publish(), { reason: 'Held' }, "root's group alone: still ours")
    const said: unknown[] = []
    const log = { ...silent, warn: (fields: object, text: string) => said.push({ ...fields, text }) }
    t.match(await publish({ held: 'release', log }), { sequence: 4 })
    t.match(said, [{ records: [names.record(3)], text: /^root's group may write to the publication record/ }])
    t.equal(statSync(join(parent, recordIn(parent))).mode & 0o777, 0o600)
    t.equal(listing().filter(names.isGeneration).length, 2)
  },
)

await t.test('readRecords passes a missing record, and a foreign one, and reports a failure', async (t) => {
  const parent = scratch(t)
  await replaceDirectory(join(parent, 'certs'), { files: { a: '1' } })
  for (const [code, expected] of [
    ['ENOENT', '0 valid, 0 taken, 0 torn, missed'],
    ['EACCES', 'EACCES'],
    ['EIO', 'EIO'],
  ] as const) {
    const { fs, open } = intercepted((call) => {
      if (call === 'openFile') throw failure(code, 'openat')
    })
    t.ok((await said(parent, fs)) === expected, code)
    t.equal(open.size, 0)
  }
})

await t.test('readRecords trusts the records of root and of this user', async (t) => {
  const parent = scratch(t)
  await replaceDirectory(join(parent, 'certs'), { files: { a: '1' } })
  for (const [owner, user, mode, expected] of [
    [0, 0, 0o1777, believed],
    [0, 7, 0o1777, believed],
    [7, 7, 0o1777, believed],
    [7, 0, 0o1777, another],
    [8, 7, 0o1777, another],
    [8, 7, 0o1770, another],
    [8, 7, 0o1755, 'EPERM'],
    [8, 7, 0o755, 'EPERM'],
    [7, 0, 0o775, 'EPERM'],
  ] as const) {
    chmodSync(parent, mode)
    const real = new NodeFileSystem()
    const attributes = async (one: number) => ({
      ...(await NodeFileSystem.prototype.attributes.call(real, one)),
      uid: owner,
    })
    t.equal(await said(parent, Object.assign(real, { attributes, user: { uid: user, gid: user } })), expected)
  }
})

await t.test('a line is added to the record of its content, and to no other', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const { digest } = await replaceDirectory(target, { files: { a: '1' }, hooks: ['one', 'two'] })
  const add = async (by: FileSystem, path = target, of = digest): Promise<unknown> =>
    completeHook(by, path, of, 'one').catch(codeOf)
  const failing = (code: string): FileSystem =>
    intercepted((call) => {
      if (call === 'openAppend') throw failure(code, 'openat2')
    }).fs
  const fs = new NodeFileSystem()
  const text = (): string => readFileSync(join(parent, recordIn(parent)), 'utf8')
  const before = text()
  t.equal(await add(fs, join(parent, 'none/certs')), false, 'no parent')
  t.equal(await add(fs, join(parent, 'other')), false, 'no record')
  t.equal(await add(fs, target, 'sha256:0'), false, 'of another content')
  t.equal(await add(failing('ENOENT')), false, 'a newer publication has just removed it')
  t.equal(await add(failing('EIO')), 'EIO')
  t.equal(text(), before)
  t.equal(await add(fs), true)
  t.match(text().slice(before.length), /^[0-9a-f]{64} \{"hook":"one"\}\n$/)
})

await t.test(
  'append writes a torn record anew, for its owner alone to write, with all that its lines said in the first one',
  async (t) => {
    const parent = scratch(t)
    await replaceDirectory(join(parent, 'certs'), { files: { a: '1' }, hooks: ['a', 'b', 'c'] })
    const name = recordIn(parent)
    const [first = ''] = readFileSync(join(parent, name), 'utf8').split('\n')
    const line = (value: object): string => Buffer.from(encodeLine(value)).toString('utf8')
    const said = [{ hook: 'a' }, { settled: true }, { hook: 'a' }, { of: 'a later version' }].map(line)
    writeFileSync(join(parent, name), `${first}\n${said.join('')}torn`)
    chmodSync(join(parent, name), 0o660)
    const { fs } = intercepted((call) => {
      if (call === 'rename') throw failure('EIO', 'renameat2')
    })
    const directory = await fs.openPath(parent)
    t.teardown(() => fs.close(directory))
    await t.rejects(append({ fs, parent: directory, names }, name, { hook: 'b' }), { code: 'EIO' })
    t.strictSame(
      readdirSync(parent).filter((entry) => names.stagingOf(entry) !== undefined),
      [],
      'nothing staged is left',
    )
    await append({ fs: new NodeFileSystem(), parent: directory, names }, name, { hook: 'b' })
    const body = { ...(JSON.parse(first.slice(65)) as object), hooks: ['b', 'c'] }
    t.equal(readFileSync(join(parent, name), 'utf8'), [body, { settled: true }, { hook: 'b' }].map(line).join(''))
    t.equal(statSync(join(parent, name)).mode & 0o777, 0o640, 'who may read it still may')
  },
)

await t.test('of a directory, nothing is opened that has no name of a record', async (t) => {
  const parent = scratch(t)
  await replaceDirectory(join(parent, 'certs'), { files: { a: '1' } })
  writeFileSync(join(parent, 'other'), '')
  const opened: unknown[] = []
  const { fs } = intercepted((call, [, name]) => {
    if (call === 'openFile') opened.push(name)
  })
  const directory = await fs.openPath(parent)
  t.match(await readAllRecords(fs, directory), [{ name: 'certs' }])
  await fs.close(directory)
  t.strictSame(opened, [recordIn(parent)])
})

await t.test('RecordFile hands a staged record to the barrier once that is written and has its mode', async (t) => {
  const parent = scratch(t)
  const calls: string[] = []
  const { fs } = intercepted((call) => void calls.push(call))
  const scope = new Scope(fs)
  class Watched extends StagedEntries<string> {
    override add(...args: Parameters<StagedEntries<string>['add']>): void {
      calls.push(`add for ${args[2]}${args[3] ? ', later written to again' : ''}`)
    }
  }
  const file = new RecordFile<string>(scope, await scope.keep(fs.openPath(parent)), names, 1)
  const body = recordBody(record(1, null, 'a'), {})
  calls.length = 0
  await file.stage(body, new Watched(fs), 'certs')
  t.equal(calls.pop(), 'add for certs, later written to again')
  t.equal(calls[1], 'write')
  t.ok(calls.slice(2).length > 0, calls.join(' '))
  await scope.closeAll()
  t.equal(await said(parent), '1 valid, 0 taken, 0 torn, none missed')
})

await t.test(
  'RecordFile does not remove a record that it could not make: another program may have the name',
  async (t) => {
    const parent = scratch(t)
    const path = join(parent, names.record(1))
    const scope = new Scope(new NodeFileSystem())
    const open = async () => new RecordFile<string>(scope, await scope.keep(scope.fs.openPath(parent)), names, 1)
    const staged = new StagedEntries<string>(scope.fs)
    const body = recordBody(record(1, null, 'a'), {})
    const own = await open()
    await own.stage(body, staged, 'certs')
    await own.discard()
    t.notOk(existsSync(path))
    writeFileSync(path, 'theirs')
    const refused = await open()
    t.equal(await refused.stage(body, staged, 'certs').catch(codeOf), 'EEXIST')
    await refused.discard()
    await scope.closeAll()
    t.equal(readFileSync(path, 'utf8'), 'theirs')
  },
)

await t.test(
  'RecordFile marks its own record where another one of the same size has its closed descriptor',
  async (t) => {
    const fs = new NodeFileSystem()
    const body = recordBody(record(1, null, 'a'), {})
    const staged = new StagedEntries<string>(fs)
    const open = async () => {
      const [parent, scope] = [scratch(t), new Scope(fs)]
      const file = new RecordFile<string>(scope, await scope.keep(fs.openPath(parent)), names, 1)
      const isMarked = () => readFileSync(join(parent, names.record(1)), 'utf8').includes('"settled":true')
      return { file, scope, isMarked }
    }
    const stage = async ({ file }: { file: RecordFile<string> }) => {
      await file.stage(body, staged, 'certs')
      return staged.take()[0]?.descriptor ?? -1
    }
    const [one, two] = [await open(), await open()]
    const descriptor = await stage(one)
    await one.scope.close(descriptor)
    t.equal(await stage(two), descriptor, 'the kernel gives the lowest number out again')
    await one.file.markCommitted()
    t.strictSame([one.isMarked(), two.isMarked()], [true, false])
    for (const { scope } of [one, two]) await scope.closeAll()
  },
)

await t.test('RecordFile opens a record again to mark it, after the bound of staged files closed it', async (t) => {
  const parent = scratch(t)
  const warnings: unknown[] = []
  const log = { ...silent, warn: (...line: unknown[]) => void warnings.push(line) }
  const files = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`file-${index}`, `${index}`]))
  const all = async (): Promise<string[]> => {
    const narrow = Object.assign(new NodeFileSystem(), { stagedFiles: 2 })
    const targets = ['certs', 'other', 'third'].map((name) => join(parent, name, 'content'))
    const outcomes = await publish(targets.map((target) => directoryPublication(narrow, { target, files, log })))
    return outcomes.map((outcome) => ('error' in outcome ? outcome.error.message : outcome.outcome))
  }
  for (const name of ['certs', 'other', 'third']) mkdirSync(join(parent, name))
  t.strictSame(await all(), ['created', 'created', 'created'])
  t.strictSame(warnings, [])
  t.strictSame(await all(), ['unchanged', 'unchanged', 'unchanged'], 'each is known to be durable')
})

const object = (resourceVersion: string) => {
  return { kind: 'Secret', namespace: 'a', name: 'b', uid: 'c', resourceVersion, paths: ['a', 'b'] }
}

await t.test(
  'a hook that has run, and a newer version, are of all records of the content, wherever a repair stopped',
  async (t) => {
    const disk = new ModelDisk()
    for (const path of ['/etc', '/etc/pki']) makeDirectory(disk, path, 0o755)
    const fs = new ModelProcess(disk)
    const publishHere = async () => {
      const request = { target: '/etc/pki/certs', files: { a: '1', b: '2' }, objects: [object('1')], hooks: ['reload'] }
      const [result] = resultsOf(await publish([directoryPublication(fs, request)]))
      return result?.digest ?? ''
    }
    const digest = await publishHere()
    // Another program changes it: the repair publishes the same content again.
    makeEntry(disk, '/etc/pki/certs/c', 'file', 0o644, 'of another program')
    const deaths: ModelDisk[] = []
    disk.changed = () => void deaths.push(disk.fork())
    t.equal(await publishHere(), digest)
    t.ok(deaths.length > 10, `${deaths.length} deaths`)
    for (const left of deaths) {
      const next = new ModelProcess(left)
      if (!(await completeHook(next, '/etc/pki/certs', digest, 'reload'))) t.fail('no record of the content')
      await recordObjects(next, '/etc/pki/certs', digest, [object('2')])
      const { pendingHooks, objects } = (await readPublication(next, '/etc/pki/certs')) ?? {}
      t.strictSame([pendingHooks, objects?.[0]?.resourceVersion], [[], '2'])
    }
  },
)
