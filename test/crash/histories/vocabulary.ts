/** The operations of histories, and what there is while one is made up. */

/**
 * What a target is to hold; `none`: what was published there is taken away; `earlier`: what it held before, by a rollback; `moved`: what
 * the second of two targets holds, which moves to the first.
 */
export type Content = number | 'none' | 'earlier' | 'moved'

/** One call of the program. */
export interface Publication {
  readonly do: 'publish'
  readonly targets: readonly string[]
  readonly content: Content
  /** As an agent does: what is foreign is left alone. */
  readonly careful: boolean
  /** What somebody else has there is taken over, and kept beside it. */
  readonly adopting?: true
  /** What another program does between the reading and the first rename of the program's own. */
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
  /** What is there comes back from a copy, in new inodes. */
  | OfOne<'restore'>
  /** Another program (a backup) puts there just what a publication had put there, whatever has been published since. */
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
/** Those of other programs: the rest is played by whoever plays the history. */
export type Change = Exclude<Operation, { readonly do: 'sync' | 'reboot' | 'publish' | 'killed' }>

/** What there is, while a history is made up. */
export interface World {
  readonly exists: (path: string) => boolean
  readonly isDirectory: (path: string) => boolean
}
