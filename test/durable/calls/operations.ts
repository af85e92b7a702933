import type { FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { readHold, readPublication, readPublishedFiles } from '../../../src/durable/look/inspect.js'
import { Disk } from '../../../src/durable/disk/operations.js'
import { completeHook, recordObjects } from '../../../src/durable/record/record-files.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { symlinked } from './forms.js'
import {
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

const disk = (fs: FileSystem): Disk => new Disk(fs)
const held = { reason: 'repair', since: 1, until: null }

export const operations: readonly Scene[] = [
  {
    name: 'hold',
    fails: true,
    before: published({ files: first, objects: [object] }),
    run: (fs, log) => setHold(fs, target, held, { log }),
  },
  { name: 'hold of nothing', run: (fs, log) => setHold(fs, target, held, { log }) },
  {
    name: 'publication under a hold',
    before: async (_, fs) => {
      await directory({ files: first })(fs)
      await setHold(fs, target, held, {})
    },
    run: directory({ files: second }),
  },
  {
    name: 'release',
    fails: true,
    before: async (_, fs) => {
      await directory({ files: first })(fs)
      await setHold(fs, target, held, {})
    },
    run: async (fs, log) => [await readHold(fs, target), await setHold(fs, target, undefined, { log })],
  },
  {
    name: 'look',
    fails: true,
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
    name: 'what is done for a publication',
    fails: true,
    before: published({ files: first, objects: [object], hooks: ['reload'] }),
    run: async (fs) => {
      const digest = (await readPublication(fs, target))?.digest ?? ''
      return [
        await completeHook(fs, target, digest, 'reload'),
        await completeHook(fs, target, 'sha256:other', 'reload'),
        await recordObjects(fs, target, digest, [{ ...object, resourceVersion: '2' }]),
        await readPublication(fs, target),
      ]
    },
  },
  {
    name: 'difference',
    fails: true,
    before: published({ files: first }),
    run: (fs) => disk(fs).difference({ target, files: second }),
  },
  { name: 'difference of what is not there', run: (fs) => disk(fs).difference({ target, files: second }) },
  {
    name: 'preview of a file',
    before: (_, fs) => file('old')(fs),
    run: (fs) => disk(fs).previewFile({ path: '/etc/pki/pod.yaml', content: Buffer.from('new'), options: {} }),
  },
  {
    name: 'committed, drifted, objects',
    before: published({ files: first, objects: [object] }),
    run: async (fs) => [
      await disk(fs).isCommitted(target),
      await disk(fs).isDrifted(target),
      await disk(fs).recordedObjects(target),
    ],
  },
  { name: 'link, new', run: (fs) => disk(fs).replaceLink('/etc/pki/current', 'certs') },
  {
    name: 'link, replaced',
    fails: true,
    before: (model) => {
      link(model, '/etc/pki/current', 'old')
    },
    run: (fs) => disk(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link, the same',
    before: (model) => {
      link(model, '/etc/pki/current', 'certs')
    },
    run: (fs) => disk(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link over a directory',
    before: (model) => makeDirectory(model, '/etc/pki/current', 0o755),
    run: (fs) => disk(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  {
    name: 'link over a file',
    before: (model) => makeEntry(model, '/etc/pki/current', 'file', 0o644, 'x'),
    run: (fs) => disk(fs).replaceLink('/etc/pki/current', 'certs'),
  },
  { name: 'tidy', fails: true, before: killedIn({ files: second }, /^exchange/), run: (fs) => disk(fs).tidy(target) },
  { name: 'tidy of nothing', before: published({ files: first }), run: (fs) => disk(fs).tidy(target) },
  {
    name: 'removal of a file',
    fails: true,
    before: (model) => makeEntry(model, '/etc/pki/x', 'file', 0o644, 'x'),
    run: (fs) => disk(fs).removeFile('/etc/pki/x'),
  },
  { name: 'removal of a file that is gone', run: (fs) => disk(fs).removeFile('/etc/pki/x') },
  { name: 'sync of a tree', fails: true, before: foreignDirectory, run: (fs) => disk(fs).syncTree(target) },
  {
    name: 'work in a directory',
    fails: true,
    run: async (fs) => [
      await disk(fs).inDirectory('/etc/pki', (opened) => fs.list(opened)),
      await disk(fs).inDirectory('/none', (opened) => fs.list(opened)),
      await disk(fs).realPath(target),
    ],
  },
  {
    name: 'lock',
    run: async (fs) => {
      const held = await disk(fs).lock('/etc/pki/lock', 0, undefined)
      const other = await disk(fs)
        .lock('/etc/pki/lock', 1, undefined)
        .catch((error: unknown) => error)
      await held.release()
      return other
    },
  },
]
