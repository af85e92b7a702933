import type { StagedFiles } from './barrier.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'
import { inParallel } from './parallel.js'
import type { DirectoryPlan } from './request.js'
import type { Scope } from './scope.js'
import type { Tree } from './tree.js'
import type { Owner } from './types.js'

/** Files that are written at a time: as many as libuv has threads. */
const writers = 4

/** The labels that staged entries get: the same path's in the old target, else its directory's. */
export class Labels {
  readonly #byPath = new Map<string, Uint8Array>()

  constructor(old: Tree | undefined) {
    for (const { path, label } of old?.entries ?? []) if (label) this.#byPath.set(path, label)
  }

  /** undefined: what the file system lets it inherit. */
  of(path: string): Uint8Array | undefined {
    for (let at = path; ; at = at.slice(0, Math.max(at.lastIndexOf('/'), 0))) {
      const label = this.#byPath.get(at)
      if (label !== undefined || at === '') return label
    }
  }
}

/** With what mode a directory is staged: nobody else may write there yet, and this user always may. */
export function stagingMode(mode: number): number {
  return 0o700 | (mode & 0o755)
}

export interface StagedTree {
  /** The staged directory and its subdirectories, open. */
  readonly directories: readonly Descriptor[]
  readonly root: Attributes
}

/**
 * Writes the plan's files into a directory that is new and empty. Mode, owner and label are set before the fsync: set
 * after it, a power cut can take them back. Everything stays open until the barrier.
 */
export async function stageTree<T>(
  scope: Scope,
  root: Descriptor,
  plan: DirectoryPlan,
  labels: Labels,
  staged: StagedFiles<T>,
  owner: T,
): Promise<StagedTree> {
  const { fs } = scope
  const directories = new Map<string, Descriptor>([['', root]])
  const directoryOf = (path: string): [Descriptor, string] => {
    const cut = path.lastIndexOf('/')
    const parent = directories.get(cut < 0 ? '' : path.slice(0, cut))
    if (parent === undefined) throw new Error(`no directory was staged for ${path}`)
    return [parent, path.slice(cut + 1)]
  }
  for (const path of plan.directories) {
    const [parent, name] = directoryOf(path)
    await fs.createDirectory(parent, name, stagingMode(plan.mode))
    directories.set(path, await scope.keep(fs.openDirectory(parent, name)))
  }
  await inParallel(plan.files, writers, async (file) => {
    const [parent, name] = directoryOf(file.path)
    const descriptor = await staged.create(scope, parent, name)
    await fs.write(descriptor, file.bytes)
    await setMetadata(fs, descriptor, plan.owner, file.mode, labels.of(file.path))
    staged.add(scope, descriptor, owner)
  })
  // Last, so that a mode without write permission is no obstacle to the files.
  for (const [path, descriptor] of directories) {
    await setMetadata(fs, descriptor, plan.owner, plan.mode, labels.of(path))
  }
  return { directories: [...directories.values()], root: await fs.attributes(root) }
}

/** Owner, mode and label; the owner first, since chown(2) takes set-user-ID bits away. */
export async function setMetadata(
  fs: FileSystem,
  descriptor: Descriptor,
  owner: Owner | undefined,
  mode: number,
  label: Uint8Array | undefined,
): Promise<void> {
  const desired = owner ?? fs.user
  // A parent with the set-group-ID bit hands its group down.
  const now = await fs.attributes(descriptor)
  const disowned = now.uid !== desired.uid || now.gid !== desired.gid
  if (disowned) await fs.setOwner(descriptor, desired.uid, desired.gid)
  if (disowned || now.mode !== mode) await fs.setMode(descriptor, mode)
  // Even to set a label that is equal takes the right to relabel (selinux_inode_setxattr).
  if (label && !isEqual(await fs.label(descriptor), label)) await fs.setLabel(descriptor, label)
}

function isEqual(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}
