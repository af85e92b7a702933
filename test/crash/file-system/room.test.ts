/*
 * Where as many staged files are open as may be, those are synced and closed before more are made: a barrier of its own, whose
 * failures count as the first barrier's.
 */
import { join } from 'node:path'
import t from 'tap'
import { directoryPublication } from '../../../src/durable/replace.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish.js'
import { failure, intercepted } from '../../durable/intercepted.js'
import { contents, kept, scratch } from '../../durable/scratch.js'

const real = new NodeFileSystem()
const count = 60
const files = Object.fromEntries(Array.from({ length: count }, (_, index) => [`file-${index}`, `${index}`]))
/** Descriptors that the process may have, and how many of them staged files may take. */
const most = 16
const stagedFiles = 4

await t.test('every file is synced once, by whichever barrier', async (t) => {
  const target = join(scratch(t), 'certs')
  const created = new Set<number>()
  let [synced, writtenOut] = [0, 0]
  const { fs, open } = intercepted((call, args) => {
    if (call === 'createFile' && open.size >= most) throw failure('EMFILE', 'open')
    if (call === 'sync') synced += (args[0] as number[]).filter((descriptor) => created.has(descriptor)).length
    if (call === 'startWriteOut') writtenOut += (args[0] as number[]).length
  })
  const watched = Object.create(fs, {
    stagedFiles: { value: stagedFiles },
    createFile: {
      value: async (...args: Parameters<typeof fs.createFile>) => {
        const descriptor = await fs.createFile(...args)
        created.add(descriptor)
        return descriptor
      },
    },
    close: {
      value: async (descriptor: number) => {
        created.delete(descriptor)
        return fs.close(descriptor)
      },
    },
  }) as typeof fs
  t.match(await publish([directoryPublication(watched, { target, files })]), [{ outcome: 'created' }])
  t.same(contents(target), files)
  const withRecord = count + 1
  t.same([synced, writtenOut], [withRecord, withRecord], 'each file, and the record')
})

for (const call of ['sync', 'startWriteOut']) {
  await t.test(`${call} fails for what was closed at the bound: not published`, async (t) => {
    const parent = scratch(t)
    const target = join(parent, 'certs')
    await publish([directoryPublication(real, { target, files: { a: 'old' } })])
    let calls = 0
    const { fs, open } = intercepted((name) => {
      if (name === 'createFile' && open.size >= most) throw failure('EMFILE', 'open')
      if (name === call && ++calls === 1) throw failure('EIO', call)
    })
    const bounded = Object.create(fs, { stagedFiles: { value: stagedFiles } }) as typeof fs
    t.match(await publish([directoryPublication(bounded, { target, files })]), [
      { error: { code: 'EIO', published: false } },
    ])
    t.ok(calls > 1, 'others have succeeded since')
    t.same(contents(target), { a: 'old' })
    t.same(kept(parent), ['lock', 'record'])
  })
}
