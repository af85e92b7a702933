import type { FileSystem } from '../../../src/durable/file-system.js'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { isKind } from '../../crash/judge/names.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { makeEntry } from '../../crash/model/scenario.js'
import { directory, first, killedIn, numberOf, root, second, target, type Scene } from './scene.js'

const whenUnused = { retireTimeout: 3_600_000 }
const third = { 'tls.crt': 'third certificate' }

/** Old content with a user; then, unless they go on, without. */
const retired =
  (options: { retireTimeout?: number; user?: string; then?: (disk: ModelDisk, name: string) => void } = {}) =>
  async (disk: ModelDisk, fs: FileSystem): Promise<void> => {
    const { retireTimeout, user, then } = options
    const request = { ...whenUnused, ...(retireTimeout !== undefined && { retireTimeout }) }
    disk.user = 'process 7'
    await directory({ files: first, ...request })(fs)
    await directory({ files: second, ...request })(fs)
    disk.user = user
    const [name = ''] = [...disk.inode(numberOf(disk, '/etc/pki')).now.entries.keys()].filter(isKind('staging'))
    then?.(disk, name)
  }

/** `retire: whenUnused`. */
export const retiring: readonly Scene[] = [
  {
    name: 'old content that somebody uses',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.user = 'process 7'
    },
    run: directory({ files: second, ...whenUnused }),
  },
  {
    name: 'old content that nobody uses',
    ends: 'replaced',
    fails: true,
    before: (_, fs) => directory({ files: first })(fs),
    run: directory({ files: second, ...whenUnused, retireTimeout: 60_000 }),
  },
  {
    name: 'old content that is still used',
    ends: 'unchanged',
    before: retired({ user: 'process 8' }),
    run: directory({ files: second, ...whenUnused }),
  },
  {
    name: 'old content that is used no more',
    ends: 'unchanged',
    fails: true,
    before: retired(),
    run: directory({ files: second, ...whenUnused }),
  },
  {
    name: 'old content whose time is over',
    ends: 'unchanged',
    before: retired({ user: 'process 8', retireTimeout: 0 }),
    run: directory({ files: second, ...whenUnused }),
  },
  {
    name: 'old content to which its user has added',
    ends: 'unchanged',
    before: retired({
      then: (disk, name) => makeEntry(disk, `/etc/pki/${name}/added`, 'file', 0o644, 'x'),
    }),
    run: directory({ files: second, ...whenUnused }),
  },
  {
    name: 'old content in which something is mounted',
    ends: 'unchanged',
    before: retired({
      then: (disk, name) => {
        const mounted = disk.mountSecond('data', { mode: 0o755, ...root })
        disk.mountOver(numberOf(disk, `/etc/pki/${name}`), 'sub', mounted.number, '/')
      },
    }),
    run: directory({ files: second, ...whenUnused }),
  },
  {
    name: 'old content that stays through the next publication',
    ends: 'replaced',
    before: retired({ user: 'process 8' }),
    run: async (fs, log) => [
      await directory({ files: third, ...whenUnused })(fs, log),
      (await readPublication(fs, target))?.retired,
    ],
  },
  {
    name: 'old content that goes with the next publication',
    ends: 'replaced',
    before: retired(),
    run: async (fs, log) => [
      (await readPublication(fs, target))?.retired,
      await directory({ files: third })(fs, log),
      (await readPublication(fs, target))?.retired,
    ],
  },
  {
    name: 'old content after a kill behind the exchange',
    ends: 'replaced',
    before: killedIn({ files: second, ...whenUnused }, /^unlink/, 1, { files: first, ...whenUnused }),
    run: directory({ files: third, ...whenUnused }),
  },
]
