/** Staged entries have their mode, owner and lists before the barrier gets them. On the model disk. */
import { openedByLists } from '../../src/durable/look/found-target.js'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { accessAttribute } from '../../src/durable/path/kept-attributes.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import { byDefault, changeExtended, decoded, listOf } from '../crash/model/access-lists.js'
import { find } from '../crash/model/content.js'
import { ModelDisk, rootInode } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { makeEntry } from '../crash/model/scenario.js'
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

await t.test(
  "an ACL that another user may have set does not stay, in each form; that of the last publication's owner does",
  async (t) => {
    const owner = { uid: 1000, gid: 1000 }
    const stranger = { uid: 1001, gid: 1001 }
    for (const form of ['exchange', 'symlink', 'file'] as const) {
      const disk = new ModelDisk()
      const said: string[] = []
      const warn = (_: object, message: string): void => void said.push(message)
      const log = { debug() {}, info() {}, warn, error() {} }
      const run = async (content: string, owner: { uid: number; gid: number }) => {
        const process = new ModelProcess(disk)
        const options = { owner, log }
        const publication =
          form === 'file'
            ? filePublication(process, '/t', content, options)
            : directoryPublication(process, { target: '/t', files: { a: content }, publish: form, ...options })
        const [outcome] = await publish([publication])
        return outcome
      }
      const holder = () => (form === 'symlink' ? `/t/${find(disk, '/t/..data')?.now.data ?? ''}` : '/t')
      const paths = () => (form === 'file' ? ['/t'] : ['/t', holder(), `${holder()}/a`])
      const listed = () => paths().map((path) => decoded(find(disk, path)?.now.attributes.extended ?? '').size > 0)
      const setLists = (): void => {
        for (const path of new Set(paths())) {
          const inode = find(disk, path)
          if (inode)
            disk.setMetadata(
              inode.number,
              changeExtended(inode.now.attributes, accessAttribute, listOf(6, 4, 0, 4, 0)),
              's',
            )
        }
      }
      t.match(await run('1', owner), { outcome: 'created' }, form)
      setLists()
      t.match(await run('2', owner), { outcome: 'replaced' }, form)
      t.notOk(listed().includes(false), `${form}: the owner is as it was`)
      t.strictSame(
        said.filter((line) => line.includes('another user owned')),
        [],
      )
      t.match(await run('3', stranger), { outcome: 'replaced' }, form)
      t.notOk(listed().includes(true), `${form}: a former owner's`)
      t.match(said.at(-1), /does not keep ACLs and user attributes of .*: another user owned that/)
    }
  },
)

/** `/home`, where user 1000 has made things first, with modes for everybody; and what is said while holdfast publishes there. */
function strangersHome() {
  const disk = new ModelDisk()
  const said: string[] = []
  const log = { debug() {}, info() {}, warn: (_: object, message: string): void => void said.push(message), error() {} }
  const put = (path: string, type: 'directory' | 'file', mode: number, uid = 1000, data = ''): void => {
    const number = makeEntry(disk, path, type, mode, data)
    disk.setMetadata(number, { uid }, 'chown')
  }
  put('/home', 'directory', 0o755)
  const shown = (path: string): string => {
    const { mode = 0, uid } = find(disk, path)?.now.attributes ?? {}
    return `${mode.toString(8)} ${uid}`
  }
  return { disk, said, log, put, shown, process: new ModelProcess(disk) }
}

await t.test('a mode that another user may have set does not stay, in each form', async (t) => {
  const home = strangersHome()
  const { put, shown, process, log } = home
  for (const path of ['/home/exchange', '/home/symlink', '/home/symlink/..1-0123456789abcdef'])
    put(path, 'directory', 0o777)
  for (const path of ['/home/file', '/home/both', '/home/exchange/a', '/home/symlink/..1-0123456789abcdef/a'])
    put(path, 'file', 0o666)
  const link = makeEntry(home.disk, '/home/symlink/..data', 'symlink', 0o777, '..1-0123456789abcdef')
  home.disk.setMetadata(link, { uid: 1000 }, 'chown')
  const keep = { attributes: 'keep', foreign: 'always', log } as const
  const files = { a: 'key' }
  const publications = () => [
    filePublication(process, '/home/file', 'key', { owner: { uid: 0, gid: 0 }, attributes: 'keepMode', log }),
    filePublication(process, '/home/both', 'key', { attributes: 'keep', log }),
    directoryPublication(process, { target: '/home/exchange', files, ...keep }),
    directoryPublication(process, { target: '/home/symlink', files, publish: 'symlink', ...keep }),
  ]
  t.match(await publish(publications()), Array(4).fill({ outcome: 'replaced' }))
  t.equal(shown('/home/file'), '600 0', 'the owner is named')
  t.equal(shown('/home/both'), '600 1000')
  t.strictSame([shown('/home/exchange'), shown('/home/exchange/a')], ['755 1000', '600 1000'])
  const generation = `/home/symlink/${find(home.disk, '/home/symlink/..data')?.now.data ?? ''}`
  t.strictSame([shown('/home/symlink'), shown(generation), shown(`${generation}/a`)], ['755 0', '755 1000', '600 1000'])
  for (const path of ['file', 'both', 'exchange', 'symlink'])
    t.ok(
      home.said.some((line) =>
        new RegExp(`^the new content of /home/${path} does not keep .*mode.* of \\.`).test(line),
      ),
    )
  t.match(await publish(publications()), Array(4).fill({ outcome: 'unchanged' }))
})

await t.test(
  'content that is equal, in an entry that another user made, is published anew without their ACL',
  async (t) => {
    const { disk, put, shown, process, log, said } = strangersHome()
    put('/srv', 'directory', 0o755, 0)
    const run = () =>
      publish([directoryPublication(process, { target: '/srv/t', files: { a: '1' }, attributes: 'keep', log })])
    const list = (): void => {
      const { number, now } = find(disk, '/srv/t/a') ?? disk.inode(rootInode)
      disk.setMetadata(number, changeExtended(now.attributes, accessAttribute, listOf(6, 4, 0, 4, 0)), 'setfacl')
    }
    t.match(await run(), [{ outcome: 'created' }])
    const target = find(disk, '/srv/t') ?? disk.inode(rootInode)
    disk.setMetadata(disk.child(target.number, 'a')?.number ?? 0, { uid: 1000 }, 'chown')
    list()
    t.match(
      await run(),
      [{ outcome: 'unchanged' }],
      'root has given it to that user, since nobody else may write there',
    )
    disk.setMetadata(target.number, { mode: 0o777 }, 'chmod')
    disk.link(target.number, [['a', undefined]], 'unlink')
    put('/srv/t/a', 'file', 0o600, 1000, '1')
    list()
    t.match(await run(), [{ outcome: 'replaced' }])
    t.equal(shown('/srv/t/a'), '600 1000')
    t.equal(find(disk, '/srv/t/a')?.now.attributes.extended, '')
    t.match(said.at(-1), /does not keep ACLs and user attributes of a: another user owned that/)
    t.match(await run(), [{ outcome: 'unchanged' }])
  },
)

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
