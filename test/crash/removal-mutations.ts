import { drop, move } from './changes.js'
import { caught, model, ownTest, power, type Mutation } from './mutation.js'

/** Removals of targets. */
export const removals: readonly Mutation[] = [
  ...caught([model('removal', 'power cut'), power('btrfs', 'removal')], {
    'the record goes before what it tells of': [
      move('Removal.#finish', 'remove', 'clean'),
      move('Removal.#finish', '#sync 3/3', 'clean'),
    ],
  }),
  ...caught([ownTest('interrupted-calls')], {
    'an abort is looked at after the target has left': move('Removal.#takeAway', 'removalAborted', '#finish'),
  }),
  ...caught([ownTest('removal-checks')], {
    'nobody looks again whether somebody uses it': drop('Removal.#confirm', '#refuseUsed'),
  }),
  ...caught([ownTest('removal')], {
    'a copy of a published directory counts as published': drop('refuseChanged', 'changed 2/2'),
  }),
]
