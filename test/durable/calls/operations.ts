import type { FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { readPublication, readPublishedFiles } from '../../../src/durable/look/inspect.js'
import { DurableCalls } from '../../../src/durable/single-calls/durable-calls.js'
import { completeHook, recordObjects } from '../../../src/durable/record/record-files.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { symlinked } from './forms.js'
import {
  by,
  directory,
  file,
  first,
  foreignDirectory,
  killedIn,
  link,
  object,
  published,
  second,
  target,
  type Scene,
} from './scene.js'

const durable = (fs: FileSystem): DurableCalls => new DurableCalls(fs)
const held = { reason: 'repair', since: 1, until: null }

const seenOn = (model: ModelDisk): ReturnType<typeof readPublication> =>
  readPublication(new ModelProcess(model.fork()), target)

const digestOfFirst = 'sha256:c6fb7c719dc2f2990034fe30dd498820a3b3560f5f7398aedd8d1f024f164f61'

function refuseTrue(answer: boolean): void {
  if (answer) throw new Error('it says yes')
}

export const operations: readonly Scene[] = [
  {
    name: 'hold',
    fails: true,
    atOnce: true,
    meets: true,
    before: published({ files: first, objects: [object] }),
    run: (fs, log, signal) => setHold(fs, target, held, by(log, signal)),
    promises: async (model) => ((await seenOn(model))?.hold?.reason === 'repair' ? undefined : 'nothing is held'),
  },
  { name: 'hold of nothing', ends: 'TargetUnfit', run: (fs, log) => setHold(fs, target, held, { log }) },
  {
    name: 'publication under a hold',
    ends: 'Held',
    before: async (_, fs) => {
      await directory({ files: first })(fs)
      await setHold(fs, target, held, {})
    },
    run: directory({ files: second }),
  },
  {
    name: 'release',
    fails: true,
    atOnce: true,
    meets: true,
    before: async (_, fs) => {
      await directory({ files: first })(fs)
      await setHold(fs, target, held, {})
    },
    run: (fs, log, signal) => setHold(fs, target, undefined, by(log, signal)),
    promises: async (model) => ((await seenOn(model))?.hold === undefined ? undefined : 'it is held still'),
  },
  {
    name: 'look',
    fails: true,
    meets: true,
    before: published({ files: first, objects: [object], hooks: ['reload'] }),
    run: (fs) => readPublication(fs, target),
  },
  {
    name: 'look at the symlink form',
    before: published({ files: first, ...symlinked }),
    run: (fs) => readPublication(fs, target),
  },
  {
    name: 'files',
    fails: true,
    before: published({ files: first }),
    run: (fs) => readPublishedFiles(fs, target, ['tls.crt', 'sub/a', 'none']),
  },
  {
    name: 'a hook has run for a publication',
    exempt: {
      'the answer outlives a power cut': 'lines that are added to a record are not synced: hooks run again',
    },
    fails: true,
    meets: true,
    before: published({ files: first, objects: [object], hooks: ['reload'] }),
    run: (fs) => completeHook(fs, target, digestOfFirst, 'reload'),
    promises: async (model, done) =>
      done !== true || (await seenOn(model))?.pendingHooks.length === 0 ? undefined : 'the hook is still to run',
  },
  {
    name: 'a hook has run for an earlier publication',
    before: published({ files: first, hooks: ['reload'] }),
    run: async (fs) => refuseTrue(await completeHook(fs, target, 'sha256:other', 'reload')),
    promises: async (model) =>
      (await seenOn(model))?.pendingHooks.length === 1 ? undefined : 'the hook is not to run',
  },
  {
    name: 'newer versions of the objects of a publication',
    exempt: {
      'the answer outlives a power cut':
        'lines that are added to a record are not synced: the older versions are asked for again',
    },
    fails: true,
    meets: true,
    before: published({ files: first, objects: [object] }),
    run: (fs) => recordObjects(fs, target, digestOfFirst, [{ ...object, resourceVersion: '2' }]),
    promises: async (model, done) =>
      done !== true || (await seenOn(model))?.objects[0]?.resourceVersion === '2'
        ? undefined
        : 'the record has the older version',
  },
  {
    name: 'difference',
    fails: true,
    before: published({ files: first }),
    run: (fs) => durable(fs).difference({ target, files: second }),
  },
  { name: 'difference of what is not there', run: (fs) => durable(fs).difference({ target, files: second }) },
  {
    name: 'preview of a file',
    before: (_, fs) => file('old')(fs),
    run: (fs) => durable(fs).previewFile({ path: '/etc/pki/pod.yaml', content: Buffer.from('new'), options: {} }),
  },
  {
    name: 'committed, drifted, objects',
    before: published({ files: first, objects: [object] }),
    run: async (fs) => [
      await durable(fs).isCommitted(target),
      await durable(fs).isDrifted(target),
      await durable(fs).recordedObjects(target),
    ],
  },
  {
    name: 'link, new',
    exempt: {
      'the lock is held at each change': 'an installer holds the lock of all that it writes',
    },
    run: (fs) => durable(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link, replaced',
    exempt: {
      'the lock is held at each change': 'an installer holds the lock of all that it writes',
    },
    fails: true,
    before: (model) => {
      link(model, '/etc/pki/current', 'old')
    },
    run: (fs) => durable(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link, the same',
    exempt: {
      'the lock is held at each change': 'an installer holds the lock of all that it writes',
    },
    before: (model) => {
      link(model, '/etc/pki/current', 'certs')
    },
    run: (fs) => durable(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link over a directory',
    ends: 'TargetForeign',
    before: (model) => makeDirectory(model, '/etc/pki/current', 0o755),
    run: (fs) => durable(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link over a file',
    exempt: {
      'the lock is held at each change': 'an installer holds the lock of all that it writes',
    },
    before: (model) => makeEntry(model, '/etc/pki/current', 'file', 0o644, 'x'),
    run: (fs) => durable(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'tidy',
    fails: true,
    before: killedIn({ files: second }, /^exchange/),
    run: (fs) => durable(fs).tidy(target),
  },
  { name: 'tidy of nothing', before: published({ files: first }), run: (fs) => durable(fs).tidy(target) },
  {
    name: 'removal of a file',
    exempt: {
      'what readers see is never taken apart': 'the file is what is to go',
      'the lock is held at each change': 'an installer holds the lock of all that it writes',
    },
    fails: true,
    before: (model) => makeEntry(model, '/etc/pki/x', 'file', 0o644, 'x'),
    run: (fs) => durable(fs).removeFile('/etc/pki/x'),
  },
  { name: 'removal of a file that is gone', run: (fs) => durable(fs).removeFile('/etc/pki/x') },
  { name: 'sync of a tree', fails: true, before: foreignDirectory, run: (fs) => durable(fs).syncTree(target) },
  {
    name: 'work in a directory',
    fails: true,
    run: async (fs) => [
      await durable(fs).inDirectory('/etc/pki', (opened) => fs.list(opened)),
      await durable(fs).inDirectory('/none', (opened) => fs.list(opened)),
      await durable(fs).realPath(target),
    ],
  },
  {
    name: 'lock',
    ends: 'Busy',
    exempt: {
      'the answer is true of the disk': 'the file that is locked stays',
    },
    run: async (fs) => {
      const held = await durable(fs).lock('/etc/pki/lock', 0, undefined)
      const other = await durable(fs)
        .lock('/etc/pki/lock', 1, undefined)
        .catch((error: unknown) => error)
      await held.release()
      return other
    },
  },
]
