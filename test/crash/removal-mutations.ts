import { drop, without, move } from './changes.js'
import { caught, model, ownTest, power, type Mutation } from './mutation.js'

/** Removals of targets. */
export const removals: readonly Mutation[] = [
  ...caught([model('removal', 'power cut')], {
    'content goes before its rename is durable': drop('Removal.#finish', '#sync 1/3'),
    'the record goes before the rest is known to be gone': drop('Removal.#finish', '#sync 2/3'),
    'the removal of the record is not synced': drop('Removal.#finish', '#sync 3/3'),
  }),
  ...caught([model('removal', 'power cut'), power('btrfs', 'removal')], {
    'the record goes before what it tells of': [
      move('Removal.#finish', 'remove', 'clean'),
      move('Removal.#finish', '#sync 3/3', 'clean'),
    ],
  }),
  ...caught([ownTest('interrupted-calls')], {
    'an abort is looked at after the target has left': move('Removal.#takeAway', 'removalAborted', '#finish'),
  }),
  ...caught([ownTest()], {
    'what a removal has renamed counts as durably gone': without('isKnown', '||', 1),
  }),
  ...caught([ownTest('removal-checks')], {
    'nobody looks again whether somebody uses it': drop('Removal.#confirm', '#refuseUsed'),
  }),
  ...caught([ownTest('removal-and-others')], {
    'what is changed in the last instant goes, too': without('Removal.#confirm', '#isAsRead'),
  }),
  ...caught([ownTest('removal-steps')], {
    'whoever goes on with a removal syncs nothing above': drop('Removal.#goOn', '#above'),
    'whoever finds nothing left of a removal syncs nothing above': drop('Removal.#removeLeftovers', '#above'),
  }),
  ...caught([ownTest('removal')], {
    'a copy of a published directory counts as published': drop('refuseChanged', 'changed 2/2'),
  }),
]
