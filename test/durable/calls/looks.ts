import { readPublication, readPublishedFiles } from '../../../src/durable/look/inspect.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { recordObjects } from '../../../src/durable/record/record-files.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { powerCut } from '../../crash/model/power-cut.js'
import { symlinked } from './forms.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { failure } from '../intercepted.js'
import {
  directory,
  file,
  first,
  link,
  numberOf,
  published,
  refused,
  watched,
  diskOf,
  second,
  target,
  type Scene,
} from './scene.js'

const parent = '/etc/pki'
const names = namesFor('certs')

/** Drift, and reads during a publication. */
export const looks: readonly Scene[] = [
  {
    name: 'look at each difference',
    before: async (disk, fs) => {
      const files = { missing: '', type: '', content: '', mode: '', uid: '', gid: '', same: '', 'sub/a': '' }
      await directory({ files })(fs)
      const at = (name: string): number => numberOf(disk, `${target}/${name}`)
      disk.link(numberOf(disk, target), [['missing', undefined]], 'unlink')
      disk.link(numberOf(disk, target), [['type', undefined]], 'unlink')
      makeDirectory(disk, `${target}/type`, 0o755)
      disk.append(at('content'), 'x')
      disk.setMetadata(at('mode'), { mode: 0o640 }, 'chmod')
      disk.setMetadata(at('uid'), { uid: 7 }, 'chown')
      disk.setMetadata(at('gid'), { gid: 7 }, 'chown')
      disk.setMetadata(numberOf(disk, target), { mode: 0o700 }, 'chmod')
      makeEntry(disk, `${target}/sub/added`, 'file', 0o600, '')
    },
    run: (fs) => readPublication(fs, target),
  },
  {
    name: 'look at each difference of the symlink form',
    before: async (disk, fs) => {
      await directory({ files: { a: '', b: '', c: '' }, ...symlinked })(fs)
      const inside = numberOf(disk, target)
      disk.link(inside, [['b', undefined]], 'unlink')
      link(disk, `${target}/added`, '..data/added')
      disk.setMetadata(inside, { uid: 7 }, 'chown')
    },
    run: async (fs) => {
      const before = await readPublication(fs, target)
      const disk = diskOf(fs)
      const inside = numberOf(disk, target)
      disk.setMetadata(inside, { mode: 0o700, uid: 0, gid: 7 }, 'chmod')
      disk.link(inside, [['..data', undefined]], 'unlink')
      return [before, await readPublication(fs, target)]
    },
  },
  {
    name: 'look at what is not there, or another thing',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      await file('a')(fs)
      for (const name of ['certs', 'pod.yaml']) disk.link(numberOf(disk, parent), [[name, undefined]], 'unlink')
      makeDirectory(disk, `${parent}/pod.yaml`, 0o755)
    },
    run: async (fs) => [
      await readPublication(fs, target),
      await readPublication(fs, `${parent}/pod.yaml`),
      await readPublication(fs, `${parent}/none`),
      await readPublication(fs, '/etc/none/certs'),
      await readPublishedFiles(fs, target, ['a']),
      await recordObjects(fs, '/etc/none/certs', 'sha256:0', []),
    ],
  },
  {
    name: 'files of the symlink form',
    before: published({ files: first, ...symlinked }),
    run: (fs) => readPublishedFiles(fs, target, ['tls.crt', 'sub/a', 'none']),
  },
  {
    name: 'look after another start of the machine',
    ends: 'unchanged',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.syncAll()
      return powerCut(disk, () => 0)
    },
    run: async (fs) => [await readPublication(fs, target), await directory({ files: first })(fs)],
  },
  {
    name: 'look while one publishes',
    before: published({ files: first }),
    run: async (fs) => {
      let times = 0
      const by = watched(fs, async (disk, call) => {
        if (call === 'openFile' && ++times === 1) await directory({ files: second })(new ModelProcess(disk))
      })
      return [await readPublication(by, target), times]
    },
  },
  {
    name: 'look while somebody publishes again and again',
    before: published({ files: first }),
    run: async (fs) => {
      let times = 0
      const by = watched(fs, async (disk, call) => {
        if (call === 'list') await directory({ files: { a: String(++times) } })(new ModelProcess(disk))
      })
      const looked = await readPublication(by, target).catch(refused)
      return [looked, times]
    },
  },
  {
    name: 'look while the record goes again and again',
    ends: 'Error',
    exempt: {
      'the answer is true of the disk': 'the look gives up after eight times',
    },
    before: published({ files: first }),
    run: async (fs) => {
      let times = 0
      const by = watched(fs, (_, call, name) => {
        if (call === 'openFile' && name === names.record(1)) throw failure('ENOENT', `open ${++times}`)
      })
      return [await readPublication(by, target).catch(refused), times]
    },
  },
  ...['ESTALE', 'ELOOP', 'ENOTDIR', 'EACCES'].map((code): Scene => ({
    name: `look that fails once with ${code}`,
    before: published({ files: first }),
    run: async (fs) => {
      let times = 0
      const by = watched(fs, (_, call) => {
        if (call === 'openDirectory' && ++times === 1) throw failure(code, 'open')
      })
      return readPublication(by, target).catch(refused)
    },
  })),
]
