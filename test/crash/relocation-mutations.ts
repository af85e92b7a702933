import { compound, model, type Mutation, mutation, ownTest } from './mutation.js'

const own = ownTest('durable/move/relocation')
const guards = ownTest('durable/relocation-guards')
const links = ownTest('durable/left-links')
const claims = ownTest('durable/quarantine-claims')
const story = model('relocation', 'power cut')

/** A directory that moves to another path. */
export const relocations: readonly Mutation[] = [
  compound(
    'the old path gets what is not known to be durable at the new one',
    [
      ['look/published-content.ts', 'seen?.state.durable === true', 'seen !== undefined'],
      ['move/relocation.ts', 'if (!record?.trusted) return', 'if (!record) return'],
    ],
    own,
  ),
  mutation(
    'what changed at the new path while it was read is published at the old one',
    'look/published-content.ts',
    "hash('sha256', content) !== sha256",
    'sha256 === undefined',
    own,
  ),
  mutation(
    'an old path that is in use goes',
    'move/relocation.ts',
    'if (user !== undefined) return { waits: `${from} is in use: ${user}` }',
    '',
    own,
  ),
  mutation(
    'an old path goes at once',
    'move/relocation.ts',
    'return fs.now() < end ? { waits: `${from} stays',
    'return fs.now() < since ? { waits: `${from} stays',
    own,
  ),
  mutation(
    'the removal of the old path is not recorded before it begins',
    'move/relocation.ts',
    ": { next: 'draining' }",
    ': await this.drain()',
    own,
  ),
  mutation(
    'an old path that was taken back goes',
    'move/relocation.ts',
    "if (record !== undefined) return record.movedTo === this.to ? undefined : { next: 'staged' }",
    'if (record !== undefined) return undefined',
    own,
  ),
  mutation(
    'a disk that is not mounted counts as an old path that is gone',
    'move/relocation.ts',
    'const isKnown = await isThere(fs, from, namesFor(basename(from)).lock)',
    'const isKnown = true as boolean',
    own,
  ),
  mutation(
    "somebody else's directory counts as one that is not there",
    'move/relocation.ts',
    'if (await isThere(fs, from, basename(from))) throw notOurs(from, to)',
    '',
    own,
  ),
  mutation(
    'a publication forgets how far a relocation has come',
    'publish/new-record.ts',
    'const relocation = goesOn ? before?.relocation : asked',
    'const relocation = asked',
    own,
  ),
  mutation(
    'the old path follows no more',
    'move/relocation.ts',
    'this.#result = await this.#publishOld(content)',
    '',
    own,
    story,
  ),
  mutation(
    'an old path goes while the new one is not whole',
    'move/relocation.ts',
    "if ((await this.#contentOfNew()) === undefined) return { next: 'both', waits: notWhole(to) }",
    '',
    guards,
  ),
  mutation(
    'what is published for its own sake in the last instant goes',
    'move/relocation.ts',
    "if (movedTo !== to) throw new NotNow(from, { next: 'staged' })",
    '',
    guards,
  ),
  mutation(
    'a move that 0.2.0 has begun, to leave a link, is not read',
    'types.ts',
    "relocationForms = ['removed', 'link']",
    "relocationForms = ['removed']",
    links,
  ),
  mutation(
    'a removal does not go on where 0.2.0 has left a link',
    'remove/removal.ts',
    "(entry.type === 'symlink' && record.removing !== undefined)",
    'false',
    links,
  ),
  mutation(
    'what has the number of a link of 0.2.0 is taken for it',
    'keep/quarantine.ts',
    "if (removing?.link !== undefined) return { ...staging, staged: 'none' }",
    '',
    links,
    claims,
  ),
  mutation(
    'what has the number of a link that was replaced is taken for it',
    'keep/quarantine.ts',
    "? { ...staging, old: 'none' } : staging",
    '? staging : staging',
    claims,
  ),
  mutation(
    'a file that has the number of an old content is taken for it',
    'keep/quarantine.ts',
    "found?.type === 'directory' && found.inode.toString() === inodes?.old",
    'found?.inode.toString() === inodes?.old',
    claims,
  ),
  mutation(
    'a directory moves to itself by another name',
    'move/relocation.ts',
    "if (relocation.state !== 'done') await refuseSame(this.fs, this.to, this.options)",
    '',
    guards,
  ),
]
