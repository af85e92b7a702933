import { failureOf } from '../errors.js'
import type { Attributes, Descriptor, FileSystem, RenameMode } from './file-system.js'

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
}

export interface RenameEffect {
  readonly visible: boolean
  /** The old is where the staged was: the exchange is done, and nobody came between. */
  readonly tookOut: boolean
  readonly failure: Error | undefined
}

/** Only the effect of a rename shows what happened, not its answer: on success and on error alike, this looks. */
export async function renameAndLook(rename: VisibleRename): Promise<RenameEffect> {
  const { fs, directory, from, to, mode, staged, old, blind } = rename
  const failure = await failureOf(fs.rename(directory, from, directory, to, mode))
  if (old !== undefined && (await isAt(fs, directory, from, old).catch(() => false))) {
    return { visible: true, tookOut: true, failure }
  }
  const visible = await isVisible(() => isAt(fs, directory, to, staged), blind)
  return { visible, tookOut: false, failure }
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
