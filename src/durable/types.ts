import type { Log } from '../log.js'

export interface Owner {
  uid: number
  gid: number
}

/** A regular file whose content is published: read in pieces, and refused where another program changes it meanwhile. */
export interface FilePath {
  path: string
  /** Also through a symbolic link in the last part; default true. */
  follow?: boolean | undefined
}

/**
 * A string (as UTF-8), bytes, a file, or a stream: of Node, of the web, or any other asynchronous iterable of strings or bytes. A stream is
 * read to its end before anything is made; what of it is larger than 1 MiB is kept in an unnamed file beside the target meanwhile.
 */
export type FileContent = string | Uint8Array | FilePath | AsyncIterable<string | Uint8Array>

export interface ReplaceDirectoryOptions {
  /**
   * Relative path to content ('tls.crt', 'secrets/serving/tls.key'). '.', '..', empty parts, a leading or trailing '/',
   * NUL, and a name that is both file and directory are refused.
   */
  files: Record<string, FileContent | { content: FileContent; mode?: number | undefined }>
  /** Mode of the target and of new subdirectories; default 0o755. */
  mode?: number | undefined
  /** Mode of files that name none; default 0o600. */
  fileMode?: number | undefined
  /** Default: the effective user and group of this process. */
  owner?: Owner | undefined
}

export interface ReplaceFileOptions {
  /** Default 0o600. */
  mode?: number | undefined
  owner?: Owner | undefined
}

export type Outcome = 'created' | 'replaced' | 'unchanged'

export interface ReplaceResult {
  outcome: Outcome
  path: string
  /** `sha256:…` over the entries: see digest.ts. */
  digest: string
  /**
   * Present where content that was intact already was published again, only to make it durable: the hooks that are still to run for it,
   * instead of those that were asked for.
   */
  pendingHooks?: string[]
  /** Present and true where the file system is not one on which durability is proven. */
  unproven?: true
}

/** An operator's word that a target stays as it is: see hold.ts. */
export interface Hold {
  /** Empty where none was given. */
  reason: string
  /** Milliseconds since the epoch. */
  since: number
  /** The same, of its end; null: until it is released. */
  until: number | null
}

/**
 * Why content was published; `driftRepaired`: it was published before, and somebody had changed it; `rolledBack`: an operator has chosen
 * an earlier one; `adopted`: somebody else's, which holdfast has taken over.
 */
export type Cause = 'published' | 'driftRepaired' | 'rolledBack' | 'adopted'

/** An operator's word that an earlier content stays, although there is a newer one: see rollback.ts. */
export interface Pin {
  /** Empty where none was given. */
  reason: string
  /** Milliseconds since the epoch. */
  since: number
  /** `newer`: until an object is newer than `from`, is gone, or is another one; `released`: until it is released; or the time of its end. */
  until: 'newer' | 'released' | number
  /** What was rolled back from: the objects, and the content that they gave. */
  from: RecordedObject[]
  digest: string
}

/**
 * Programs that would undo each other's work in one directory: the two that publish by themselves, again and again, and a rollout, which
 * may take back what it finds.
 */
export type Publisher = 'agent' | 'install' | 'rollout'

/** What becomes of a target that its configuration names no more. */
export type DropRule = 'keep' | 'remove'

/** New content that is staged, and neither durable nor visible yet. */
export interface StagedContent {
  /** The directory that holds it, without symbolic links; it goes by another name once it is published. */
  readonly directory: string
  /** Where it will be, without symbolic links. */
  readonly target: string
  readonly digest: string
}

/** Somebody who decides whether new content is published. Both reject with DurableWriteError for what must not be. */
export interface ContentCheck {
  /** Asked with the content's digest before it is staged. */
  accepts(digest: string): void
  /** Examines what is staged, and must leave it as it is; the target's lock is held meanwhile. */
  examine(content: StagedContent): Promise<void>
}

