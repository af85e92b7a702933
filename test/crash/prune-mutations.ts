import { compound, model, type Mutation, mutation } from './mutation.js'

const prune = '/src/static-pods/prune/prune.ts'
const story = (only: string) => model(`static pod: ${only}`)

/** What prune removes, and the links and files that are replaced and removed beside the revisions. */
export const prunes: readonly Mutation[] = [
  mutation(
    'prune: no lock',
    prune,
    'await disk.lock(join(resourceDirectory, operationLockName(pod)), lockTimeout, signal)',
    '{ release: () => Promise.resolve() }',
    story('install meets prune'),
  ),
  compound(
    'prune: files go before the renames are durable',
    [[prune, '  await syncRemovals(disk, directory, resourceDirectory)\n  if (leftovers', '  if (leftovers']],
    story('prune'),
  ),
  mutation(
    'prune: no fsync where a predecessor has removed all',
    prune,
    '  await syncRemovals(disk, directory, resourceDirectory)\n  if (leftovers.length === 0) return',
    '  if (leftovers.length > 0) await disk.syncDirectory(directory)\n  if (leftovers.length === 0) return',
    story('prune'),
  ),
  mutation(
    'prune: no fsync after the removal',
    prune,
    '  // So that old private keys do not come back.\n  await syncRemovals(disk, directory, resourceDirectory)\n',
    '',
    story('prune'),
  ),
  mutation(
    'prune: what names a revision is not synced',
    prune,
    "if (lines.some(({ outcome }) => outcome === 'removed')) await syncVerdicts(request, disk)",
    '',
    story('prune, after another program has replaced the live manifest'),
  ),
  mutation(
    'prune: the links are not synced',
    prune,
    '    await disk.syncNames(resourceDirectory)\n',
    '',
    story('prune, after another program has replaced the link'),
  ),
  mutation(
    'the names of a directory: no fsync of it',
    'disk/operations.ts',
    'const open = [place.anchor, ...(await openAncestors(scope, place, place.anchor))]',
    'const open = await openAncestors(scope, place, place.anchor)',
    story('prune, after another program has replaced the live manifest'),
  ),
  mutation(
    'the names of a directory: no fsync of what is above it',
    'disk/operations.ts',
    'const open = [place.anchor, ...(await openAncestors(scope, place, place.anchor))]',
    'const open = [place.anchor]',
    story('prune, below a directory that another program has moved'),
  ),
  mutation(
    'the names of a directory: no fsync of its files',
    'disk/operations.ts',
    "if (found?.type === 'file') open.push(await scope.keep(this.fs.openFile(anchor, last)))",
    '',
    story('prune, after another program has written the live manifest'),
  ),
  mutation(
    'the names of a directory: no fsync of what its links lead to',
    'disk/operations.ts',
    'for (const on of places.slice(1)) {',
    'for (const on of places.slice(2)) {',
    story('prune, after another program has replaced what the live manifest leads to'),
  ),
  mutation(
    'a link: no fsync of what is above it',
    'disk/operations.ts',
    '      await fsyncAll(this.fs, [parent, ...ancestors])\n      await probe',
    '      await fsyncAll(this.fs, [parent])\n      await probe',
    story('link, below a directory that another program has moved'),
  ),
  mutation(
    'removal of a file: no fsync of what is above it',
    'disk/operations.ts',
    '      visible()\n      await fsyncAll(this.fs, [parent, ...ancestors])\n    })\n    return removed',
    '      visible()\n      await fsyncAll(this.fs, [parent])\n    })\n    return removed',
    story('removal of a manifest, below a directory that another program has moved'),
  ),
  mutation(
    'prune: the last known good revision goes, too',
    prune,
    'byLink(links.get(revision)) ??',
    '',
    story('prune'),
  ),
  mutation(
    'removal of a file: no fsync',
    'disk/operations.ts',
    '      visible()\n      await fsyncAll(this.fs, [parent, ...ancestors])\n    })\n    return removed',
    '      visible()\n    })\n    return removed',
    story('monitor, ready'),
  ),
  mutation(
    'removal of a file: no fsync where a predecessor has removed it',
    'disk/operations.ts',
    '      visible()\n      await fsyncAll(this.fs, [parent, ...ancestors])\n    })\n    return removed',
    '      visible()\n      if (removed) await fsyncAll(this.fs, [parent, ...ancestors])\n    })\n    return removed',
    story('monitor, ready'),
  ),
]
