import type { Log } from '../log.js'

/** A user and a group, by their numbers. */
export interface Owner {
  /** Of the user. */
  uid: number
  /** Of the group. */
  gid: number
}

/** A regular file whose content is published: read in pieces, and refused where another program changes it meanwhile. */
export interface FilePath {
  /** Of the file, absolute or from the working directory. */
  path: string
  /** Also through a symbolic link in the last part; default true. */
  follow?: boolean | undefined
}

/**
 * A string (as UTF-8), bytes, a file, or a stream: of Node, of the web, or any other asynchronous iterable of strings or bytes. holdfast
 * reads a stream to its end before it makes anything; beyond 1 MiB it keeps it in an unnamed file beside the target meanwhile.
 */
export type FileContent = string | Uint8Array | FilePath | AsyncIterable<string | Uint8Array>

/** What a directory is to hold, and with which modes and owner. */
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

/** The mode and the owner of a file. */
export interface ReplaceFileOptions {
  /** Default 0o600. */
  mode?: number | undefined
  /** Default: the effective user and group of this process. */
  owner?: Owner | undefined
}

/** What a publication did: `unchanged` where the target held this content already, durably. */
export type Outcome = 'created' | 'replaced' | 'unchanged'

/** What has become of a target. */
export interface ReplaceResult {
  /** What the call did. */
  outcome: Outcome
  /** Of the target, absolute. */
  path: string
  /** `sha256:…` over the entries: see digest.ts. A short content is found from it by trial: no log shows it. */
  digest: string
  /** By which `holdfast history` and logs name the content. */
  sequence: number
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
 * Why content was published; `driftRepaired`: again, after another program had changed it; `rolledBack`: an operator has chosen an earlier
 * one; `adopted`: holdfast has taken over another program's.
 */
export type Cause = (typeof publicationCauses)[number]
export const publicationCauses = ['published', 'driftRepaired', 'rolledBack', 'adopted'] as const

/** An operator's word that an earlier content stays, although there is a newer one: see rollback.ts. */
export interface Pin {
  /** Empty where none was given. */
  reason: string
  /** Milliseconds since the epoch. */
  since: number
  /** `newer`: until an object is newer than `from`, is gone, or is another one; `released`: until it is released; or the time of its end. */
  until: 'newer' | 'released' | number
  /** The newer state: the objects, and the content that they gave. */
  from: RecordedObject[]
  /** Of that newer content. */
  digest: string
}

/**
 * Programs that would undo each other's work in one directory: the two that publish by themselves, again and again, and a rollout, which
 * may go back to earlier content.
 */
export type Publisher = 'agent' | 'install' | 'rollout'

/** New content that is staged, and neither durable nor visible yet. */
export interface StagedContent {
  /** The directory that holds it, without symbolic links; it goes by another name once it is published. */
  readonly directory: string
  /** Where it will be, without symbolic links. */
  readonly target: string
  readonly digest: string
}

/** New content that nobody has asked for its digests yet: a file that is new is then read only once, as it is staged. */
export interface OfferedContent {
  readonly bytes: number
  /** Reads it. */
  readonly entries: () => Promise<readonly { readonly path: string; readonly sha256: string }[]>
}

/** Decides whether new content may become visible. Both reject with DurableWriteError otherwise. */
export interface ContentCheck {
  /** Asked with the content's digest before it is staged. */
  accepts(digest: string): void
  /** Examines the staged content, and must not change it; the publication holds the target's lock meanwhile. */
  examine(content: StagedContent): Promise<void>
}

/** The part of a record that a caller has read without the lock, and must compare again under it. */
export interface Confirmed {
  readonly sequence: number
  readonly objects: readonly RecordedObject[]
  readonly after: string
  readonly publisher?: Publisher | undefined
  readonly publishedAt: number
  readonly letGo?: LetGoMark | undefined
  /** Present once its removal has begun. */
  readonly removing?: object | undefined
  readonly movedTo?: string | undefined
}

/** How to make one publication; the library's callers get the defaults. */
export interface PublicationOptions {
  /**
   * `set` (default): mode and owner are as requested. `keep`: existing entries keep their mode and owner, and a change of them is no drift;
   * a new entry gets the target's owner, and its mode if it is a directory. The requested ones then apply to a new target, and to the modes
   * of new files. `keepMode`, `keepOwner`: an existing file keeps this one, and the other is as requested.
   */
  attributes?: 'set' | 'keep' | 'keepMode' | 'keepOwner'
  /** May a stream that gives nothing replace a file that has content? Default false: it may have been read before. */
  allowEmpty?: boolean
  /** `exchange` (default): the target is swapped whole. `symlink`: `..data`, as kubelet's volumes. */
  publish?: 'exchange' | 'symlink'
  /**
   * May it replace a non-empty directory that has no record? `always` (default): the call is its own consent.
   * `same-names`: only if every path in it is among the new content's, else TargetForeign.
   */
  foreign?: 'always' | 'same-names'
  /**
   * The program that publishes here from now on, by its record: TargetForeign where another publisher's record is beside it. Default: none,
   * and the call itself is the consent.
   */
  publisher?: Publisher
  /** Which agent that is: see keeper.ts. Default: unknown. */
  agent?: string | undefined
  /** Where an operator holds the target: `refuse` (default), or publish all the same, and `release` it with that, or `keep` the hold. */
  held?: 'refuse' | 'release' | 'keep'
  /**
   * In the form `exchange`: the old content stays under its staging name until no process has it open, mapped or mounted, or works in it,
   * for at most so many milliseconds: then it goes in any case, with a warning. Default: it goes at once.
   */
  retireTimeout?: number | undefined
  /** Kept in the record. */
  objects?: RecordedObject[]
  /** Which earlier contents stay. Default: as in the last publication, and none for a new target. Not for a file. */
  history?: HistoryLimits
  /** The content is an earlier one, which an operator has chosen: pins the target. */
  pin?: Pick<Pin, 'reason' | 'until'>
  /** Checks the present state under the lock; throws to refuse. Default: no check. */
  confirm?: (
    found: Partial<Record<'current' | 'newest' | 'record', Confirmed | undefined>>,
    generations: readonly Generation[],
  ) => void
  /** Whether this content ends a pin of this kind, as far as its objects tell. Default: the call is its own consent, and ends any pin. */
  supersedes?: (pin: Pin) => boolean
  /** Names of the hooks that are still to run once this is durable; kept in the record. */
  hooks?: string[]
  /** Where its content was before; null: nowhere. Default: as its record says. */
  movedFrom?: string | null
  /** The path to which its content moves; null: nowhere. Default: as its record says. */
  movedTo?: string | null
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
   * Gets the content before the call reads or makes anything at the target. Throws to refuse; that becomes the error's cause. Default:
   * accepts all.
   */
  accept?: (content: OfferedContent) => Promise<void>
  /** Decides before new content becomes visible; for directories only. Default: no check. */
  check?: ContentCheck
  /** Abandons before the exchange, never after it. */
  signal?: AbortSignal
  /** Gets the warnings of the call; pino's logger and `console` are such. Default: they are not said. */
  log?: Log
}

/** How an agent that moves a directory publishes to its old path. */
export type OldPathOptions = Pick<
  PublicationOptions,
  'hooks' | 'publisher' | 'agent' | 'retireTimeout' | 'requireProven'
>

/** One directory of a batch. */
export interface DirectoryRequest extends ReplaceDirectoryOptions {
  /** Path of the directory, absolute or from the working directory. */
  target: string
}

/** What a record says of a target, compared with what the disk holds. */
export interface Publication {
  /** Of the target, absolute. */
  path: string
  /** Digest of the published content. */
  digest: string
  /** `holdfast history` and logs name the content by it. */
  sequence: number
  /** Digest of the content on the disk now; undefined where the target does not exist. */
  actual: string | undefined
  /** Known to be durable: settled, or written before this boot. */
  settled: boolean
  /** The same, and the record speaks of these very inodes: not of those that they are a copy of. */
  durable: boolean
  /** When this content was published. */
  publishedAt: Date
  /** In force now. */
  hold?: Hold
  /** The same: the content is an earlier one. */
  pin?: Pin
  /** The Secrets and ConfigMaps that the content came from; empty where a call by hand published it. */
  objects: RecordedObject[]
  /** Old content is still beside it, for those who use it (`retire: whenUnused`), or since it was too much to be removed at once. */
  retired?: true
  /** How far a move of another path's content to this one has come. */
  relocation?: Relocation
  /** Where its content moves to. */
  movedTo?: string
  /** When the oldest of the earlier contents that are beside it was replaced; absent where none are. */
  pastSince?: Date
  /** Its removal has begun, and was interrupted. */
  removing?: true
  /** Since then no configuration names it: another program may have changed it. */
  letGo?: Date
  /** Hooks that have not been recorded as done. */
  pendingHooks: string[]
  /**
   * Paths, relative to the target, that differ, each with its problem (`missing`, `unexpected`, `content`, `mode`, `owner`). `more`, of the
   * target itself: it holds more than a look reads, some hundred entries and 4 MiB beyond what was published.
   */
  differences: { path: string; problem: 'missing' | 'unexpected' | 'content' | 'mode' | 'owner' | 'type' | 'more' }[]
}

/* The part of a record about a target's past, and about the objects of its content. */

/** An object that the content came from, as the publication record keeps it. */
export interface RecordedObject {
  /** `Secret` or `ConfigMap`. */
  kind: string
  /** Of the object. */
  namespace: string
  /** Of the object. */
  name: string
  /** By which the API server tells it from a later object of its name; empty where the source has none. */
  uid: string
  /** Of the version that was published. */
  resourceVersion: string
  /** The files that it alone gave, relative to the target. */
  paths: string[]
  /** Files that it gave together with other objects (`combine`), if there are any. */
  combined?: string[]
  /** uids of earlier objects by its name that gave a part of a combined file, which stays as it was published. */
  others?: string[]
  /** It has no uid, and the source has reported its end: a later object of its name is another one. */
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
  /** The same instant by the clock of this start of the kernel. */
  replacedIn?: { boot: string; uptime: number }
  why: Cause
  objects: RecordedObject[]
}

/** The present content of a target, or an earlier one, compared with the disk. */
export interface PastContent extends Pick<Generation, 'sequence' | 'digest' | 'why' | 'objects'> {
  publishedAt: Date
  /** null: it is there now. */
  replacedAt: Date | null
  /** `damaged`: it differs from its record, and holdfast never publishes it again. */
  state: 'present' | 'whole' | 'damaged'
  problem?: string
}

/** How many earlier contents stay beside a target, and which never. */
export interface HistoryLimits {
  keep: number
  /** Milliseconds from the replacement of a content; null: without a limit. */
  maxAge: number | null
  /** Whether content that this object gave may stay. Default: that of any. */
  mayStay?: (object: RecordedObject) => boolean
}

/** What a record says of a target's past. */
export interface History extends Pick<HistoryLimits, 'keep' | 'maxAge'> {
  /** The hooks of its publication: a rollback runs them, too. */
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

/** How to make a call on a published target. */
export interface HoldOptions {
  /** Milliseconds to wait for another holder of the lock; default 0. */
  readonly lockTimeout?: number
  /** Refuses file systems on which durability is not proven; default false. */
  readonly requireProven?: boolean
  readonly signal?: AbortSignal
  readonly log?: Log
}

/**
 * How far the content of another path has come to this one: `staged`: this path has it, durably; `both`: the agent publishes to both paths,
 * this one first; `draining`: no process uses the other one, and it goes; `done`: it is gone.
 */
export const relocationStates = ['staged', 'both', 'draining', 'done'] as const
export type RelocationState = (typeof relocationStates)[number]

export interface Relocation {
  /** Absolute. */
  from: string
  /** How the old path ends: nothing stays there. */
  as: 'removed'
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
  /** `pending`: the check fails now, and the agent repeats it; `refused`: it fails until a person acts. */
  readonly verdict: 'passed' | 'pending' | 'refused'
  /** Only a person can change the verdict. */
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

/** How to take over another program's directory. */
export interface Adopting {
  /** Even where it holds files that the new content lacks. */
  readonly replace: boolean
  /** The problem with the keys and certificates among these files; undefined: none. */
  readonly keyPairs?: (files: AdoptedFiles) => Promise<string | undefined>
}

/** How a path is synced. */
export interface SyncOptions {
  /** Refuses file systems on which durability is not proven, and does nothing there; default false. */
  requireProven?: boolean
}