/** What a record says that whoever has read it without the lock looks at again. */
export interface Confirmed {
  readonly sequence: number
  readonly objects: readonly RecordedObject[]
  readonly after: string
  readonly publisher?: Publisher
  readonly publishedAt: number
  readonly letGo?: LetGoMark
  /** Present once its removal has begun. */
  readonly removing?: object | undefined
  readonly movedTo?: string | undefined
}

/** How one publication is made; what the library's callers get are the defaults. */
export interface PublicationOptions {
  /**
   * `set` (default): mode and owner are as asked. `keep`: what the target has already keeps its mode and owner, and a change of them is no
   * drift; what is new in it gets the target's owner, and its mode where it is a directory. What is asked for is for a new target, and for
   * the modes of new files.
   */
  attributes?: 'set' | 'keep'
  /** `exchange` (default): the target is swapped whole. `symlink`: `..data`, as kubelet's volumes. */
  publish?: 'exchange' | 'symlink'
  /**
   * May it replace a non-empty directory that has no record? `always` (default): the call is its own consent.
   * `same-names`: only if every path in it is among the new content's, else TargetForeign.
   */
  foreign?: 'always' | 'same-names'
  /**
   * Whose the target is from now on, by its record: refused with TargetForeign where another publisher's record is beside it.
   * Default: nobody's, and the call is its own consent.
   */
  publisher?: Publisher
  /** Which agent that is: see keeper.ts. Default: nobody says. */
  agent?: string | undefined
  /** Publish even where the target is held, and let it go with that; default false. */
  release?: boolean
  /** Publish even where the target is held, which it is afterwards, too; default false. */
  keepHold?: boolean
  /**
   * What becomes of the old content, in the form `exchange`: it goes `immediately` (default), or stays under its staging name until no
   * process has it open, mapped or mounted, or works in it.
   */
  retire?: 'immediately' | 'whenUnused'
  /** Milliseconds after which it goes in any case, with a warning; default one hour. */
  retireTimeout?: number
  /** Kept in the record. */
  objects?: RecordedObject[]
  /**
   * Which earlier contents stay. Default: as the last publication asked, and none for a target that nobody has asked it for. Not for a
   * file.
   */
  history?: HistoryLimits
  /** The content is an earlier one, which an operator has chosen: pins the target. */
  pin?: Pick<Pin, 'reason' | 'until'>
  /** Looks at what was found, under the lock; throws what refuses it. Default: nobody does. */
  confirm?: (
    found: Partial<Record<'current' | 'newest' | 'record', Confirmed | undefined>>,
    generations: readonly Generation[],
  ) => void
  /** Whether this content ends a pin of this kind, as far as its objects tell. Default: the call is its own consent, and ends any pin. */
  supersedes?: (pin: Pin) => boolean
  /** Names of the hooks that are still to run once this is durable; kept in the record. */
  hooks?: string[]
  /** What becomes of the target once nobody configures it any more; kept in the record. Default: `keep`. */
  onDrop?: DropRule
  /** Where its content was before; null: nowhere. Default: as its record says. */
  movedFrom?: string | null
  /** The path to which its content moves; null: nowhere. Default: as its record says. */
  movedTo?: string | null
  /** Nobody changes the bytes of `files` before the call ends: they need not be copied. Default false. */
  contentStays?: boolean
  /** Subdirectories that are there even if they hold no file, as relative paths. For the form `exchange` only. */
  emptyDirectories?: readonly string[]
  /**
   * The name whose lock and staging names are used, instead of the target's own: targets that come and go (revisions of
   * a static pod) then share one lock, and what any of them left in staging is removed by the next publication of the
   * family. At most one target of a family and parent in a batch.
   */
  family?: string
  /**
   * Milliseconds to wait for another holder of the lock, in this process or another. Default: 0 for another process; calls of
   * this one wait for one another in their order, without a limit.
   */
  lockTimeout?: number
  /** Refuse file systems on which durability is not proven; default false. */
  requireProven?: boolean
  /** Make the directories above the target that are missing; default true. Else they are refused, each by its path. */
  parents?: boolean
  /** Called with how many bytes more of the content have been read from paths and streams: each counts twice, be it read once or twice. */
  progress?: (bytes: number) => void
  /**
   * Called with what the content was read as, before anything is looked at or made. Throws what refuses it: the cause of the error then.
   * Default: nobody refuses it.
   */
  accept?: (entries: readonly { readonly path: string; readonly sha256: string }[]) => void
  /** The same, asked with the bytes of all content, which is enough where that is read once, as it is staged. Default: `accept` is asked. */
  acceptSize?: (bytes: number) => void
  /** Asked before new content is published; for directories only. Default: nobody. */
  check?: ContentCheck
  /** Abandons before the exchange, never after it. */
  signal?: AbortSignal
  log?: Log
}

