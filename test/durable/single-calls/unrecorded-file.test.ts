import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { namesFor } from '../../../src/durable/path/names.js'
import { OwnFile, replaceFile } from '../../../src/durable/index.js'
import { failure, intercepted } from '../intercepted.js'
import { kept, scratch, scratchWith } from '../scratch.js'

/** A process's status file, with the calls for it; the `nth` call of this name fails. */
function watched(path: string, failing = '', nth = 1) {
  const calls: string[] = []
  const { fs, open } = intercepted((call) => {
    calls.push(call)
    if (call === failing && calls.filter((other) => other === call).length === nth) throw failure('EIO', call)
  })
  return { file: new OwnFile(path, fs), calls, open }
}

await t.test('replace makes the missing directories, and syncs before and after the rename', async (t) => {
  const path = join(scratch(t), 'state/status.json')
  const { file, calls, open } = watched(path)
  await file.replace('one')
  t.equal(readFileSync(path, 'utf8'), 'one')
  t.equal(statSync(path).mode & 0o7777, 0o600)
  const order = calls.filter((call) => ['createDirectory', 'write', 'sync', 'rename', 'removeFile'].includes(call))
  t.strictSame(order, ['createDirectory', 'write', 'sync', 'rename', 'sync', 'removeFile'])
  t.strictSame(readdirSync(join(path, '..')), ['status.json'])
  t.equal(open.size, 0)
})

await t.test('a further write lists nothing, and takes no lock and no record', async (t) => {
  const path = join(scratch(t), 'status.json')
  const { file, calls, open } = watched(path)
  await file.replace('one')
  calls.length = 0
  await file.replace('two')
  t.equal(readFileSync(path, 'utf8'), 'two')
  const looks = ['openPath', 'attributes', 'mount']
  t.strictSame(
    calls.filter((call) => !looks.includes(call)),
    ['createFile', 'write', 'sync', 'rename', 'sync', 'createFile', 'removeFile'],
  )
  t.strictSame(readdirSync(join(path, '..')), ['status.json'])
  t.equal(open.size, 0)
})

await t.test(
  'each write syncs all that is above the file: another program may have moved it, or made it anew',
  async (t) => {
    const [parent, path] = scratchWith(t, 'state/status.json')
    const synced: number[] = []
    const { fs } = intercepted((call, args) => {
      if (call === 'sync') synced.push((args[0] as number[]).length)
    })
    const file = new OwnFile(path, fs)
    await file.replace('one')
    await file.replace('two')
    rmSync(join(parent, 'state'), { recursive: true })
    await file.replace('three')
    const [first = 0, , second, , third] = synced
    t.ok(first > 1, 'the file, and the directories above it')
    t.strictSame([second, third], [first, first])
  },
)

await t.test(
  'the first write removes what a predecessor left, its record too, unless another one is at it',
  async (t) => {
    const [parent, path] = scratchWith(t, 'status.json')
    const names = namesFor('status.json')
    await replaceFile(path, 'of an earlier version')
    t.ok(kept(parent).length > 0)
    const left = join(parent, names.staging('0123456789abcdef'))
    const other = join(parent, namesFor('other').staging('0123456789abcdef'))
    writeFileSync(other, '')
    for (const turn of ['the first of this process', 'and the next']) {
      writeFileSync(left, '')
      await watched(path).file.replace('one')
      t.notOk(existsSync(left), turn)
    }
    t.ok(existsSync(other), 'of another name')
    t.notOk(
      readdirSync(parent).some((name) => names.sequenceOf(name) !== undefined),
      'the record',
    )
    t.equal(readFileSync(path, 'utf8'), 'one')
  },
)

await t.test('a failure tells whether the new text is visible; the old one is whole until then', async (t) => {
  const [parent, path] = scratchWith(t, 'status.json')
  for (const [call, nth, published] of [
    ['openPath', 1, false],
    ['createFile', 1, false],
    ['write', 1, false],
    ['sync', 1, false],
    ['rename', 1, false],
    ['sync', 2, true],
    ['createFile', 2, true],
  ] as const) {
    writeFileSync(path, 'old')
    const { file, open } = watched(path, call, nth)
    await t.rejects(file.replace('new'), { name: 'DurableWriteError', code: 'EIO', published }, `${call} ${nth}`)
    t.equal(readFileSync(path, 'utf8'), published ? 'new' : 'old')
    t.strictSame(readdirSync(parent), ['status.json'], 'nothing is left')
    t.equal(open.size, 0)
    await file.replace('again')
    t.equal(readFileSync(path, 'utf8'), 'again')
  }
})

await t.test('replace changes no directory at its path', async (t) => {
  const path = join(scratch(t), 'status.json')
  mkdirSync(path)
  await t.rejects(watched(path).file.replace('x'), { name: 'DurableWriteError', published: false })
  t.ok(statSync(path).isDirectory())
})

await t.test('what is added is durable by one barrier, with what is above the file', async (t) => {
  const [parent, path] = scratchWith(t, 'status.lines')
  const { file, calls, open } = watched(path)
  t.equal(await file.append('nothing was written yet'), false)
  t.notOk(existsSync(path))
  await file.replace('one')
  calls.length = 0
  t.equal(await file.append(', two'), true)
  t.equal(await file.append(', three'), true)
  t.equal(readFileSync(path, 'utf8'), 'one, two, three')
  const looks = ['openPath', 'attributes', 'mount', 'look']
  const once = ['openAppend', 'write', 'sync', 'createFile', 'removeFile']
  t.strictSame(
    calls.filter((call) => !looks.includes(call)),
    [...once, ...once],
  )
  calls.length = 0
  t.equal(await file.append(''), true)
  t.notOk(calls.includes('sync'), 'an empty text only looks')
  t.strictSame(readdirSync(parent), ['status.lines'])
  t.equal(open.size, 0)
})

await t.test('nothing is added to a file that is not as this process left it', async (t) => {
  const [parent, path] = scratchWith(t, 'status.lines')
  const { file, open } = watched(path)
  for (const [what, change] of [
    ['it has gone', () => rmSync(path)],
    ['it is longer', () => writeFileSync(path, 'one, and another')],
    [
      'another is there',
      () => {
        // Made before the first one goes: a file system may give its inode number to the next file.
        writeFileSync(`${path}.other`, 'two')
        renameSync(`${path}.other`, path)
      },
    ],
    ['its directory has gone', () => rmSync(parent, { recursive: true })],
  ] as const) {
    await file.replace('one')
    change()
    const left = existsSync(path) ? readFileSync(path, 'utf8') : undefined
    t.equal(await file.append(', two'), false, what)
    t.equal(existsSync(path) ? readFileSync(path, 'utf8') : undefined, left, what)
  }
  await file.replace('again')
  t.equal(readFileSync(path, 'utf8'), 'again')
  t.equal(open.size, 0)
})

await t.test('behind what could not be added as a whole, nothing is added', async (t) => {
  const path = join(scratch(t), 'status.lines')
  for (const [call, nth] of [
    ['openAppend', 1],
    ['write', 2],
    ['sync', 3],
    ['createFile', 3],
  ] as const) {
    const { file, open } = watched(path, call, nth)
    await file.replace('one')
    await t.rejects(file.append(', two'), { name: 'DurableWriteError', code: 'EIO' }, `${call} ${nth}`)
    t.equal(await file.append(', three'), false)
    t.notMatch(readFileSync(path, 'utf8'), 'three')
    t.equal(open.size, 0)
  }
})
