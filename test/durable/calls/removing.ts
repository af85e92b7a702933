import type { FileSystem } from '../../../src/durable/file-system.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { makeEntry } from '../../crash/model/scenario.js'
import { namesOf } from '../../crash/judge/names.js'
import { symlinked } from './forms.js'
import {
  anotherFile,
  by,
  directory,
  file,
  first,
  killedIn,
  published,
  refused,
  second,
  target,
  type Scene,
  numberOf,
} from './scene.js'

const history = { keep: 1, maxAge: null }

async function withHistory(_: ModelDisk, fs: FileSystem): Promise<void> {
  await directory({ files: first, history })(fs)
  await directory({ files: second, history })(fs)
}

/** Only the lock of the target is left. */
const isGone =
  (path: string): NonNullable<Scene['promises']> =>
  (disk) => {
    const parent = disk.inode(numberOf(disk, path.slice(0, path.lastIndexOf('/'))))
    const names = [...parent.now.entries.keys()]
    const beside = namesOf(path, names).flatMap(({ name, kind }) => (kind === 'lock' ? [] : [name]))
    const left = [...names.filter((name) => path.endsWith(`/${name}`)), ...beside]
    return left.length > 0 ? `${left.join(', ')} is left` : undefined
  }

/** Removals of targets. */
export const removing: readonly Scene[] = [
  {
    name: 'taking away a target with history',
    promises: isGone(target),
    fails: true,
    meets: true,
    before: withHistory,
    run: (fs, log, signal) => removePublished(fs, target, by(log, signal)),
  },
  {
    name: 'taking away the symlink form',
    promises: isGone(target),
    before: published({ files: first, ...symlinked }),
    run: (fs, log, signal) => removePublished(fs, target, by(log, signal)),
  },
  {
    name: 'taking away a file',
    promises: isGone('/etc/pki/pod.yaml'),
    fails: true,
    meets: true,
    before: (_, fs) => file('kind: Pod')(fs),
    run: (fs, log, signal) => removePublished(fs, '/etc/pki/pod.yaml', by(log, signal)),
    another: anotherFile,
  },
  {
    name: 'taking away what somebody uses',
    ends: 'InUse',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.user = 'process 7'
    },
    run: (fs, log, signal) => removePublished(fs, target, by(log, signal)),
  },
  {
    name: 'taking away what somebody comes to use',
    ends: 'InUse',
    exemptFailing: { 'the next run completes': 'the removal goes on, and is looked at once only' },
    fails: true,
    meets: true,
    before: published({ files: first }),
    run: async (fs, log, signal) => {
      const usedBy = (looks: number) => () => Promise.resolve(--looks === 0 ? 'a manifest' : undefined)
      return removePublished(fs, target, { ...by(log, signal), usedBy: usedBy(2) }).catch(refused)
    },
  },
  {
    name: 'taking away what a kill has left',
    promises: isGone(target),
    before: async (disk, fs) => {
      const left = await killedIn({ files: second }, /^exchange/)(disk, fs)
      makeEntry(left, '/etc/pki/bystander', 'file', 0o600, 'x')
      return left
    },
    run: (fs, log, signal) => removePublished(fs, target, by(log, signal)),
  },
]