/** What whoever moves a directory says of the publications of its old path. */
export type OldPathOptions = Pick<
  PublicationOptions,
  'hooks' | 'publisher' | 'agent' | 'retire' | 'retireTimeout' | 'onDrop' | 'requireProven'
>

export interface DirectoryRequest extends ReplaceDirectoryOptions {
  target: string
}

/** What a record says of a target, compared with what the disk holds. */
export interface Publication {
  path: string
  /** Digest of what was published. */
  digest: string
  /** Digest of what the disk holds now; undefined where the target does not exist. */
  actual: string | undefined
  /** Known to be durable: settled, or written before this boot. */
  settled: boolean
  /** The same, and the record speaks of these very inodes: not of those that they are a copy of. */
  durable: boolean
  publishedAt: Date
  /** In force now. */
  hold?: Hold
  /** The same: the content is an earlier one. */
  pin?: Pin
  objects: RecordedObject[]
  /** Old content is still beside it, for those who use it (`retire: whenUnused`). */
  retired?: true
  relocation?: Relocation
  /** Where its content moves to. */
  movedTo?: string
  /** When the oldest of the earlier contents that are beside it was replaced; absent where none are. */
  pastSince?: Date
  /** Its removal has begun, and was interrupted. */
  removing?: true
  /** Its configuration names it no more since then: what has changed since is somebody else's. */
  letGo?: Date
  /** Hooks that have not been recorded as done. */
  pendingHooks: string[]
  /** Paths, relative to the target, that differ: with what is wrong (`missing`, `unexpected`, `content`, `mode`, `owner`). */
  differences: { path: string; problem: 'missing' | 'unexpected' | 'content' | 'mode' | 'owner' | 'type' }[]
}

/* What a record says of a target's past, and of what its content was made from. */

/** An object that the content came from, as the publication record keeps it. `paths`: the files that it alone gave. */
export interface RecordedObject {
  kind: string
  namespace: string
  name: string
  uid: string
  resourceVersion: string
  paths: string[]
  /** Files that it gave together with other objects (`combine`), if there are any. */
  combined?: string[]
  /** uids of earlier objects by its name that gave a part of a combined file, which stays as it was published. */
  others?: string[]
  /** It has no uid, and was seen to be gone: one that has its name later is another one. */
  gone?: boolean
}

/** An earlier content of a target, which stays beside it: see history.ts. */
export interface Generation {
  /** Beside the target. */
  name: string
  /** Of the record that it was published with; 0: it was taken over. */
  sequence: number
  digest: string
  /** Milliseconds since the epoch, as all times of a record. */
  publishedAt: number
  replacedAt: number
  why: Cause
  objects: RecordedObject[]
}

/** The present content of a target, or an earlier one, compared with the disk. */
export interface PastContent extends Pick<Generation, 'sequence' | 'digest' | 'why' | 'objects'> {
  publishedAt: Date
  /** null: it is there now. */
  replacedAt: Date | null
  /** `damaged`: it is not what was published, and is never published again. */
  state: 'present' | 'whole' | 'damaged'
  /** What is wrong with a damaged one. */
  problem?: string
}

