import { drop, becomes, keep, quoted } from './changes.js'
import { caught, ownTest, type Mutation } from './mutation.js'

/** A directory that moves to another path. */
export const relocations: readonly Mutation[] = [
  ...caught([ownTest('relocation')], {
    'the old path gets what is not known to be durable at the new one': [
      becomes(true, 'readPublishedContent', 'durable'),
      keep('Move.#begin', 'trusted', 0),
    ],
    'a publication forgets how far a relocation has come': keep('movesAfter', '? 2/2', 2),
  }),
  ...caught([ownTest()], {
    'an old path that is in use goes': drop('Move.follow', 'undefined 3/3'),
    'an old path goes at once': becomes(false, 'Move.follow', '<'),
    'the removal of the old path is not recorded before it begins': quoted(
      'Move.follow',
      ": { next: 'draining' }",
      ': await this.drain()',
    ),
    'an old path that was taken back goes': keep('Move.#whereItWent', 'undefined 2/2'),
    'a disk that is not mounted counts as an old path that is gone': becomes(true, 'Move.#whereItWent', 3, 0),
    "somebody else's directory counts as one that is not there": drop('Move.claim', 'isThere'),
    'a move is over while the new path is empty': drop('Move.#end', '#contentOfNew'),
  }),
  ...caught([ownTest('relocation-guards')], {
    'an old path goes while the new one is not whole': drop('Move.drain', '#contentOfNew'),
    'a directory moves to itself by another name': drop('Move.run', 'refuseSame'),
  }),
  ...caught([ownTest('quarantine-claims')], {
    'what has the number of a link that was replaced is taken for it': keep('proven', '?', 2),
    'a file that has the number of an old content is taken for it': becomes('file', 'quarantineForeign', "'directory'"),
  }),
]
