/** `removePublished` beside other programs and operators: their files stay, and its answers are true. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { DurableWriteError } from '../../src/durable/errors.js'
import { setHold } from '../../src/durable/operator/hold.js'
import { replaceDirectory, replaceFile, sameTarget } from '../../src/durable/index.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { removePublished, type RemovalOptions } from '../../src/durable/remove/removal.js'
import { failure, intercepted, Killed } from './intercepted.js'
import { scratch, scratchWith } from './scratch.js'

/** No process uses anything, except for the answers of the test to each scan. */
class Looks extends NodeFileSystem {
  #looks = 0
  constructor(readonly tell: (nth: number, name: string) => string | undefined = () => undefined) {
    super()
  }
  override userOf(_: number, name: string): Promise<string | undefined> {
    return Promise.resolve(this.tell(++this.#looks, name))
  }
}

/** What became of it; a string where it has not failed. */
async function failed(call: Promise<unknown>): Promise<DurableWriteError> {
  const outcome = await call.then(
    (): unknown => 'it was removed',
    (error: unknown) => error,
  )
  return outcome as DurableWriteError
}

const removed = (target: string, options: RemovalOptions = {}) => removePublished(new Looks(), target, options)

await t.test('what cannot be removed is named with what the system says, and another call goes on', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { files: { a: '1' } })
  let isStuck = false
  const { fs } = intercepted((call, [, name]) => {
    if (isStuck && /sync/i.test(call)) throw failure('ENOSPC', 'fsync')
    if (call !== 'removeFile' || name !== 'a') return
    isStuck = true
    throw failure('EIO', 'unlink')
  }, new Looks())
  // What fails after it does not hide it.
  const error = await failed(removePublished(fs, target, {}))
  t.match(error, { code: 'EIO', published: true, message: /could not remove .*: unlink.*EIO.*has left its place/ })
  t.notMatch(error.message, 'another program')
  await removed(target)
})

await t.test(
  'leftovers without a record: once they may be gone, a failure says so, and another call goes on',
  async (t) => {
    const [root, target] = scratchWith(t, 'certs')
    await replaceDirectory(target, { files: { a: '1' } })
    const [record = ''] = readdirSync(root).filter((name) => /\.1$/.test(name))
    renameSync(target, join(root, record.replace(/\.1$/, '-0123456789abcdef')))
    rmSync(join(root, record))
    for (const [nth, published] of [
      [1, false],
      [2, true],
    ] as const) {
      let syncs = 0
      const { fs } = intercepted((call) => {
        if (/sync/i.test(call) && ++syncs === nth) throw failure('EIO', 'fsync')
      }, new Looks())
      t.match(await failed(removePublished(fs, target, {})), { code: 'EIO', published }, `sync ${nth}`)
    }
    await removed(target)
    t.same(
      readdirSync(root).filter((name) => !name.endsWith('.lock')),
      [],
    )
  },
)

await t.test('confirm refuses before removePublished scans the users of old content', async (t) => {
  const target = join(scratch(t), 'certs')
  const used = new Looks(() => 'process 7')
  for (const a of ['1', '2'])
    await publish([directoryPublication(used, { target, files: { a }, retireTimeout: 3_600_000 })])
  t.match(await failed(removePublished(used, target, {})), { reason: 'InUse', message: /its old content/ })
  const confirm = (): void => {
    throw new RangeError('not this one')
  }
  t.match(await failed(removePublished(used, target, { confirm })), { message: /not this one/ })
  await removed(target)
})

await t.test('removePublished keeps a directory that another target was moved into while confirm asked', async (t) => {
  const [root, target, other] = scratchWith(t, 'certs', 'other')
  await replaceDirectory(target, { files: { a: '1' } })
  mkdirSync(other)
  await replaceDirectory(join(other, 'keys'), { files: { b: '2' } })
  const confirm = (): void => renameSync(other, join(target, 'other'))
  const options = { confirm, force: true }
  t.match(await failed(removePublished(new Looks(), target, options)), { reason: 'TargetUnfit', message: /other/ })
  t.equal(readFileSync(join(root, 'certs/other/keys/b'), 'utf8'), '2')
})

