import { outlast } from '../../change-times.js'
import { DurableWriteError, leftAsItWas } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import type { ContentCheck } from '../types.js'
import { entriesBelow, inTree } from '../path/index.js'

/** The staged content of a directory. */
export interface StagedDirectory {
  /** Relative to the target's parent. */
  readonly path: string
  readonly descriptor: Descriptor
}

/** Whose content it is. */
interface Examined {
  readonly fs: FileSystem
  readonly path: string
  readonly site: { readonly realPath: string }
}

/**
 * Has the check examine the staged content, and refuses content that differs afterwards: a check decides whether content becomes visible,
 * and must not change it. Compares names, inodes and the times of their last changes, so that a reverted change counts, too.
 */
export async function examineStaged(
  { fs, path: target, site }: Examined,
  { path, descriptor: root }: StagedDirectory,
  digest: string,
  check: ContentCheck,
): Promise<void> {
  const before = await stateBelow(fs, root)
  const newest = [...before.values()].reduce((latest, { changed }) => (changed > latest ? changed : latest), 0n)
  // A change right after the staging would have the staging's own time.
  await outlast(newest, fs.now())
  const { realPath } = site
  const parent = realPath.slice(0, realPath.lastIndexOf('/'))
  await check.examine({ directory: `${parent}/${path}`, target: realPath, digest })
  const after = await stateBelow(fs, root)
  const differing = [...new Set([...before.keys(), ...after.keys()])].find(
    (path) => !isUnchanged(before.get(path), after.get(path)),
  )
  if (differing === undefined) return
  const place = differing === '' ? 'the directory itself' : JSON.stringify(differing)
  throw new DurableWriteError(`what examined the new content of ${target} has changed it: ${place}`, {
    code: 'EINVAL',
    syscall: 'none',
    path: target,
    reason: 'ContentRejected',
    state: leftAsItWas(target),
    advice: 'let it read, and write elsewhere',
  })
}

async function stateBelow(fs: FileSystem, root: Descriptor): Promise<Map<string, Attributes>> {
  const found = new Map([['', await fs.attributes(root)]])
  await inTree(fs, root, async (directories) => {
    for await (const { path } of entriesBelow(directories)) {
      const attributes = await directories.look(path)
      if (attributes !== undefined) found.set(path, attributes)
    }
  })
  return found
}

function isUnchanged(before: Attributes | undefined, after: Attributes | undefined): boolean {
  if (before === undefined || after === undefined) return false
  const { device, inode, changed, size } = before
  return after.device === device && after.inode === inode && after.changed === changed && after.size === size
}
