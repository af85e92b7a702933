import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { anotherFile, directory, file, first, killedIn, published, second, type Scene } from './scene.js'

const history = { keep: 1, maxAge: null }
export const symlinked = { publish: 'symlink' as const }

const another: Scene['another'] = (fs, text) => directory({ files: { other: text }, ...symlinked })(fs)

export const forms: readonly Scene[] = [
  {
    name: 'symlink form, first',
    ends: 'created',
    fails: true,
    another,
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'symlink form, again',
    ends: 'replaced',
    fails: true,
    meets: true,
    another,
    before: published({ files: first, ...symlinked }),
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'symlink form, again, with history',
    ends: 'replaced',
    dies: true,
    before: async (_, fs) => {
      for (const files of [first, { a: '1' }]) await directory({ files, history, ...symlinked })(fs)
    },
    run: directory({ files: second, history, ...symlinked }),
  },
  {
    name: 'symlink form, unchanged',
    ends: 'unchanged',
    before: published({ files: first, ...symlinked }),
    run: directory({ files: first, ...symlinked }),
  },
  {
    name: 'symlink form, after a kill',
    ends: 'replaced',
    before: killedIn({ files: second, ...symlinked }, /^replace/, 1, { files: first, ...symlinked }),
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'symlink form over the other',
    ends: 'TargetUnfit',
    before: published({ files: first }),
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'exchange over the symlink form',
    ends: 'TargetUnfit',
    before: published({ files: first, ...symlinked }),
    run: directory({ files: second }),
  },
  { name: 'a file, first', ends: 'created', run: file('new', { mode: 0o644, owner: { uid: 7, gid: 8 } }) },
  {
    name: 'a file, replaced',
    ends: 'replaced',
    fails: true,
    meets: true,
    another: anotherFile,
    before: (_, fs) => file('old')(fs),
    run: file('new'),
  },
  { name: 'a file, unchanged', ends: 'unchanged', before: (_, fs) => file('old')(fs), run: file('old') },
  {
    name: 'a file, foreign',
    ends: 'replaced',
    before: (disk) => makeEntry(disk, '/etc/pki/pod.yaml', 'file', 0o644, 'x'),
    run: file('new'),
  },
  {
    name: 'a file over a directory',
    ends: 'TargetUnfit',
    before: (disk) => makeDirectory(disk, '/etc/pki/pod.yaml', 0o755),
    run: file('new'),
  },
]
