import { drop, without, becomes, answers, negate, keep, quoted } from './changes.js'
import { caught, model, ownTest, type Mutation } from './mutation.js'

/** Earlier contents that stay beside the target. */
export const earlierContents: readonly Mutation[] = [
  ...caught([model('with history', 'power cut')], {
    'no fsync of the directories that keep an earlier content': becomes([], 'stageGeneration', '[]'),
  }),
  ...caught([model('symlink form with history', 'power cut')], {
    'no fsync of the directories of an earlier content in the symlink form': answers(
      [],
      'SymlinkPublication.stageContent',
      '#stagePast',
    ),
  }),
  ...caught([ownTest('keep/clean'), model('with history', 'kill')], {
    'earlier contents that no record names stay': without('makeRoom', '? 2/3'),
  }),
  ...caught([ownTest()], {
    'earlier contents are forgotten by the next record': without('historyAfter', '[] 1/5', 1),
    'what was made from an object that is gone stays': without('within', 'filter 2/2'),
    'an earlier content is published whatever it holds': drop('earlier', 'isWhole'),
    'what was taken over stays for ever': quoted(
      'withTakenOver',
      'newest && isTakenOver(newest) ? [newest, ...kept.filter((one) => one !== newest)] : kept',
      '[...all.filter(isTakenOver), ...kept.filter((one) => !isTakenOver(one))]',
    ),
    'a directory is taken over whatever the checks say': drop('passChecks', 'verdict'),
    'what changed during the checks is taken over': drop('takeOver', 'digest'),
  }),
  ...caught([ownTest('keep/history')], {
    'the symlink form keeps no earlier content': without('SymlinkPublication.stageContent', '#stagePast'),
    'an earlier content counts as whole, whatever it holds': keep('stateOf', '===', 1),
  }),
  ...caught([ownTest('operator/rollback')], {
    'a rollback is undone by whoever publishes next': drop('TargetPublication.#decide', 'isRepeated'),
    'a hold forgets a pin': becomes(undefined, 'setHold', '&& 3/3'),
  }),
  ...caught([model('adoption with history', 'power cut'), ownTest('taken-over')], {
    'what is taken over is not kept': becomes(undefined, 'DirectoryPublication.#stageGeneration', 'takenOverAs'),
    'a killed adoption makes what is there our own': becomes(true, 'isRecorded', 'some 2/2'),
  }),
  ...caught([ownTest('taken-over')], {
    'what was taken over goes where it is published again': without('historyAfter', 'isRepeated'),
    'equal content runs the hooks': becomes(false, 'isKnownToConsumers', '&&'),
  }),
  ...caught([ownTest('adoption')], {
    'a process that writes is no other writer': negate('writersInTree', '&& 1/2', 1),
    'what the new content does not have goes': drop('checkContent', 'length 2/2'),
  }),
]
