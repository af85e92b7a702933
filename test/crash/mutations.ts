import { syncs } from './sync-mutations.js'
import { errors } from './error-mutations.js'
import { attributes } from './attribute-mutations.js'
import { places } from './place-mutations.js'
import { records } from './record-mutations.js'
import { staticPods } from './static-pod-mutations.js'
import { drop, becomes, answers, keep, move, postpone, quoted } from './changes.js'
import { caught, model, ownTest, ownTestOfRoot, syscalls, type Mutation } from './mutation.js'

const orders: readonly Mutation[] = [
  ...caught([model(), syscalls()], {
    'exchange before barrier 1': move('publishTogether', 'firstBarrier', 'filter 2/2'),
  }),
  ...caught([model()], {
    'committed before barrier 2': quoted(
      'publishTogether',
      'const visible =',
      "await each(going(), 'too early', (publication) => publication.commit())\n    const visible =",
    ),
    'the old is removed before barrier 2': quoted(
      'publishTogether',
      'const visible =',
      "await each(going(), 'too early', (publication) => publication.removeOld())\n    const visible =",
    ),
    'mode and owner after the fsync': postpone(['stageTree', 'setMetadata 1/3'], ['publishTogether', 'swap']),
    'two renames for an exchange': quoted(
      'makeVisible',
      'const failure = await failureOf(fs.rename(directory, from, directory, to, mode))',
      "const spare = from.slice(0, -16) + fs.random()\n  if (mode === 'exchange') await fs.rename(directory, to, directory, spare, 'noreplace')\n  const failure = await failureOf(fs.rename(directory, from, directory, to, 'noreplace'))\n  if (mode === 'exchange') await fs.rename(directory, spare, directory, from, 'noreplace')",
    ),
  }),
  ...caught([model('symlink')], {
    'links: the old ..data is removed first': quoted(
      'SymlinkPublication.#renameLink',
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
    'leftovers go before the new is committed': drop('judge', 'isKnown'),
    'an unsettled publication is known': becomes(true, 'isKnown', 'trusted'),
  }),
  ...caught([ownTest('durable/crash-recovery'), model(), syscalls()], {
    'a commit is never recorded': becomes(undefined, 'TargetPublication.commit', 'markCommitted'),
  }),
  ...caught([ownTest('file-system/trust')], {
    "anybody's record is believed": becomes(false, 'readRecordFile', 'isTaken'),
    'a record to which others may write is nobody’s': becomes(true, 'isTaken', '&& 2/2'),
    "somebody else's file raises the sequence": quoted('nextSequence', '...bounded,', '...taken,'),
  }),
  ...caught([ownTest('record/record-files')], {
    "somebody else's record name is tried again and again": drop('nextSequence', 'has'),
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
  ...caught([ownTest(), ownTest('interrupted-calls'), syscalls()], {
    'no lock': becomes(true, 'lockOnce', 'tryLock'),
  }),
  ...caught([ownTest()], {
    'callers in one process do not wait for one another': keep('enqueue', 'return 1/2'),
  }),
  ...caught([ownTestOfRoot('file-system/trust')], {
    "another user's file in a sticky directory stops a publication": becomes(false, 'isTaken', '&& 2/2'),
    'what a taken name may name goes': becomes(false, 'survey', '>'),
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
    'a first directory replaces': becomes('replace', 'DirectoryPublication.#swap', "'noreplace'"),
  }),
  ...caught([model('a file, first')], {
    'a first file replaces': becomes('replace', 'FilePublication.stageContent', '?'),
  }),
  ...caught([ownTest('durable/crash-recovery'), model()], {
    'what came out of the exchange is not looked at': answers(true, 'DirectoryPublication.#swap', 'renameOver'),
  }),
  ...caught([ownTest(), model('replacement', 'taken out')], {
    'what is under a staging name is taken for our own': becomes(true, 'quarantineForeign', '||'),
  }),
  ...caught([ownTest()], {
    'what a predecessor has put into quarantine is not synced': becomes(false, 'quarantineForeign', 'some'),
  }),
  ...caught([ownTest('quarantine'), model('family', 'taken out')], {
    'staging of a family is recognized by one target alone': becomes(false, 'ownStaging', '!=='),
  }),
  ...caught([ownTest('opening')], {
    'links are followed in paths': becomes(0, 'resolveNoSymlinks', "'4'"),
    'no RENAME_NOREPLACE': becomes(0, 'renameFlags', "'1'"),
    'no RENAME_EXCHANGE': becomes(0, 'renameFlags', "'2'"),
  }),
  ...caught([ownTest('durable/calls'), ownTest('durable/interrupted-calls')], {
    'links of other users are followed on the way to a target': becomes(true, 'isTrusted', '&&'),
  }),
  ...caught([ownTest('lock')], {
    'no flock': keep('tryLock', 'return 1/2'),
  }),
  ...caught([ownTest()], {
    'what examines the content may change it': keep('examineStaged', 'return'),
  }),
]

export const mutations: readonly Mutation[] = [
  ...syncs,
  ...errors,
  ...attributes,
  ...orders,
  ...places,
  ...memory,
  ...hostile,
  ...records,
  ...staticPods,
]
