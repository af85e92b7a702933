import { model, type Mutation, mutation, ownTest } from './mutation.js'

const story = model('with history', 'power cut')

/** Earlier contents that stay beside the target. */
export const earlierContents: readonly Mutation[] = [
  mutation(
    'no fsync of the directories that keep an earlier content',
    'history.ts',
    'return [holder, copy]',
    'return []',
    story,
  ),
  mutation('no fsync of the files of an earlier content', 'history.ts', 'staged.add(scope, file, owner)', '', story),
  mutation(
    'earlier contents that no record names stay',
    'clean.ts',
    '...(found.known ? leftovers : [])])',
    '])',
    ownTest('durable/history'),
    model('with history', 'kill'),
  ),
  mutation(
    'earlier contents are forgotten by the next record',
    'history.ts',
    '[...(added ? [added] : []), ...stays]',
    '[...(added ? [added] : [])]',
    ownTest('durable/history'),
  ),
  mutation(
    'the symlink form keeps no earlier content',
    'symlink-publication.ts',
    'return [root, target, ...(await this.#stagePast(target, staged))]',
    'return [root, target]',
    ownTest('durable/history'),
  ),
  mutation(
    'an earlier content counts as whole, whatever it holds',
    'past.ts',
    'if (found.digest === digest) return',
    'if (digest) return',
    ownTest('durable/history'),
  ),
  mutation(
    'the removal of earlier contents is not synced',
    'past.ts',
    'const [failure] = await fs.sync([parent])',
    'const failure = undefined as Error | undefined',
    ownTest('durable/history'),
  ),
  mutation(
    'what was made from an object that is gone stays',
    'history.ts',
    '.filter(({ objects }) => !objects.some((object) => gone.has(keyOf(object))))',
    '',
    ownTest('durable/history'),
  ),
  mutation(
    'a rollback is undone by whoever publishes next',
    'publication.ts',
    'if (!isRepeated(found, this.desired)) refusePinned(path, this.desired.digest, found, this.options, fs.now())',
    '',
    ownTest('durable/rollback'),
  ),
  mutation(
    'an earlier content is published whatever it holds',
    'rollback.ts',
    'if (!(await isWhole(fs, request, content, generation))) throw damaged(target, generation)',
    '',
    ownTest('durable/rollback'),
  ),
  mutation('a hold forgets a pin', 'hold.ts', 'pin: hold && record.pin', 'pin: undefined', ownTest('durable/rollback')),
]
