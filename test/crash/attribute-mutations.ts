import { without, becomes, keep, move, postpone } from './changes.js'
import { caught, histories, model, ownTest, ownTestOfRoot, type Mutation } from './mutation.js'

/** ACLs and user attributes, and in which order they are set. */
export const attributes: readonly Mutation[] = [
  ...caught([model('ACLs', 'power cut'), ownTestOfRoot(), histories], {
    'ACLs and user attributes are not kept': becomes(undefined, 'KeptAttributes.of', 'withMode'),
    'a mask is read as the mode': keep('modeOf', 'modeByList', 1),
  }),
  ...caught([model('ACLs', 'power cut'), ownTestOfRoot('kept-attributes')], {
    'the ACL before the mode': move('setMetadata', 'setExtended 2/2', 'attributes'),
  }),
  ...caught([model('ACLs', 'power cut')], {
    'the ACL after the fsync': postpone(['setMetadata', 'setExtended 2/2'], ['publishTogether', 'swap']),
  }),
  ...caught([ownTest(), model('ACLs', 'chain')], {
    "a former owner's ACLs are kept": becomes(true, 'trust', '=== 5/6'),
  }),
  ...caught([ownTest()], {
    "a first maker's ACLs are kept": becomes(true, 'trust', '=== 6/6'),
  }),
  ...caught([ownTest('staged-metadata')], {
    "another user's mode is kept": becomes(true, 'PlannedTree.keep', '? 2/3', 0),
    "another user's ACL stays where the content is equal": becomes(true, 'TargetPublication.#decide', '=== 1/2'),
  }),
  ...caught([ownTest('attribute-changes')], {
    'a change of attributes is not reported': keep('reportAttributes', 'return 2/3'),
    'a change of attributes is reported each time': becomes(undefined, 'recordNews', 'amend'),
  }),
  ...caught([ownTest('keep-attributes')], {
    'a mode that an administrator set is drift': becomes(undefined, 'describes', 'true'),
    'a set-user-ID bit is kept': keep('keptMode', 'return'),
  }),
  ...caught([ownTestOfRoot()], {
    'what is inherited from above stays': without('disinherit', 'keys'),
    'user attributes after the mode': keep('setExtended', '==='),
  }),
]
