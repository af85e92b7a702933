import { model, type Mutation, mutation, ownTest, power } from './mutation.js'

const story = model('removal', 'power cut')
const own = ownTest('durable/remove/removal')

/** What was published is taken away: see src/durable/remove/removal.ts. */
export const removals: readonly Mutation[] = [
  mutation(
    'content goes before its rename is durable',
    'remove/removal.ts',
    'await this.#sync()\n    await probeJournal(fs, this.#parent, this.#names)',
    'await probeJournal(fs, this.#parent, this.#names)',
    story,
  ),
  mutation(
    'the record goes before the rest is known to be gone',
    'remove/removal.ts',
    'left, failures[0])\n    await this.#sync()',
    'left, failures[0])',
    story,
  ),
  mutation(
    'the record goes before what it tells of',
    'remove/removal.ts',
    '...generations, ...records]',
    '...generations]\n    const told = last ? [...records, this.#names.record(last.sequence)] : records\n' +
      '    await clean(this.#area, told)\n    await this.#sync()',
    story,
    power('btrfs', 'removal'),
  ),
  mutation(
    'the removal of the record is not synced',
    'remove/removal.ts',
    'this.#names.record(last.sequence))\n    await this.#sync()',
    'this.#names.record(last.sequence))',
    story,
  ),
  mutation(
    'what a removal has renamed counts as durably gone',
    'record/judge.ts',
    '(exists || valid.some(({ removing }) => removing))',
    'exists',
    // On the model disk it takes two kills and a power cut, each at the right instant: drawn by luck.
    ownTest('durable/record/judge'),
  ),
  mutation(
    'nobody looks again whether somebody uses it',
    'remove/removal.ts',
    'if (isIt) await this.#refuseUsed(staging)',
    '',
    own,
  ),
  mutation(
    'what is changed in the last instant goes, too',
    'remove/removal.ts',
    '!isIt || !(await this.#isAsRead(staging, present))',
    '!isIt',
    own,
  ),
  mutation(
    'a copy of a published directory counts as published',
    'remove/removal-errors.ts',
    "if (!isOwn) throw changed(path, 'its record is of another one, as after a copy or a restored backup')",
    '',
    own,
  ),
  mutation(
    'whoever goes on with a removal syncs nothing above',
    'remove/removal.ts',
    '    const { fs, path } = this\n    this.#above = await this.#site.ancestors()\n',
    '    const { fs, path } = this\n',
    own,
  ),
  mutation(
    'whoever finds nothing left of a removal syncs nothing above',
    'remove/removal.ts',
    '    this.#above = await this.#site.ancestors()\n    if (!exists)',
    '    if (!exists)',
    own,
  ),
]
