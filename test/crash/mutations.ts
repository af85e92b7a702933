import { syncs } from './sync-mutations.js'
import { errors } from './error-mutations.js'
import { examinations } from './examine-mutations.js'
import { attributes } from './attribute-mutations.js'
import { places } from './place-mutations.js'
import { openings } from './opening-mutations.js'
import { records } from './record-mutations.js'
import { staticPods } from './static-pod-mutations.js'
import { drop, without, becomes, answers, keep, move, postpone, quoted } from './changes.js'
import { caught, model, ownTest, ownTestOfRoot, syscalls, type Mutation } from './mutation.js'

const orders: readonly Mutation[] = [
  ...caught([model(), syscalls()], {
    'exchange before barrier 1': move('publish', 'firstBarrier', 'filter 2/2'),
  }),
  ...caught([model()], {
    'committed before barrier 2': quoted(
      'publish',
      'const visible =',
      "await each(going(), 'too early', (publication) => publication.commit())\n    const visible =",
    ),
    'the old is removed before barrier 2': quoted(
      'publish',
      'const visible =',
      "await each(going(), 'too early', (publication) => publication.removeOld())\n    const visible =",
    ),
    'mode and owner after the fsync': postpone(['stageTree', 'setMetadata 1/3'], ['publish', 'swap']),
    'two renames for an exchange': quoted(
      'makeVisible',
      'const failure = await failureOf(fs.rename(directory, from, directory, to, mode))',
      "const spare = from.slice(0, -16) + fs.random()\n  if (mode === 'exchange') await fs.rename(directory, to, directory, spare, 'noreplace')\n  const failure = await failureOf(fs.rename(directory, from, directory, to, 'noreplace'))\n  if (mode === 'exchange') await fs.rename(directory, spare, directory, from, 'noreplace')",
    ),
  }),
  ...caught([model('symlink')], {
    'links: the old ..data is removed first': quoted(
      'SymlinkPublication.swap',
      'const failure = await failureOf(',
      `await failureOf(this.fs.removeFile(target, dataLink))
    const failure = await failureOf(`,
    ),
  }),
]

const memory: readonly Mutation[] = [
  ...caught([model(), syscalls()], {
    'no record': drop('TargetPublication.stage', '#stageRecord'),
    'no owner': drop('setMetadata', 'setOwner'),
  }),
  ...caught([ownTest('durable/crash-recovery'), model()], {
    'every record is believed': becomes(true, 'parseRecord', 'trusted', 0),
    'no other boot is believed': without('parseRecord', 'boot 1/2'),
    'leftovers go before the new is committed': drop('judge', 'isKnown'),
    'an unsettled publication is known': becomes(true, 'isKnown', 'trusted'),
  }),
  ...caught([ownTest('durable/crash-recovery'), model(), syscalls()], {
    'a commit is never recorded': becomes(undefined, 'TargetPublication.commit', 'markCommitted'),
  }),
  ...caught([ownTest('file-system/trust')], {
    "a record's checksum is not looked at": without('readLines', 'checksum'),
    "anybody's record is believed": keep('readRecordFile', '!== 1/2'),
    "somebody else's record name is tried again and again": drop('nextSequence', 'has'),
    "somebody else's file raises the sequence": quoted('nextSequence', '...torn,', '...torn, ...taken,'),
  }),
  ...caught([ownTest('killed-twice')], {
    'only the newest publication is asked': becomes(true, 'isKnown', 'every'),
  }),
  ...caught([model('first publication')], {
    'leftovers never go': becomes([], 'clean', 'for', 0),
    'the name check of the cleanup is wider': quoted(
      'namesOf',
      "randomPattern.exec(behind('-', name))?.[0]",
      "behind('-', name) || undefined",
    ),
  }),
  ...caught([model()], {
    'no target in the names': becomes('', 'namesOf', 'update', 0),
    'nothing random in staging names': becomes('0000000000000000', 'TargetPublication.constructor', 'random 2/2'),
  }),
  ...caught([ownTest('one-inode')], {
    'target and staging may be one directory': drop('readBeside', 'refuseOneInode'),
  }),
  ...caught([ownTest(), ownTest('interrupted-calls'), syscalls()], {
    'no lock': becomes(true, 'lockOnce', 'tryLock'),
  }),
  ...caught([ownTest()], {
    'callers in one process do not wait for one another': keep('enqueue', 'return 1/2'),
  }),
  ...caught([ownTestOfRoot('file-system/trust')], {
    "anybody's lock is taken": without('lockOnce', '&& 1/2'),
  }),
  ...caught([model('ancestors')], {
    'ancestors are made 0700 first': becomes(undefined, 'makeDirectory', 'createDirectory', 2),
  }),
  ...caught([model('labels')], {
    'no label of the old': drop('setMetadata', 'isEqual'),
  }),
]

/** What only a foreign program in the same instant shows. */
const hostile: readonly Mutation[] = [
  ...caught([model('first publication')], {
    'a first directory replaces': becomes('replace', 'DirectoryPublication.swap', "'noreplace'"),
  }),
  ...caught([model('a file, first')], {
    'a first file replaces': becomes('replace', 'FilePublication.swap', '?'),
  }),
  ...caught([ownTest('durable/crash-recovery'), model()], {
    'what came out of the exchange is not looked at': answers(true, 'DirectoryPublication.#exchange', 'renameOver'),
  }),
  ...caught([ownTest('give-back-crashes')], {
    'an exchange that is taken back is not synced': drop('giveBackForeign', 'syncDirectory'),
  }),
  ...caught([ownTest(), model('replacement', 'taken out')], {
    'what is under a staging name is taken for our own': becomes(true, 'quarantineForeign', '||'),
    'what is put into quarantine is not synced': drop('quarantineForeign', 'fsyncAll'),
  }),
  ...caught([ownTest()], {
    'what a predecessor has put into quarantine is not synced': becomes(false, 'quarantineForeign', 'some'),
  }),
  ...caught([ownTest('quarantine'), model('family', 'taken out')], {
    'staging of a family is recognized by one target alone': becomes(false, 'ownStaging', '!=='),
  }),
]

export const mutations: readonly Mutation[] = [
  ...syncs,
  ...errors,
  ...examinations,
  ...attributes,
  ...orders,
  ...places,
  ...memory,
  ...hostile,
  ...openings,
  ...records,
  ...staticPods,
]
