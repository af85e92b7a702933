import type { FileSystem } from '../../../src/durable/file-system.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { makeEntry } from '../../crash/model/scenario.js'
import { symlinked } from './forms.js'
import { directory, file, first, killedIn, published, refused, second, target, type Scene } from './scene.js'

const history = { keep: 1, maxAge: null }

async function withHistory(_: ModelDisk, fs: FileSystem): Promise<void> {
  await directory({ files: first, history })(fs)
  await directory({ files: second, history })(fs)
}

/** Targets that are taken away. */
export const removing: readonly Scene[] = [
  {
    name: 'taking away a target with history',
    fails: true,
    before: withHistory,
    run: (fs, log) => removePublished(fs, target, { log }),
  },
  {
    name: 'taking away the symlink form',
    before: published({ files: first, ...symlinked }),
    run: (fs, log) => removePublished(fs, target, { log }),
  },
  {
    name: 'taking away a file',
    fails: true,
    before: (_, fs) => file('kind: Pod')(fs),
    run: (fs, log) => removePublished(fs, '/etc/pki/pod.yaml', { log }),
  },
  {
    name: 'taking away what somebody uses',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.user = 'process 7'
    },
    run: (fs, log) => removePublished(fs, target, { log }),
  },
  {
    name: 'taking away what somebody comes to use',
    fails: true,
    before: published({ files: first }),
    run: async (fs, log) => {
      const usedBy = (looks: number) => () => Promise.resolve(--looks === 0 ? 'a manifest' : undefined)
      return removePublished(fs, target, { log, usedBy: usedBy(2) }).catch(refused)
    },
  },
  {
    name: 'taking away what a kill has left',
    before: async (disk, fs) => {
      const left = await killedIn({ files: second }, /^exchange/)(disk, fs)
      makeEntry(left, '/etc/pki/bystander', 'file', 0o600, 'x')
      return left
    },
    run: (fs, log) => removePublished(fs, target, { log }),
  },
]
