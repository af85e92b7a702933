import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { directory, file, first, killedIn, published, second, type Scene } from './scene.js'

export const symlinked = { publish: 'symlink' as const }

export const forms: readonly Scene[] = [
  { name: 'symlink form, first', fails: true, run: directory({ files: second, ...symlinked }) },
  {
    name: 'symlink form, again',
    fails: true,
    before: published({ files: first, ...symlinked }),
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'symlink form, unchanged',
    before: published({ files: first, ...symlinked }),
    run: directory({ files: first, ...symlinked }),
  },
  {
    name: 'symlink form, after a kill',
    before: killedIn({ files: second, ...symlinked }, /^replace/, 1, { files: first, ...symlinked }),
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'symlink form over the other',
    before: published({ files: first }),
    run: directory({ files: second, ...symlinked }),
  },
  {
    name: 'exchange over the symlink form',
    before: published({ files: first, ...symlinked }),
    run: directory({ files: second }),
  },
  { name: 'a file, first', run: file('new', { mode: 0o644, owner: { uid: 7, gid: 8 } }) },
  { name: 'a file, replaced', fails: true, before: (_, fs) => file('old')(fs), run: file('new') },
  { name: 'a file, unchanged', before: (_, fs) => file('old')(fs), run: file('old') },
  {
    name: 'a file, foreign',
    before: (disk) => makeEntry(disk, '/etc/pki/pod.yaml', 'file', 0o644, 'x'),
    run: file('new'),
  },
  {
    name: 'a file over a directory',
    before: (disk) => makeDirectory(disk, '/etc/pki/pod.yaml', 0o755),
    run: file('new'),
  },
]
