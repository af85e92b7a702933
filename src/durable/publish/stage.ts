import { nameOf, parentOf } from '../../relative-path.js'
import {
  type StagedEntries,
  attributesDigest,
  KeptAttributes,
  nearest,
  withLists,
  inTree,
  type Metadata,
  setMetadata,
  type Scope,
  type Tree,
} from '../path/index.js'
import type { PlannedContent } from './content.js'
import type { Attributes, Descriptor, ExtendedAttributes, FileSystem } from '../file-system.js'
import { inParallel } from '../../parallel.js'
import type { PlannedFile, PlannedHead, PlannedTree } from './planned-tree.js'
import type { DirectoryPlan } from './request.js'

/** The labels that staged entries get: the same path's in the old target, else its directory's. */
class InheritedLabels {
  readonly #byPath = new Map<string, Uint8Array>()

  constructor(old: Tree | undefined) {
    for (const { path, label } of old?.entries ?? []) if (label) this.#byPath.set(path, label)
  }

  /** undefined: what the file system lets it inherit. */
  of(path: string): Uint8Array | undefined {
    return this.#byPath.size === 0 ? undefined : nearest(path, (at) => this.#byPath.get(at))
  }
}

/** What staged entries get of the old content's metadata. */
export class OldMetadata {
  readonly #labels: InheritedLabels
  readonly #kept: KeptAttributes

  /** `inherited`: the default ACL of the directory in which the target is new. `own`: of entries that have ACLs of their own. */
  constructor(
    old: Tree | undefined,
    inherited: Uint8Array | undefined,
    private readonly own?: DirectoryPlan['entries'],
  ) {
    this.#labels = new InheritedLabels(old)
    this.#kept = new KeptAttributes(old?.entries ?? [], inherited)
  }

  of(path: string, type: 'file' | 'directory', mode: number): Pick<Metadata, 'path' | 'label' | 'extended'> {
    return { path, label: this.#labels.of(path), extended: this.#extendedOf(path, type, mode) }
  }

  #extendedOf(path: string, type: 'file' | 'directory', mode: number): ExtendedAttributes | undefined {
    const kept = this.#kept.of(path, type, mode)
    return this.own === undefined ? kept : withLists(kept, this.own.get(path)?.lists)
  }

  /** Of the ACLs and user attributes that the entries of new content get; null where none gets any. */
  digest(entries: readonly PlannedHead[]): string | null {
    return attributesDigest(
      entries.map(({ path, type, mode }) => ({ path, extended: this.#extendedOf(path, type, mode) })),
    )
  }
}

/** The mode of a staged directory: no other user may write there yet, and this user always may. */
export function stagingMode(mode: number): number {
  return 0o700 | (mode & 0o755)
}

/**
 * Writes the plan's files into a directory that is new and empty, and that the caller syncs; files and subdirectories are handed over
 * to `staged`. Mode, owner, label and attributes are set before the fsync: set after it, a power cut can take them back. A subdirectory may be
 * closed and opened again until then: unlike a file's, its failed write-out stops the file system.
 */
export async function stageTree<T>(
  scope: Scope,
  root: Descriptor,
  metadata: OldMetadata,
  staged: StagedEntries<T>,
  owner: T & { readonly plan: DirectoryPlan; readonly planned: PlannedTree },
): Promise<Attributes> {
  const { fs } = scope
  const { plan, planned } = owner
  const metadataOf = ({ path, mode, owner }: PlannedTree['root'], type: 'file' | 'directory'): Metadata => {
    return { target: plan.inPlaceOf ?? plan.target, mode, owner, ...metadata.of(path, type, mode) }
  }
  return inTree(fs, root, async (directories) => {
    for (const { path, mode } of planned.directories) {
      const make = (parent: Descriptor): Promise<void> => fs.createDirectory(parent, nameOf(path), stagingMode(mode))
      await directories.use(parentOf(path), make)
    }
    await stageFiles(fs, planned, async (file, write) => {
      const create = (parent: Descriptor): Promise<Descriptor> => staged.create(scope, parent, nameOf(file.path))
      const descriptor = await directories.use(parentOf(file.path), create)
      await write(descriptor)
      await setMetadata(fs, descriptor, metadataOf(file, 'file'))
      staged.add(scope, descriptor, owner)
    })
    // Last, so that a mode without write permission is no obstacle to the files; the deepest first, since they are reached through the others.
    for (const directory of planned.directories.reverse()) {
      const descriptor = await scope.keep(directories.take(directory.path))
      await setMetadata(fs, descriptor, metadataOf(directory, 'directory'))
      await staged.addDirectory(scope, descriptor, owner)
    }
    return setMetadata(fs, root, metadataOf(planned.root, 'directory'))
  })
}

/** Calls `stage` for each file; that makes it, new and empty, and calls `write`. Reads an unread plan meanwhile, in the digest's order. */
export async function stageFiles(
  fs: FileSystem,
  planned: PlannedTree,
  stage: (file: PlannedFile, write: (file: Descriptor) => Promise<void>) => Promise<void>,
): Promise<void> {
  // The file that this call writes is open beside the staged ones.
  if (planned.isRead)
    await inParallel(planned.files, Math.min(fs.callsAtATime, fs.stagedFiles), (file) =>
      stage(file, (descriptor) => writeContent(fs, descriptor, file.content)),
    )
  else await planned.read((file, read) => stage(file, (descriptor) => read((bytes) => fs.write(descriptor, bytes))))
}

async function writeContent(fs: FileSystem, file: Descriptor, content: PlannedContent): Promise<void> {
  if (content instanceof Uint8Array) return fs.write(file, content)
  for await (const piece of content.pieces()) await fs.write(file, piece)
}
