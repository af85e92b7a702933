/*
 * Where as many staged files or directories are open as may be, those are synced and closed before there are more: a barrier of its
 * own, whose failures count as the first barrier's.
 */
import { cpSync, fstatSync, readdirSync, readlinkSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { failure, intercepted } from '../../durable/intercepted.js'
import { contents, kept, scratch, scratchWith } from '../../durable/scratch.js'

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

/** Twenty directories, some in others, and an old content of as many. */
const tree = Object.fromEntries(
  Array.from({ length: 20 }, (_, index) => [`d${index % 5}/e${index}/f${'/g'.repeat(index % 3)}/file`, `${index}`]),
)
const oldTree = Object.fromEntries(Object.keys(tree).map((path) => [`old-${path}`, 'old']))

/** A file system where this many of each may be open, with what four writers need; a third of the tree's directories in all. */
function narrow(watch: (call: string, args: readonly unknown[]) => void = () => undefined): FileSystem {
  const { fs, open } = intercepted((call, args) => {
    if (/^(open|createFile)/.test(call) && open.size >= 24) throw failure('EMFILE', 'open')
    watch(call, args)
  })
  return Object.create(fs, { stagedFiles: { value: 2 }, openDirectories: { value: 1 } }) as FileSystem
}

await t.test('more directories than may be open: each is synced once, and read, replaced and removed', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const synced: string[] = []
  const watched = narrow((call, args) => {
    if (call === 'sync') synced.push(...(args[0] as number[]).map((one) => readlinkSync(`/proc/self/fd/${one}`)))
  })
  t.match(await publish([directoryPublication(watched, { target, files: oldTree })]), [{ outcome: 'created' }])
  const staged = synced.filter((path) => path.includes('/old-') && statSync(withoutStaging(path, target)).isDirectory())
  const directories = readdirSync(target, { recursive: true, withFileTypes: true }).filter((one) => one.isDirectory())
  t.equal(staged.length, directories.length)
  t.equal(new Set(staged).size, directories.length, 'each directory once')

  t.match(await publish([directoryPublication(narrow(), { target, files: oldTree })]), [{ outcome: 'unchanged' }])
  t.match(await publish([directoryPublication(narrow(), { target, files: tree })]), [{ outcome: 'replaced' }])
  t.same(contents(target), tree)
  t.same(kept(parent), ['lock', 'record'])
})

/** The place of a staged entry in the target. */
function withoutStaging(path: string, target: string): string {
  return path.replace(/^.*\/\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}/, target)
}

await t.test('a directory that is closed at the bound cannot be synced: not published', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files: { a: 'old' } })])
  const last = { path: '' }
  const failing = narrow()
  const sync = failing.sync.bind(failing)
  failing.sync = async (descriptors) => {
    const outcomes = await sync(descriptors)
    const first = descriptors.findIndex((one) => fstatSync(one).isDirectory())
    if (first < 0 || last.path !== '') return outcomes
    last.path = readlinkSync(`/proc/self/fd/${descriptors[first] ?? -1}`)
    return outcomes.map((outcome, index) => (index === first ? failure('EIO', 'fsync') : outcome))
  }
  t.match(await publish([directoryPublication(failing, { target, files: tree })]), [
    { error: { code: 'EIO', published: false } },
  ])
  t.match(last.path, /\/e\d+\/f/, 'a directory below the staged one, synced before the first barrier')
  t.same(contents(target), { a: 'old' })
  t.same(kept(parent), ['lock', 'record'])
})

await t.test('a publication refuses another directory at the path of a directory that the bound closed', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await publish([directoryPublication(real, { target, files: oldTree })])
  const [name = ''] = readdirSync(target)
  let listed = 0
  const fs = narrow((call, [, opened]) => {
    // The reader opens and lists both one after the other: their entries are still unread. Records are read before.
    if (call !== 'openFile' || String(opened).startsWith('.holdfast-') || listed++ > 0) return
    renameSync(join(target, name), join(parent, 'away'))
    cpSync(join(parent, 'away'), join(target, name), { recursive: true })
  })
  t.match(await publish([directoryPublication(fs, { target, files: tree })]), [
    { error: { code: 'ESTALE', published: false } },
  ])
})

for (const call of ['sync', 'startWriteOut']) {
  await t.test(`a failed ${call} of a directory that the bound closed ends the publication unpublished`, async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
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
