import { quoted, drop, without, becomes, keep } from './changes.js'
import { caught, histories, ownTest, ownTestOfRoot, type Mutation } from './mutation.js'

/** Lines that are added to records, and what records tell of other targets. */
export const records: readonly Mutation[] = [
  ...caught([ownTest('record-appends')], {
    'a line is added to a record that is damaged': keep('add', '<='),
    'a line is added to a record while another process writes it anew': becomes(true, 'openAlone', 'tryLock'),
    'a line is added to a record that has lost its name': becomes(true, 'openAlone', '>'),
  }),
  ...caught([ownTest()], {
    'a record that was copied tells of a target': becomes(true, 'isTarget', 'isSame'),
    'an inode is known by its number alone': becomes(true, 'isVery', 'tellBirths'),
    'what became of a target that was let go is drift': drop('isRecorded', 'letGoSince'),
    'an aborted publication takes from what is kept': without('beyond', 'filter 2/2'),
    'what was let go goes with its hold': becomes(true, 'isFinished', '&&'),
  }),
  ...caught([ownTest('interrupted-calls')], {
    'a status that meets a publication is not looked at again': becomes(true, 'lookUntilQuiet', '&& 3/4'),
  }),
  ...caught([ownTestOfRoot('nesting')], {
    'a btrfs subvolume below a target is not noticed': drop('beginEntry', 'otherDevice'),
  }),
  ...caught([ownTest('earlier-content-returns'), histories], {
    'a committed publication counts as aborted where its earlier content is back': quoted(
      'isAborted',
      'if (record.committed || isIn(record, tree)) return false',
      'if (record.before === tree?.digest) return true',
    ),
  }),
  ...caught([ownTest('taken-over')], {
    'records go before anything is published': without('makeRoom', '&& 3/3', 0),
  }),
  ...caught([ownTest('history-limits')], {
    'what was made from an object that is gone stays in the history': becomes(false, 'limitsOf', '=== 1/2'),
  }),
]
