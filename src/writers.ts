/** Who may write to one part of a path, by its owner and its mode: the rule for all that holdfast obeys as its own user, root for the most. */

/** What lstat(2) or fstat(2) says of a part of a path. */
export interface PathPart {
  readonly path: string
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  readonly uid: number
  readonly gid: number
  /** 0 to 0o7777. */
  readonly mode: number
}

export const writableByAll = 0o002
export const writableByGroup = 0o020
export const sticky = 0o1000

/**
 * Why a user other than root and `self` may write there; undefined: none may. A sticky directory of root's, such as /tmp, lets nobody rename
 * or remove what belongs to another user, so that the owner of each part below it decides. An access list shows in the group's permissions
 * (acl(5)).
 */
export function othersWrite({ path, kind, uid, gid, mode }: PathPart, self: number): string | undefined {
  if (uid !== 0 && uid !== self) return `${path} belongs to user ${uid}`
  if (kind === 'link' || (kind === 'directory' && (mode & sticky) !== 0)) return undefined
  const shown = `(mode 0${mode.toString(8)})`
  if ((mode & writableByAll) !== 0) return `everybody may write to ${path} ${shown}`
  if ((mode & writableByGroup) !== 0) return `group ${gid} may write to ${path} ${shown}`
  return undefined
}
