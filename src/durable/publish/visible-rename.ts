import { failureOf } from '../../errors.js'
import { foreign } from '../errors.js'
import type { Attributes, Descriptor, FileSystem, Mount, RenameMode } from '../file-system.js'
import { renameError } from '../target/index.js'

/** A rename inside one directory that is to make a staged entry visible. */
export interface VisibleRename {
  readonly fs: FileSystem
  readonly directory: Descriptor
  readonly from: string
  readonly to: string
  readonly mode: RenameMode
  readonly staged: Attributes
  /** What an exchange has to take out. */
  readonly old: Attributes | undefined
  /** Called where even a look fails: the new content may then be visible, and the error has to say so. */
  readonly blind: (error: unknown) => void
  /** The target, for people. */
  readonly path: string
  readonly mount: Mount
}

/**
 * Makes it visible. Only the effect of a rename counts, not its answer: on success and on error alike, this checks the names. True where an
 * exchange is known to have taken out the old entry, and no other. Throws where the staged entry is not visible.
 */
export async function makeVisible(rename: VisibleRename): Promise<boolean> {
  const { fs, directory, from, to, mode, staged, old, blind, path, mount } = rename
  const failure = await failureOf(fs.rename(directory, from, directory, to, mode))
  if (old !== undefined && (await isAt(fs, directory, from, old).catch(() => false))) {
    return true
  }
  if (await isVisible(() => isAt(fs, directory, to, staged), blind)) return false
  if (failure !== undefined) throw renameError(path, mount, mode, failure)
  throw foreign(`another program replaced ${path} in the same instant`, path, {
    state: 'holdfast left its content alone',
  })
}

/** Whether this inode has this name. */
export async function isAt(
  fs: FileSystem,
  directory: Descriptor,
  name: string,
  { inode, device }: Attributes,
): Promise<boolean> {
  const now = await fs.look(directory, name)
  return now?.inode === inode && now.device === device
}

export async function isVisible(look: () => Promise<boolean>, blind: VisibleRename['blind']): Promise<boolean> {
  try {
    return await look()
  } catch (error) {
    blind(error)
    return true
  }
}
