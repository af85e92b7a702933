/** Staged entries have their mode, owner and lists before the barrier gets them. On the model disk. */
import { openedByLists } from '../../src/durable/look/standing.js'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { accessAttribute } from '../../src/durable/path/kept-attributes.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import { byDefault, changeExtended, decoded, listOf } from '../crash/model/access-lists.js'
import { find } from '../crash/model/content.js'
import { ModelDisk, rootInode } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { failure } from './intercepted.js'

/** A process with room for one staged entry. */
class Narrow extends ModelProcess {
  override readonly stagedFiles = 1 as 256
}

for (const [what, files] of [
  ['a file', { a: '1' }],
  ['a directory', { 'a/b': '1' }],
] as const) {
  await t.test(`${what} whose mode is not set yet is no matter of another target's barrier`, async (t) => {
    const disk = new ModelDisk()
    const process = new Narrow(disk)
    // Two of the second target's are synced, to make room, while the first one's mode is being set.
    let goOn = (): void => undefined
    const others = new Promise<void>((resolve) => (goOn = resolve))
    let synced = 0
    process.before = async (call, name) => {
      if (call === 'setMode' && /-0*1\/a$/.test(name)) await others
      if (call === 'sync' && /\/\da( |$)/.test(name) && ++synced === 2) goOn()
    }
    const more = Object.fromEntries(Object.keys(files).flatMap((path) => [1, 2, 3].map((n) => [`${n}${path}`, 'x'])))
    const outcomes = await publish([
      directoryPublication(process, { target: '/one', files, mode: 0o770, fileMode: 0o640 }),
      directoryPublication(process, { target: '/two', files: more }),
    ])
    t.match(outcomes, [{ outcome: 'created' }, { outcome: 'created' }])
    t.equal(find(disk, '/one/a')?.disk?.attributes.mode, what === 'a file' ? 0o640 : 0o770, 'on the disk, too')
    t.equal(process.descriptors, 0)
  })
}

await t.test('a publication that fails leaves nothing open, and closes the streams that it was given', async (t) => {
  const process = new ModelProcess(new ModelDisk())
  process.before = (call, name) => {
    if (call === 'write' && name.endsWith('/c')) throw failure('ENOSPC', 'write')
  }
  const files = { 'a/b/c': '1', 'a/d': '2' }
  t.match(await publish([directoryPublication(process, { target: '/t', files })]), [{ error: { code: 'ENOSPC' } }])
  t.equal(process.descriptors, 0)
  const stream = new PassThrough()
  const unread = { target: '/u', files: { a: { path: '/nothing is here' }, b: stream } }
  t.match(await publish([directoryPublication(process, unread)]), [{ error: { code: 'ENOENT' } }])
  t.ok(stream.destroyed)
})

await t.test('a new entry inherits the default list of its directory, in each form', async (t) => {
  const disk = new ModelDisk()
  const { attributes } = disk.inode(rootInode).now
  disk.setMetadata(rootInode, changeExtended(attributes, byDefault, listOf(7, 7, 5, 7, 5)), 'setfacl -d')
  const process = new ModelProcess(disk)
  const request = { files: { 'sub/a': '1' }, mode: 0o750, fileMode: 0o640 }
  const outcomes = await publish([
    directoryPublication(process, { ...request, target: '/exchange' }),
    directoryPublication(process, { ...request, target: '/symlink', publish: 'symlink' }),
    filePublication(process, '/file', '1', { mode: 0o640 }),
  ])
  t.match(outcomes, [{ outcome: 'created' }, { outcome: 'created' }, { outcome: 'created' }])
  const generation = find(disk, '/symlink/..data')?.now.data ?? ''
  const of = (path: string) => {
    const { mode, extended } = find(disk, path)?.now.attributes ?? { mode: -1, extended: '' }
    return { mode, ...Object.fromEntries(decoded(extended)) }
  }
  const inner = { [byDefault]: listOf(7, 7, 5, 7, 5), [accessAttribute]: listOf(7, 7, 5, 5, 0), mode: 0o750 }
  const file = { [accessAttribute]: listOf(6, 7, 4, 4, 0), mode: 0o640 }
  for (const path of ['/exchange', '/exchange/sub', '/symlink', `/symlink/${generation}`, `/symlink/${generation}/sub`])
    t.strictSame(of(path), inner, path)
  for (const path of ['/exchange/sub/a', `/symlink/${generation}/sub/a`, '/file']) t.strictSame(of(path), file, path)
})

await t.test('files that their mode keeps to their owner, and that a list opens to others', async (t) => {
  const disk = new ModelDisk()
  const process = new ModelProcess(disk)
  const [outcome] = await publish([
    directoryPublication(process, {
      target: '/t',
      files: { 'sub/opened': '', 'sub/plain': '', shared: { content: '', mode: 0o640 }, closed: '', more: '' },
    }),
  ])
  t.match(outcome, { outcome: 'created' })
  for (const [path, list] of [
    ['/t/sub', listOf(7, 7, 0, 7, 0)],
    ['/t/sub/opened', listOf(6, 4, 0, 6, 0)],
    ['/t/shared', listOf(6, 4, 4, 6, 0)],
    ['/t/closed', listOf(6, 4, 0, 0, 0)],
    ['/t/more', listOf(6, 6, 0, 6, 0)],
  ] as const) {
    const inode = find(disk, path)
    if (inode) disk.setMetadata(inode.number, changeExtended(inode.now.attributes, accessAttribute, list), 'setfacl')
  }
  const root = await process.openPath('/t')
  const opened = await openedByLists(process, root)
  t.strictSame(opened, [
    { path: 'more', named: ['user:1000:rw-'] },
    { path: 'sub/opened', named: ['user:1000:r--'] },
  ])
  await process.close(root)
  t.equal(process.descriptors, 0)
})