await t.test('removePublished leaves nothing beside a path where holdfast has published nothing', async (t) => {
  const [root, target] = scratchWith(t, 'mistyped')
  for (const options of [{}, { force: true }]) {
    t.match(await failed(removed(target, options)), { reason: 'TargetUnfit', code: 'ENOENT' })
  }
  const hold = { reason: '', since: 1, until: null }
  t.match(await failed(setHold(new Looks(), target, hold, {})), { reason: 'TargetUnfit', code: 'ENOENT' })
  t.same(readdirSync(root), [])
})

await t.test('recovery keeps a file that another program has put into its place', async (t) => {
  const [root, target] = scratchWith(t, 'pod.yaml')
  // Made where the old one was, it may get its inode's number.
  for (const [isPublished, theirs] of [false, true].flatMap((one) =>
    ['theirs', 'pod.yaml'].map((name) => [one, name] as const),
  )) {
    await replaceFile(target, 'ours')
    let renamed = false
    const { fs: dying } = intercepted((call, args) => {
      if (renamed) throw new Killed()
      if (call !== 'rename' || args[1] !== 'pod.yaml') return
      rmSync(join(root, theirs), { force: true })
      writeFileSync(join(root, theirs), 'precious')
      renameSync(join(root, theirs), target)
      renamed = true
    }, new Looks())
    await t.rejects(removePublished(dying, target, {}))
    t.notOk(readdirSync(root).includes('pod.yaml'))
    if (isPublished) await replaceFile(target, 'ours again')
    else await removed(target)
    const [kept = ''] = readdirSync(root).filter((name) => name.endsWith('.foreign'))
    t.equal(readFileSync(join(root, kept), 'utf8'), 'precious')
    renameSync(join(root, kept), join(root, 'kept'))
  }
})

await t.test('removePublished loses no bytes that a program writes during the second scan', async (t) => {
  const [root, target] = scratchWith(t, 'pod.yaml')
  await replaceFile(target, 'ours')
  const fs = new Looks((nth, name) => {
    if (nth === 2) writeFileSync(join(root, name), 'precious')
    return undefined
  })
  t.match(await failed(removePublished(fs, target, {})), { reason: 'TargetForeign', published: false })
  t.equal(readFileSync(target, 'utf8'), 'precious')
})

await t.test('a process that uses the rest of an interrupted removal: the error says that PATH is gone', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: '1', 'b/c': '2' } })
  let [files, gone] = [0, false]
  const { fs: dying } = intercepted((call, args) => {
    if (call === 'rename') gone = true
    // The second file of the content.
    if (gone && call === 'removeFile' && !String(args[1]).startsWith('.') && ++files === 2) throw new Killed()
  }, new Looks())
  await t.rejects(removePublished(dying, target, {}))
  t.notOk(readdirSync(root).includes('certs'))
  const error = await failed(removePublished(new Looks(() => 'process 7'), target, {}))
  t.match(error, {
    reason: 'InUse',
    published: true,
    message: /process 7; .*certs has left its place.*; end it, .*; then/,
  })
  let asked = false
  const used = new Looks(() => {
    asked = true
    return 'process 7'
  })
  const { fs: unread } = intercepted((call) => {
    if (asked && call === 'read') throw failure('EIO', 'read')
  }, used)
  t.match(
    await failed(removePublished(unread, target, {})),
    { code: 'EIO', published: true, message: /could not finish the removal of .*: read .*EIO/ },
    'nor is it in its place where nobody can see whether it is whole',
  )
  await removed(target)
  t.same(
    readdirSync(root).filter((name) => !name.endsWith('.lock')),
    [],
  )
})

await t.test('sameTarget finds the other path of a directory that has several', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'run'))
  symlinkSync('run', join(root, 'var'))
  const target = join(root, 'var/certs')
  const others = ['none/certs', 'run/other', 'certs'].map((path) => join(root, path))
  t.equal(await sameTarget(target, others), undefined)
  t.equal(await sameTarget(target, [...others, join(root, 'run/certs')]), join(root, 'run/certs'))
})
