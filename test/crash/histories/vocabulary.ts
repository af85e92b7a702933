/** The operations of histories, and the world while a generator makes one up. */

/**
 * The desired content of a target; `none`: its removal; `earlier`: an earlier content, by a rollback; `moved`: the content of the second of
 * two targets, which moves to the first.
 */
export type Content = number | 'none' | 'earlier' | 'moved'

/** One call of the program. */
export interface Publication {
  readonly do: 'publish'
  readonly targets: readonly string[]
  readonly content: Content
  /** As an agent does: leaves foreign content alone. */
  readonly careful: boolean
  /** Takes another program's content over, and keeps it beside the target. */
  readonly adopting?: true
  /** Another program's change between the reading and the program's first rename. */
  readonly meanwhile?: Meanwhile
}

export type Meanwhile = OfTwo<'rename'> | (OfOne<'write'> & { readonly text: string })

export interface OfTwo<Name extends string> {
  readonly do: Name
  readonly from: string
  readonly to: string
}

export interface OfOne<Name extends string> {
  readonly do: Name
  readonly path: string
}

export type Operation =
  | OfTwo<'rename'>
  | OfTwo<'link'>
  | OfTwo<'copy'>
  | OfTwo<'symlink'>
  /** A bind mount of `from`. */
  | OfTwo<'mount'>
  | OfOne<'remove'>
  | OfOne<'mkdir'>
  | OfOne<'chown'>
  | OfOne<'unmount'>
  /** The entry comes back from a copy, in new inodes. */
  | OfOne<'restore'>
  /** Another program (a backup) puts the files of an earlier publication there. */
  | (OfOne<'recall'> & { readonly content: number })
  | (OfOne<'write'> & { readonly text: string })
  | (OfOne<'chmod'> & { readonly mode: number })
  /** An access list for a user; `inherited`: the default of what will be made there. */
  | (OfOne<'setfacl'> & { readonly inherited: boolean })
  | { readonly do: 'sync' }
  | { readonly do: 'reboot' }
  | Publication
  /** The program, killed before a call of the FileSystem interface. */
  | { readonly do: 'killed'; readonly publication: Publication; readonly before: number }

export type Kind = Operation['do']
export type Of<Name extends Kind> = Extract<Operation, { readonly do: Name }>
/** Those of other programs: the player of the history does the rest. */
export type Change = Exclude<Operation, { readonly do: 'sync' | 'reboot' | 'publish' | 'killed' }>

/** The entries of the disk while a generator makes a history up. */
export interface World {
  readonly exists: (path: string) => boolean
  readonly isDirectory: (path: string) => boolean
}
