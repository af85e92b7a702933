import { drop, without, becomes, answers, keep, quoted } from './changes.js'
import { caught, histories, model, ownTest, type Mutation } from './mutation.js'
import { earlierContents } from './history-mutations.js'
import { removals } from './removal-mutations.js'
import { relocations } from './relocation-mutations.js'

/** Where names, mounts and copies around the target move, and what stays of the past. */
export const places: readonly Mutation[] = [
  ...caught([ownTest('operator/hold')], {
    'a held target is published all the same': drop('TargetPublication.#decide', 'refuseHeld'),
    'a hold forgets what was added to the record': without('recordBody', 'hooks'),
  }),
  ...caught([ownTest(), model('somebody uses', 'power cut')], {
    'what somebody uses is removed': becomes(true, 'isOver', '==='),
  }),
  ...caught([ownTest('retired')], {
    'what somebody uses is forgotten by the next record': without('TargetPublication.#stageRecord', '?? 3/3'),
    'old content that a power cut may bring back is removed': keep('makeRoom', '? 1/3', 1),
    'old content is asked for by its path alone': becomes(false, 'isOf', 'has'),
  }),
  ...caught([ownTest('posix/holdings')], {
    'who begins while users are looked for is not seen': becomes(1, 'holdingsOn', 'mostRounds'),
  }),
  ...caught([ownTest()], {
    'all that is in old content goes with it': quoted(
      'removeTree',
      'removeEntries(fs, opened, entries)',
      "(await import('../path/index.js')).remove(fs, parent, name)",
    ),
    'old content that could not be removed is forgotten': answers(true, 'removeUnused', 'isRemoved'),
  }),
  ...caught([model('somebody uses')], {
    'what staging holds counts as old content, whatever it is': becomes(true, 'findRetired', '==='),
  }),
  ...caught([ownTest('place'), histories], {
    'ancestors are synced only the first time': quoted(
      'TargetPublication.stage',
      'await this.site.ancestors()',
      'this.found?.current?.trusted === true ? [] : await this.site.ancestors()',
    ),
    'a moved directory is unchanged at once': drop('TargetPublication.prepare', 'moved'),
    'a new place is recorded, and only the parent synced': without('TargetPublication.#recordPlace', 'ancestors'),
    'the path is not found again': drop('publishTogether', 'confirm'),
    'what holds a link on the way is not synced': drop('openAncestors', 'linksIn'),
  }),
  ...caught([ownTest(), histories], {
    'a record is believed wherever it stands': becomes(true, 'isOfThis', '&& 2/2'),
    'a record is believed for any target in its parent': without('isOfThis', 'isSame 2/2'),
  }),
  ...caught([ownTest('names-and-limits')], {
    'a removed lock is as good as another': becomes(true, 'lockOnce', 'links'),
    'a record of a newer version is damaged': becomes(false, 'readRecords', 'isOfOtherVersion'),
  }),
  ...caught([ownTest('record-fuzz')], {
    'the fields of a record are not looked at': becomes(true, 'isBody', 'every'),
  }),
  ...caught([ownTest('added-meanwhile')], {
    'the old content is removed, whoever changed it': drop('DirectoryPublication.removeOldContent', '#isForeign'),
  }),
  ...earlierContents,
  ...removals,
  ...relocations,
]
