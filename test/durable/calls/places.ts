import type { FileSystem } from '../../../src/durable/file-system.js'
import {
  identityAt,
  knownContent,
  removeTarget,
  swapPlaces,
  syncPlaces,
} from '../../../src/durable/single-calls/swap-places.js'
import type { KnownEntry } from '../../../src/durable/record/record-fields.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { directory, first, killedIn, numberOf, published, root, second, target, type Scene } from './scene.js'

const other = '/etc/pki/other'

async function both(_: ModelDisk, fs: FileSystem): Promise<void> {
  await directory({ files: first })(fs)
  await directory({ files: second, target: other })(fs)
}

/** What the target holds now. */
async function contentOf(fs: FileSystem, path = target): Promise<KnownEntry[]> {
  const opened = await fs.openPath(path)
  return knownContent(fs, opened).finally(() => fs.close(opened))
}

const staysByName = { 'nothing staged is left': 'what is not known stays under a name that says so' } as const
const cutOff = {
  'nothing old goes before barrier 2':
    'one sync is for the renamed target and its records: a rollout that is cut off removes both again',
  'the parent is synced before the answer': 'a rollout that is cut off removes it again',
} as const
const takenOut = {
  'what readers see is never taken apart': 'a rollout removes what it took out itself, under a name that no reader has',
} as const

/** Trees that change places, and the removal of targets. */
export const places: readonly Scene[] = [
  {
    name: 'exchange of places',
    exemptFailing: { 'the next run completes': 'the next exchange takes it back' },
    exempt: {
      'the lock is held at each change': 'one lock, of the first, is for both places',
    },
    fails: true,
    before: both,
    run: (fs) => swapPlaces(fs, target, other),
  },
  {
    name: 'exchange with a place that is free',
    exempt: {
      'the lock is held at each change': 'one lock, of the first, is for both places',
    },
    before: published({ files: first }),
    run: (fs) => swapPlaces(fs, target, other),
  },
  {
    name: 'exchange of a place that is free',
    exempt: {
      'the lock is held at each change': 'one lock, of the first, is for both places',
    },
    before: published({ files: first, target: other }),
    run: (fs) => swapPlaces(fs, target, other),
  },
  {
    name: 'exchange of two places that are free',
    exempt: {
      'the lock is held at each change': 'one lock, of the first, is for both places',
    },
    run: (fs) => swapPlaces(fs, target, other),
  },
  {
    name: 'exchange across parents',
    ends: 'TypeError',
    exempt: {
      'the answer is true of the disk': 'a caller that asks for this has a defect',
    },
    before: both,
    run: (fs) => swapPlaces(fs, target, '/etc/manifests/other'),
  },
  {
    name: 'exchange of places while somebody publishes',
    ends: 'Busy',
    exempt: {
      'the answer is true of the disk': 'the publication around the refused call succeeds',
      'the lock is held at each change': 'one lock, of the first, is for both places',
    },
    before: both,
    run: async (fs) => {
      const attempt: { outcome?: unknown } = {}
      const examine = async (): Promise<void> => {
        attempt.outcome = await swapPlaces(fs, target, other).catch((error: unknown) => error)
      }
      await directory({ files: second, check: { accepts: () => undefined, examine } })(fs)
      await swapPlaces(fs, target, other)
      return attempt.outcome
    },
  },
  {
    name: 'sync of places',
    exempt: {
      'the lock is held at each change': 'one lock, of the first, is for both places',
    },
    fails: true,
    before: both,
    run: (fs) => syncPlaces(fs, target, other),
  },
  {
    name: 'identities',
    ends: 'TargetUnfit',
    fails: true,
    before: async (disk, fs) => {
      makeEntry(disk, '/etc/pki/file', 'file', 0o644, 'x')
      await both(disk, fs)
    },
    run: async (fs) => [
      await identityAt(fs, target),
      await identityAt(fs, other),
      await identityAt(fs, '/etc/pki/none'),
      await identityAt(fs, '/etc/pki/file').catch((error: unknown) => error),
    ],
  },
  {
    name: 'removal of a target with what a kill left of it',
    exemptFailing: { ...staysByName, ...cutOff },
    exempt: takenOut,
    fails: true,
    before: killedIn({ files: second }, /^exchange/),
    run: async (fs) => removeTarget(fs, target, await contentOf(fs)),
  },
  {
    name: 'removal of a target that holds what is known',
    exemptFailing: { ...staysByName, ...cutOff },
    exempt: takenOut,
    fails: true,
    before: published({ files: first }),
    run: async (fs) => removeTarget(fs, target, await contentOf(fs)),
  },
  {
    name: 'removal of a target that holds more than is known',
    exempt: { ...staysByName, ...cutOff },
    before: async (disk, fs) => {
      await published({ files: first })(disk, fs)
      makeEntry(disk, `${target}/added`, 'file', 0o644, 'x')
    },
    run: async (fs) =>
      removeTarget(
        fs,
        target,
        (await contentOf(fs)).filter(({ path }) => path !== 'added'),
      ),
  },
  {
    name: 'removal of a target with other content than is known',
    exempt: { ...staysByName, ...cutOff },
    before: published({ files: first }),
    run: async (fs) =>
      removeTarget(
        fs,
        target,
        (await contentOf(fs)).map((entry) => (entry.path === 'sub/a' ? { ...entry, sha256: 'other' } : entry)),
      ),
  },
  {
    name: 'removal of a target with another type than is known',
    exempt: { ...staysByName, ...cutOff },
    before: published({ files: first }),
    run: async (fs) =>
      removeTarget(
        fs,
        target,
        (await contentOf(fs)).map((entry) => (entry.path === 'sub' ? { ...entry, type: 'file' as const } : entry)),
      ),
  },
  {
    name: 'removal of a target with a mount in it',
    ends: 'TargetUnfit',
    before: async (disk, fs) => {
      await published({ files: first })(disk, fs)
      const mounted = disk.mountSecond('data', { mode: 0o755, ...root })
      disk.mountOver(numberOf(disk, target), 'sub', mounted.number, '/')
    },
    run: (fs) => removeTarget(fs, target, []),
  },
  {
    name: 'removal of a file in the place of a target',
    exempt: {
      'the parent is synced before the answer': 'a rollout that is cut off removes it again',
    },
    before: (disk) => makeEntry(disk, target, 'file', 0o644, 'x'),
    run: (fs) => removeTarget(fs, target, []),
  },
  {
    name: 'removal of a target beside others',
    exempt: takenOut,
    before: async (disk, fs) => {
      await both(disk, fs)
      makeDirectory(disk, '/etc/pki/.holdfast-0123456789abcdef-0000000000000001', 0o700)
    },
    run: async (fs) => [
      await removeTarget(fs, other, await contentOf(fs, other)),
      await removeTarget(fs, '/etc/pki/none', []),
    ],
  },
]
