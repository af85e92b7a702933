import { takeOver } from '../../../src/durable/adopt/adoption.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { powerCut } from '../../crash/model/power-cut.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import {
  directory,
  first,
  foreignDirectory,
  killedIn,
  link,
  numberOf,
  object,
  published,
  root,
  second,
  target,
  type Scene,
} from './scene.js'

const history = { keep: 1, maxAge: null }

export const publications: readonly Scene[] = [
  {
    name: 'first, with new ancestors',
    ends: 'created',
    fails: true,
    meets: true,
    another: (fs, text) => directory({ target: '/etc/a/b/certs', files: { other: text } })(fs),
    run: directory({ target: '/etc/a/b/certs', files: second, mode: 0o750 }),
  },
  {
    name: 'first, with an owner, objects, hooks and a publisher',
    ends: 'created',
    run: directory({
      files: { a: new Uint8Array([1, 2]), 'b/c': '' },
      owner: { uid: 7, gid: 8 },
      objects: [object],
      hooks: ['reload'],
      publisher: 'agent',
      emptyDirectories: ['empty'],
    }),
  },
  {
    name: 'replacement',
    ends: 'replaced',
    fails: true,
    meets: true,
    before: published({ files: first }),
    run: directory({ files: second }),
  },
  {
    name: 'replacement of the second publication',
    ends: 'replaced',
    before: async (_, fs) => {
      await directory({ files: second, objects: [object], hooks: ['reload'] })(fs)
      await directory({ files: first, objects: [object], hooks: ['reload'] })(fs)
    },
    run: directory({ files: second, hooks: ['reload'], fileMode: 0o644 }),
  },
  {
    name: 'replacement with history',
    ends: 'replaced',
    dies: true,
    before: async (_, fs) => {
      await directory({ files: first, history })(fs)
      await directory({ files: { a: '1' }, history, objects: [object] })(fs)
    },
    run: directory({ files: second, history }),
  },
  { name: 'unchanged', ends: 'unchanged', before: published({ files: first }), run: directory({ files: first }) },
  {
    name: 'the same content, another owner',
    ends: 'replaced',
    before: published({ files: first }),
    run: directory({ files: first, owner: { uid: 1, gid: 0 } }),
  },
  {
    name: 'foreign directory, adopted',
    ends: 'replaced',
    fails: true,
    meets: true,
    before: foreignDirectory,
    run: directory({ files: second }),
  },
  {
    name: 'foreign directory, taken over once seven checks have passed',
    ends: 'replaced',
    dies: true,
    before: foreignDirectory,
    run: directory({ files: second, hooks: ['reload'], adopt: takeOver({ replace: true }) }),
  },
  {
    name: 'foreign directory, refused',
    ends: 'TargetForeign',
    before: foreignDirectory,
    run: directory({ files: second, foreign: 'same-names' }),
  },
  {
    name: 'foreign directory with the same names',
    ends: 'replaced',
    before: foreignDirectory,
    run: directory({ files: { 'tls.crt': '1', 'sub/x': '2' }, foreign: 'same-names' }),
  },
  {
    name: 'drifted',
    ends: 'replaced',
    before: async (disk, fs) => {
      await directory({ files: first })(fs)
      makeEntry(disk, `${target}/added`, 'file', 0o644, 'by somebody')
      disk.append(numberOf(disk, `${target}/gone`), 'more')
    },
    run: directory({ files: second }),
  },
  {
    name: 'another publisher',
    ends: 'TargetForeign',
    before: published({ files: first, publisher: 'install' }),
    run: directory({ files: second, publisher: 'agent' }),
  },
  {
    name: 'a file where a directory is to be',
    ends: 'TargetUnfit',
    before: (disk) => makeEntry(disk, target, 'file', 0o644, 'x'),
    run: directory({ files: second }),
  },
  {
    name: 'a link where a directory is to be',
    ends: 'TargetUnfit',
    before: (disk) => link(disk, target, 'other'),
    run: directory({ files: second }),
  },
  {
    name: 'below a link',
    ends: 'created',
    before: (disk) => {
      makeDirectory(disk, '/srv', 0o755)
      link(disk, '/etc/link', '../srv')
    },
    run: directory({ target: '/etc/link/new/certs', files: second }),
  },
  {
    name: 'after a kill before the exchange',
    ends: 'replaced',
    before: killedIn({ files: second }, /^exchange/),
    run: directory({ files: second }),
  },
  {
    name: 'after a kill behind the exchange',
    ends: 'replaced',
    fails: true,
    before: killedIn({ files: second }, /^unlink/),
    run: directory({ files: second }),
  },
  {
    name: 'after a kill while staging',
    ends: 'unchanged',
    fails: true,
    before: killedIn({ files: second }, /^write/, 2),
    run: directory({ files: first }),
  },
  {
    name: 'after a kill of the first',
    ends: 'created',
    before: killedIn({ files: second }, /^create/, 3, null),
    run: directory({ files: second }),
  },
  {
    name: 'after a kill and another start of the machine',
    ends: 'unchanged',
    before: async (disk, fs) => {
      const left = await killedIn({ files: second }, /^unlink/)(disk, fs)
      left.syncAll()
      return powerCut(left, () => 0)
    },
    run: directory({ files: second }),
  },
  {
    name: 'abandoned',
    ends: 'PublishFailed',
    before: published({ files: first }),
    run: directory({ files: second, signal: AbortSignal.abort() }),
  },
  {
    name: 'two file systems, and one that fails',
    ends: 'created, TargetUnfit, created',
    fails: true,
    before: (disk) => {
      disk.mountSecond('data', { mode: 0o755, ...root })
      makeEntry(disk, '/etc/pki/wrong', 'file', 0o644, 'x')
    },
    run: (fs, log) =>
      publish(
        ['/etc/pki/one', '/etc/pki/wrong', '/data/two'].map((path) =>
          directoryPublication(fs, { target: path, files: { a: 'a' }, log }),
        ),
      ),
  },
  {
    name: 'two of one family',
    ends: 'created, created',
    exempt: { 'the lock is held at each change': 'the lock is that of the family' },
    run: (fs, log) =>
      publish(
        ['/etc/pki/pod-6', '/etc/manifests/pod-7'].map((path) =>
          directoryPublication(fs, { target: path, files: { a: 'a' }, family: 'pod', log }),
        ),
      ),
  },
]
