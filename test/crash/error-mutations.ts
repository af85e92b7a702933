import { drop, without, becomes, operator, move, quoted } from './changes.js'
import { caught, model, ownTest, ownTestOfRoot, power, syscalls, type Mutation } from './mutation.js'

/** Errors that say less than they mean, and wrong readings of them. */
export const errors: readonly Mutation[] = [
  ...caught([ownTest('durable/crash-recovery'), model(), syscalls('EIO at sync_file_range STAGING')], {
    "the write-out hint's error is ignored": quoted('barrier', 'note(failures, files', 'note(new Map(), files'),
  }),
  ...caught([ownTest('barrier'), syscalls('EIO at sync_file_range STAGING')], {
    "the real hint's error is ignored": without('outcomesOf', 'has'),
  }),
  ...caught([syscalls()], {
    'the real hint is not waited for': becomes(undefined, 'startWriteOutAll', 'startWriteOut 2/2'),
    'no hint': becomes([], 'startWriteOutAll', 'outcomesOf 1/2', 0),
  }),
  ...caught([ownTest('leading-commit')], {
    "a leading commit's failure is forgotten": operator('&&', 'behindLeadingCommit', '??'),
  }),
  ...caught([model(), syscalls('EIO at fsync')], {
    'a failed fsync is tried again': quoted(
      'barrier',
      '=> fs.sync(descriptors)',
      '=> fs.sync(descriptors).then(() => fs.sync(descriptors))',
    ),
  }),
  ...caught([ownTest('room')], {
    'failures of files that were closed at the bound are forgotten': drop('firstBarrier', 'set'),
  }),
  ...caught([model(), syscalls(), power('ext4', 'failing')], {
    'no mutation after barrier 2': drop('publishTogether', 'mutate'),
  }),
  ...caught([model()], {
    'the old is deleted on error': becomes(false, 'publishTogether', 'published'),
    'nothing is discarded on error': drop('publishTogether', 'published'),
    "the rename's answer is believed": move('makeVisible', 'renameError', 'isAt 1/2'),
  }),
  ...caught([ownTest('stale-events')], {
    'AIO: a stray completion is believed': drop('AioContext.#collect', 'getUint32 1/2'),
  }),
  ...caught([ownTest('syscalls/aio')], {
    'AIO: a context with requests unanswered is used again': drop('AioContext.sync', '#broken 2/2'),
    'AIO: an interrupted wait is a failure': drop('AioContext.#collect', 'errnoName'),
  }),
  ...caught([ownTestOfRoot('failing-disk')], {
    'AIO: an fsync that fails has succeeded': becomes(undefined, 'AioContext.#collect', 'SystemError 2/2'),
  }),
]
