import { type Mutation, mutation, ownTest } from './mutation.js'

/** Somebody examines what is staged. */
export const examinations: readonly Mutation[] = [
  mutation(
    'what examines the content may change it',
    'examine.ts',
    'if (differing === undefined) return',
    'if (differing === undefined || path !== differing) return',
    ownTest('durable/examine'),
  ),
  mutation(
    'new content is not examined',
    'publish.ts',
    "    await each(going(), 'could not examine', (publication) =>\n      abortable(publication, signal, () => publication.examine()),\n    )\n\n    // 5. Barrier 1.",
    '    // 5. Barrier 1.',
    ownTest('durable/examine'),
  ),
  mutation(
    'content that was rejected is staged again',
    'publication.ts',
    'this.options.check?.accepts(this.desired.digest)',
    '',
    ownTest('durable/examine'),
  ),
]
