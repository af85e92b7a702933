import { type Mutation, mutation, ownTest } from './mutation.js'

/** Somebody examines what is staged. */
export const examinations: readonly Mutation[] = [
  mutation(
    'what examines the content may change it',
    'publish/examine.ts',
    'if (differing === undefined) return',
    'if (differing === undefined || path !== differing) return',
    ownTest('durable/publish/examine'),
  ),
  mutation(
    'new content is not examined',
    'publish/publish.ts',
    "    await each(going(), 'could not examine', (publication) =>\n      abortable(publication, signal, () => publication.examine()),\n    )\n\n    // 5. Barrier 1.",
    '    // 5. Barrier 1.',
    ownTest('durable/publish/examine'),
  ),
  mutation(
    'content that was rejected is staged again',
    'publish/publication.ts',
    'this.options.check?.accepts(this.desired.digest)',
    '',
    ownTest('durable/publish/examine'),
  ),
]
