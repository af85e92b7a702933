import { move } from './changes.js'
import { caught, model, ownTest, power, type Mutation } from './mutation.js'

/** Removals of targets. */
export const removals: readonly Mutation[] = [
  ...caught([model('removal', 'power cut'), power('btrfs', 'removal')], {
    'the record goes before what it tells of': [
      move('Removal.#finish', 'remove', 'clean'),
      move('Removal.#finish', '#sync 2/2', 'clean'),
    ],
  }),
  ...caught([ownTest('interrupted-calls')], {
    'an abort is looked at after the target has left': move('Removal.#takeAway', 'removalAborted', '#finish'),
  }),
]
