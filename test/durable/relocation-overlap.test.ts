/** The places of the two paths of a move, and their content. */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Attributes, FileSystem, Mount } from '../../src/durable/file-system.js'
import { replaceDirectory } from '../../src/durable/index.js'
import { speakingRecord } from '../../src/durable/look/snapshot.js'
import { isThere, refuseSame, userOf } from '../../src/durable/move/relocation-source.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { codeOf } from '../../src/errors.js'
import { failure, intercepted, Killed } from './intercepted.js'
import { scratch, scratchWith } from './scratch.js'
import { isKind } from '../crash/judge/names.js'

interface Directory {
  readonly device?: number
  readonly inode: number
  /** Of the file system, which is mounted at `mountPoint` from its directory `root`. */
  readonly mount?: Partial<Pick<Mount, 'device' | 'root' | 'mountPoint'>>
}

/** Directories that exist, by their paths. */
function machine(directories: Readonly<Record<string, Directory>>) {
  const paths = Object.keys(directories)
  const open = new Set<number>()
  const at = (fd: number) => directories[paths[fd] ?? ''] ?? { inode: 0 }
  const fs = {
    openPath(path: string) {
      const fd = paths.indexOf(path)
      if (fd < 0) return Promise.reject(failure('ENOENT', 'openat2'))
      open.add(fd)
      return Promise.resolve(fd)
    },
    attributes: (fd: number) =>
      Promise.resolve({ device: at(fd).device ?? 1, inode: BigInt(at(fd).inode) } as Attributes),
    mount: (fd: number) => Promise.resolve({ device: '8:1', root: '/', mountPoint: '/', ...at(fd).mount } as Mount),
    close(fd: number) {
      open.delete(fd)
      return Promise.resolve()
    },
  } as Partial<FileSystem> as FileSystem
  const overlapping = async (from: string, to: string): Promise<boolean> => {
    try {
      await refuseSame(fs, to, { from, keep: 0 })
      return false
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      return true
    }
  }
  return { fs, open, overlapping }
}

const root = { '/': { inode: 2 } }

await t.test('two paths overlap that have one name in one directory, whichever mount shows it', async (t) => {
  const other = { device: '0:50', root: '/other', mountPoint: '/b' }
  const seen = async (a: Directory, b: Directory, to = '/b/certs') => {
    const { overlapping, open } = machine({ ...root, '/a': a, '/b': { ...b, mount: other } })
    const answer = await overlapping('/a/certs', to)
    t.equal(open.size, 0, 'nothing stays open')
    return answer
  }
  t.equal(await seen({ inode: 7 }, { inode: 7 }), true)
  t.equal(await seen({ inode: 7 }, { inode: 7 }, '/b/tls'), false)
  t.equal(await seen({ inode: 7 }, { inode: 8 }), false)
  t.equal(await seen({ inode: 7, device: 1 }, { inode: 7, device: 2 }), false)
})

await t.test('paths below directories that are missing are no path yet, and differ by their names alone', async (t) => {
  const { overlapping } = machine({ ...root, '/a': { inode: 7 } })
  t.equal(await overlapping('/a/x/certs', '/a/y/certs'), false)
  t.equal(await overlapping('/a/x/certs', '/a/x/certs/tls'), true)
  t.equal(await overlapping('/none/certs', '/never/certs'), false)
})

await t.test('areOverlapping finds a path in another by its text, or by a mount', async (t) => {
  const bound = { device: '8:1', root: '/a/certs/sub', mountPoint: '/m' }
  const { overlapping } = machine({ ...root, '/a': { inode: 7 }, '/m': { inode: 9, mount: bound } })
  t.equal(await overlapping('/a', '/a/certs'), true)
  t.equal(await overlapping('/a/certs', '/a'), true)
  t.equal(await overlapping('/a', '/ab'), false, 'a name that begins with the other')
  t.equal(await overlapping('/a/certs', '/m/tls'), true)
  t.equal(await overlapping('/m/tls', '/a/certs'), true)
  t.equal(await overlapping('/a/other', '/m/tls'), false)
  const foreign = machine({ ...root, '/a': { inode: 7 }, '/m': { inode: 9, mount: { ...bound, device: '8:2' } } })
  t.equal(await foreign.overlapping('/a/certs', '/m/tls'), false, 'of another file system')
})

await t.test('areOverlapping looks up the new path by atNew', async (t) => {
  const { fs } = machine({ ...root, '/a': { inode: 7 }, '/b': { inode: 8 } })
  let asked = 0
  const atNew = <T>(work: () => Promise<T>): Promise<T> => {
    asked += 1
    return work()
  }
  await refuseSame(fs, '/b/tls', { from: '/a/certs', keep: 0, atNew })
  t.equal(asked, 1)
})

await t.test('a name is there only in the directory that was asked for, and looking leaves nothing open', async (t) => {
  const directory = scratch(t)
  writeFileSync(join(directory, 'certs'), '')
  const { fs, open } = intercepted(() => undefined)
  t.equal(await isThere(fs, join(directory, 'target'), 'certs'), true)
  t.equal(await isThere(fs, join(directory, 'target'), 'tls'), false)
  t.equal(await isThere(fs, join(directory, 'missing/target'), 'certs'), false, 'not in the one above')
  t.equal(open.size, 0)
})

await t.test('speakingRecord answers the record of the present content, and without one the newest', async (t) => {
  const from = join(scratch(t), 'certs')
  const fs = new NodeFileSystem()
  t.equal(await speakingRecord(fs, from), undefined)
  await replaceDirectory(from, { files: { a: '1' } })
  const { fs: mortal } = intercepted((call) => {
    if (/^(rename|remove)/.test(call)) throw new Killed()
  })
  await t.rejects(replaceDirectory(from, { files: { a: '2' } }, mortal))
  t.equal((await speakingRecord(fs, from))?.sequence, 1, 'the exchange to the second one was never made')
  writeFileSync(join(from, 'a'), 'edited')
  t.equal((await speakingRecord(fs, from))?.sequence, 1, 'it is the directory of the first one')
  rmSync(from, { recursive: true })
  t.equal((await speakingRecord(fs, from))?.sequence, 2)
  t.notOk(existsSync(from))
})

await t.test('who uses the old content of the old path uses that path, too', async (t) => {
  const [root, from] = scratchWith(t, 'certs')
  class Used extends NodeFileSystem {
    here: string | undefined
    override userOf(_: number, name: string): Promise<string | undefined> {
      return Promise.resolve(name === 'certs' ? this.here : 'process 7')
    }
  }
  const fs = new Used()
  await replaceDirectory(from, { files: { a: '1' }, retireTimeout: 3_600_000 }, fs)
  t.equal(await userOf(fs, from), undefined)
  await replaceDirectory(from, { files: { a: '2' }, retireTimeout: 3_600_000 }, fs)
  const [retired = ''] = readdirSync(root).filter(isKind('staging', 'foreign'))
  t.equal(await userOf(fs, from), `its old content ${retired} is still in use`)
  fs.here = 'process 8'
  t.equal(await userOf(fs, from), 'process 8', 'who uses what is there is named first')
})