/** How many earlier contents stay beside a target, and which never. */
export interface HistoryLimits {
  keep: number
  /** Milliseconds from the replacement of a content; null: without a limit. */
  maxAge: number | null
  /** What was made from one of these does not stay: they were deleted. Default: none. */
  without?: readonly Pick<RecordedObject, 'kind' | 'namespace' | 'name'>[]
  /** There is this object now: what was made from another one by its name does not stay, since that was deleted. Default: none. */
  present?: readonly Pick<RecordedObject, 'kind' | 'namespace' | 'name' | 'uid'>[]
  /** Of such a kind and namespace, what was made from another object does not stay either. Default: any stays. */
  only?: readonly { kind: string; namespace: string; names: readonly string[] }[]
}

/** What a record says of a target's past. */
export interface History extends Pick<HistoryLimits, 'keep' | 'maxAge'> {
  /** Of whoever asked for it: a rollback has them run, too. */
  hooks?: string[]
  /** Newest first. */
  generations: Generation[]
}

/** Which agent keeps it: the identity of its state directory, which is no secret. */
export interface AgentMark {
  readonly id: string
  readonly publishedAt: number
}

/** It has left the configuration of what kept it. */
export interface LetGoMark {
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly publishedAt: number
}

/** How a call on a target that is published already is made. */
export interface HoldOptions {
  /** Milliseconds to wait for another holder of the lock; default 0. */
  readonly lockTimeout?: number
  /** Refuses file systems on which durability is not proven; default false. */
  readonly requireProven?: boolean
  readonly signal?: AbortSignal
  readonly log?: Log
}

/**
 * How far the content of another path has come to this one: `staged`: it is published here, durably; `both`: both are kept up to date, this
 * one first; `draining`: nobody uses the other one, and it goes; `done`: it is gone.
 */
export const relocationStates = ['staged', 'both', 'draining', 'done'] as const
export type RelocationState = (typeof relocationStates)[number]

/** Nothing is left where the content was. Version 0.2.0 could leave a symbolic link there, and reads no record without this word. */
export const relocationForms = ['removed', 'link'] as const

/** A target's content comes from another path: see relocation.ts. */
export interface Relocation {
  /** Absolute. */
  from: string
  /** Nobody reads it any more; what is written is `removed`. */
  as: (typeof relocationForms)[number]
  state: RelocationState
  /** Milliseconds since the epoch, of this state. */
  since: number
}

/** The seven checks of an adoption, in their order. Scripts and alerts rely on the names: none is ever renamed. */
export type AdoptionCheck =
  'exists' | 'noOtherWriter' | 'realDirectory' | 'fileSystem' | 'safeOwner' | 'space' | 'content'

/** What one check has found. */
export interface AdoptionResult {
  readonly check: AdoptionCheck
  /** `pending`: not as it has to be now, and looked at again; `refused`: not until somebody acts. */
  readonly verdict: 'passed' | 'pending' | 'refused'
  /** Nothing but a person's doing changes it. */
  readonly terminal: boolean
  readonly message: string
  /** What to do; null where nothing is to be done. */
  readonly advice: string | null
}

/** Files that are there, or will be. */
export interface AdoptedFiles {
  readonly paths: readonly string[]
  readonly read: (path: string) => Promise<Uint8Array>
}

/** How a directory is taken over that somebody else made. */
export interface Adopting {
  /** Even where it holds what the new content does not have. */
  readonly replace: boolean
  /** What is wrong with the keys and certificates among these files; undefined: nothing. */
  readonly keyPairs?: (files: AdoptedFiles) => Promise<string | undefined>
}

/** How a path is synced. */
export interface SyncOptions {
  /** Refuses file systems on which durability is not proven, and does nothing there; default false. */
  requireProven?: boolean
}
