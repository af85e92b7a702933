import { drop, without, becomes, keep, quoted } from './changes.js'
import { caught, model, ownTest, power, syscalls, type Mutation } from './mutation.js'

/** Each fsync, in the order in which they come. */
export const syncs: readonly Mutation[] = [
  ...caught([model('first publication'), syscalls(), power('btrfs', 'replacement')], {
    'fsync of no file': without('firstBarrier', '[]', 0),
  }),
  ...caught(
    [
      model('first publication'),
      syscalls(),
      power('ext4', 'replacement'),
      power('xfs', 'replacement'),
      power('btrfs', 'replacement'),
    ],
    {
      'no fsync of the content': drop('stageTree', 'add'),
      'no fsync after the exchange': becomes([], 'publishTogether', 'secondBarrier', 0),
    },
  ),
  ...caught([model('a file'), syscalls(), power('btrfs', 'replaceFile')], {
    'no fsync of the staged file': drop('FilePublication.stageContent', 'add'),
  }),
  ...caught([model('first publication'), syscalls()], {
    'no fsync of the record': drop('RecordFile.stage', 'add'),
    'no fsync of the staged directory': without('DirectoryPublication.stageContent', '[]', 0),
  }),
  ...caught([syscalls(), model()], {
    'no fsync of subdirectories': drop('stageTree', 'addDirectory'),
  }),
  ...caught([model(), syscalls()], {
    'no fsync of the parent before': without('TargetPublication.stage', 'directory'),
  }),
  ...caught([model('ancestors'), syscalls()], {
    'no fsync of ancestors': without('TargetPublication.stage', '[]', 2),
  }),
  ...caught([model('symlink')], {
    'no fsync of the target of links before': without('SymlinkPublication.stageContent', '[]', 1),
    'links: the parent is synced after the rename': keep('SymlinkPublication.stageContent', '? 4/4', 1),
  }),
  ...caught([model('symlink'), power('ext4', 'symlink'), power('btrfs', 'symlink')], {
    'no fsync of new links': drop('SymlinkPublication.mutate', 'fsyncAll'),
  }),
  ...caught([ownTest('file-system/exchange')], {
    'exchange(): no fsync of the first parent': without('exchange', 'anchor 6/7'),
    'exchange(): no fsync of the second parent': without('exchange', 'anchor 7/7'),
  }),
  ...caught([ownTest()], {
    'exchange(): no fsync of what is above': without('exchange', 'settle', 1, 2),
  }),
  ...caught(
    [
      ownTest('file-system/exchange'),
      power('ext4', 'exchange()'),
      power('xfs', 'exchange()'),
      power('btrfs', 'exchange()'),
    ],
    {
      'exchange(): no fsync at all': becomes([], 'exchange', 'settle', 1),
    },
  ),
  ...caught([ownTest('room')], {
    'no fsync of files that are closed at the bound': quoted(
      'StagedEntries.#sync',
      'barrier(this.fs, entries)',
      "barrier(this.fs, entries.filter(({ type }) => type === 'directory'))",
    ),
    'no fsync of directories that are closed at the bound': quoted(
      'StagedEntries.#sync',
      'barrier(this.fs, entries)',
      "barrier(this.fs, entries.filter(({ type }) => type === 'file'))",
    ),
  }),
  ...caught([ownTest('leading-commit')], {
    'the barrier behind a leading commit is left out': becomes([], 'behindLeadingCommit', 7, 0),
  }),
  ...caught([ownTest(), ownTest('syscalls/aio')], {
    'AIO: what io_submit did not take is forgotten': quoted('AioContext.sync', 'next += submitted', 'next += batch'),
  }),
  ...caught([ownTest('durable/calls')], {
    'no fsync of a file of its own': without('OwnFile.replace', '[] 1/2', 0),
  }),
  ...caught([ownTest('durable/calls'), ownTest()], {
    'no fsync above a file of its own': without('OwnFile.replace', '[] 1/2', 1),
    'above a file of its own, only the first write syncs': quoted(
      'OwnFile.replace',
      'await at.above()',
      'this.#tidied ? [] : await at.above()',
    ),
  }),
  ...caught([ownTest('durable/calls')], {
    'no fsync of a record that holds or releases': without('syncInPlace', 'settle', 1, 0),
    'no fsync of the name of a record that holds or releases': without('syncInPlace', 'settle', 1, 1),
  }),
]
