import type { FileSystem } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { relocate } from '../../../src/durable/move/relocation.js'
import { removePublished, type RemovalOptions } from '../../../src/durable/remove/removal.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import type { Log } from '../../../src/log.js'
import { find } from '../../crash/model/content.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { symlinked } from './forms.js'
import {
  directory,
  first,
  killed,
  killedIn,
  link,
  numberOf,
  published,
  Refusal,
  refused,
  second,
  target,
} from './scene.js'
import { watched, type Scene } from './scene.js'

const parent = '/etc/pki'
const names = namesFor('certs')
const random = '0123456789abcdef'
const moved = '/etc/manifests/certs'
const history = { keep: 1, maxAge: null }

async function twice(fs: FileSystem): Promise<void> {
  await directory({ files: first, history })(fs)
  await directory({ files: second, history })(fs)
}

/** The disk as a removal leaves it that is killed at its nth change of this name. */
const leftBy =
  (change: RegExp, nth = 1, options: RemovalOptions = {}) =>
  async (disk: ModelDisk, fs: FileSystem): Promise<ModelDisk> => {
    await twice(fs)
    return killed(disk, change, nth, (by) => removePublished(by, target, options))
  }

const takeAway =
  (options: RemovalOptions = {}): Scene['run'] =>
  (fs, log) =>
    removePublished(fs, target, { log, ...options }).catch(refused)

const gone = /^noreplace \.holdfast/

const move =
  (form: PublicationOptions = {}, keep = 0, files: typeof first | typeof second = second) =>
  async (fs: FileSystem, log?: Log): Promise<unknown> => {
    const published = await directory({ target: moved, files, movedFrom: target, ...form })(fs, log)
    return [published, await relocate(fs, moved, { from: target, keep, ...(log && { log }) }).catch(refused)]
  }

const forEver = 1_000_000

/** The new path comes first: the old one has no newer content, and goes only once the new one holds it. */
function newPathFirst(disk: ModelDisk): Promise<string | undefined> {
  const [old, now] = [target, moved].map((path) => find(disk, `${path}/tls.crt`)?.now.data)
  const isBehind = old === first['tls.crt'] || now === second['tls.crt']
  return Promise.resolve(isBehind ? undefined : `${target} holds ${old ?? 'nothing'}, ${moved} ${now ?? 'nothing'}`)
}

const withoutTarget = (disk: ModelDisk): void => disk.link(numberOf(disk, parent), [['certs', undefined]], 'unlink')

/** Removals that go on, or find nothing; a directory that gets another path. */
export const leaving: readonly Scene[] = [
  {
    name: 'taking away what another removal was about to take',
    before: leftBy(/^sync/, 1),
    run: takeAway(),
  },
  {
    name: 'taking away what has left its place',
    before: leftBy(gone),
    run: takeAway(),
  },
  {
    name: 'taking away what has left its place, and is used',
    ends: 'InUse',
    exempt: {
      'the answer is true of the disk': 'it takes back what the removal before it has done',
    },
    before: leftBy(gone),
    run: takeAway({ usedBy: () => Promise.resolve('a manifest') }),
  },
  {
    name: 'taking away what has left its place in part, and is used',
    ends: 'InUse',
    exempt: {
      'the answer is true of the disk': 'it takes back what the removal before it has done',
    },
    before: leftBy(/^unlink/, 2),
    run: takeAway({ usedBy: () => Promise.resolve('a manifest') }),
  },
  {
    name: 'taking away what somebody else has taken away',
    before: async (disk, fs) => {
      await twice(fs)
      withoutTarget(disk)
    },
    run: takeAway(),
  },
  {
    name: 'taking away what a first publication has staged',
    before: killedIn({ files: first }, /^write/, 2, null),
    run: takeAway(),
  },
  {
    name: 'taking away damaged records without a target',
    before: (disk) => makeEntry(disk, `${parent}/${names.record(4)}`, 'file', 0o600, ''),
    run: takeAway(),
  },
  {
    name: 'taking away a generation that is left without a record',
    before: (disk) => makeDirectory(disk, `${parent}/${names.generation(3, random)}`, 0o755),
    run: takeAway(),
  },
  {
    name: 'taking away what was never published',
    ends: 'TargetUnfit',
    before: (disk) => makeDirectory(disk, target, 0o755),
    run: takeAway(),
  },
  { name: 'taking away what is not there', ends: 'TargetUnfit', run: takeAway() },
  {
    name: 'taking away a target whose old content is in use',
    ends: 'InUse',
    before: async (disk, fs) => {
      disk.user = 'process 7'
      await directory({ files: first, retireTimeout: 3_600_000 })(fs)
      await directory({ files: second, retireTimeout: 3_600_000 })(fs)
    },
    run: takeAway(),
  },
  {
    name: 'taking away a target that somebody refuses, or changes meanwhile',
    ends: 'PublishFailed, Error, TargetForeign',
    exempt: {
      'the answer is true of the disk': 'another program has changed a file meanwhile',
      'staged content is durable before it is visible': 'what goes back is what another program has written',
    },
    before: published({ files: first }),
    run: async (fs, log) => {
      const answers: unknown[] = []
      const aborted = AbortSignal.abort()
      for (const options of [{ signal: aborted }, { confirm: () => Promise.reject(new Refusal('not this one')) }])
        answers.push(await takeAway(options)(fs, log))
      let times = 0
      const by = watched(fs, (disk, call) => {
        if (call === 'rename' && ++times === 1) disk.append(numberOf(disk, `${target}/gone`), 'more')
      })
      return [...answers, await takeAway()(by, log)]
    },
  },
  {
    name: 'a publication over a link of somebody else',
    ends: 'TargetUnfit',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      withoutTarget(disk)
      link(disk, target, 'elsewhere')
    },
    run: directory({ files: second }),
  },
  {
    name: 'a directory gets another path',
    ends: 'created, unchanged',
    before: published({ files: first }),
    run: async (fs, log) => [await move()(fs, log), await move()(fs, log)],
  },
  {
    name: 'a directory gets another path in one run',
    dies: true,
    stopped: newPathFirst,
    before: published({ files: first }),
    run: move(),
  },
  {
    name: 'a directory that moves is kept up to date at both paths',
    dies: true,
    before: async (_, fs) => {
      await directory({ files: first })(fs)
      await move({}, forEver, first)(fs)
    },
    promises: (disk) =>
      find(disk, `${target}/tls.crt`)?.now.data === second['tls.crt'] ? undefined : 'the old path is behind',
    stopped: newPathFirst,
    run: move({}, forEver),
  },
  {
    name: 'a directory of the symlink form gets another path',
    ends: 'created',
    before: published({ files: first, ...symlinked }),
    run: move(symlinked),
  },
  {
    name: 'a directory gets a path where there is something else',
    ends: 'TargetForeign',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      makeDirectory(disk, moved, 0o755)
      makeEntry(disk, `${moved}/foreign`, 'file', 0o644, 'x')
    },
    run: move({ foreign: 'same-names' }),
  },
  {
    name: 'a directory that somebody uses gets another path',
    ends: 'created',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      disk.user = 'process 7'
    },
    run: move(),
  },
  {
    name: 'a directory gets another path after a kill',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      return killed(disk, /^noreplace certs/, 1, move())
    },
    run: move(),
  },
]
