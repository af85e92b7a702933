import { drop, keep } from './changes.js'
import { caught, ownTest, type Mutation } from './mutation.js'

/** A check examines the staged content. */
export const examinations: readonly Mutation[] = [
  ...caught([ownTest()], {
    'what examines the content may change it': keep('examineStaged', 'return'),
  }),
  ...caught([ownTest('examine')], {
    'new content is not examined': drop('publish', 'examine'),
    'content that was rejected is staged again': drop('TargetPublication.stage', 'accepts'),
  }),
]
