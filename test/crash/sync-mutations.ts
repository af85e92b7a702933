import { type Mutation, mutation } from './mutation.js'

const pending = '[...directories, this.parent.directory, ...this.parent.made, ...ancestors]'

/** Each fsync, in the order in which they come. */
export const syncs: readonly Mutation[] = [
  mutation('fsync of no file', 'publish.ts', '[...files, ...directories]', '[...directories]'),
  mutation('no fsync of the content', 'stage.ts', 'staged.add(scope, descriptor, owner)', ''),
  mutation('no fsync of the staged file', 'file-publication.ts', 'staged.add(this.scope, file, this)', ''),
  mutation('no fsync of the record', 'publication.ts', 'staged.add(this.scope, file, this, true)', ''),
  mutation(
    'no fsync of the staged directory',
    'stage.ts',
    '[...directories.values()]',
    '[...directories.values()].slice(1)',
  ),
  mutation(
    'no fsync of subdirectories',
    'stage.ts',
    '[...directories.values()]',
    '[...directories.values()].slice(0, 1)',
  ),
  mutation(
    'no fsync of the parent before',
    'publication.ts',
    pending,
    pending.replace('this.parent.directory, ', ''),
  ),
  mutation(
    'no fsync of ancestors that were there',
    'publication.ts',
    pending,
    pending.replace(', ...ancestors', ''),
  ),
  mutation(
    'no fsync of ancestors that were made',
    'publication.ts',
    pending,
    pending.replace('...this.parent.made, ', ''),
    // Ancestors that are there include them: this one is there twice.
    [],
  ),
  mutation('no fsync of any ancestor', 'publication.ts', pending, '[...directories, this.parent.directory]'),
  mutation(
    'no fsync of the target of links before',
    'symlink-publication.ts',
    '[...tree.directories, target]',
    'tree.directories.slice()',
  ),
  mutation(
    'no fsync after the exchange',
    'publish.ts',
    'await secondBarrier(visible)',
    'await secondBarrier(visible.slice(visible.length))',
  ),
  mutation(
    'no fsync of new links',
    'symlink-publication.ts',
    'if (readorned || missing.length + stale.length > 0)',
    'if (readorned)',
  ),
]
