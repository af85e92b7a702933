import type { ObjectReference } from '../objects/types.js'

/** A validated AgentConfiguration: paths are absolute, defaults are filled in, durations are milliseconds. */
export interface AgentConfiguration {
  /** The file that it was read from, absolute. */
  readonly file: string
  readonly stateDirectory: string
  /** Refuse file systems on which guarantees 2 and 3 are not proven. */
  readonly requireProven: boolean
  /** Milliseconds between two comparisons of the disk with what was published. */
  readonly driftInterval: number
  readonly source: SourceConfiguration
  readonly directories: readonly DirectoryConfiguration[]
  readonly server: ServerConfiguration | undefined
}

export type SourceConfiguration =
  | { readonly type: 'kubernetes'; readonly kubeconfig: string | undefined; readonly context?: string }
  | {
      readonly type: 'files'
      readonly path: string
      /** source.namespace: of objects in files that name none. */
      readonly namespace?: string
    }

export interface ServerConfiguration {
  readonly host: string
  readonly port: number
}

export interface Owner {
  readonly uid: number
  readonly gid: number
}

export interface DirectoryConfiguration {
  readonly path: string
  /** Where it stands in the file: `directories[0]`. */
  readonly place: string
  readonly publish: 'exchange' | 'symlink'
  readonly adopt: boolean
  readonly mode: number
  readonly fileMode: number
  readonly owner: Owner | undefined
  readonly contents: readonly Content[]
  readonly onMissing: 'keep' | 'remove'
  readonly validate: readonly 'certificates'[]
  readonly afterPublish: readonly Hook[]
}

export type Content = ObjectContent | CombinedContent

/** The keys of one object, each a file. */
export interface ObjectContent {
  readonly type: 'object'
  readonly place: string
  readonly reference: ObjectReference
  /** Relative directory inside the target; '' for the target itself. */
  readonly into: string
  readonly optional: boolean
  /** undefined: every key, named as it is. */
  readonly items: readonly Item[] | undefined
}

export interface Item {
  readonly key: string
  /** Relative to `into`. */
  readonly path: string
  readonly mode: number | undefined
}

/** Several keys one after the other in one file, so that a reader can never straddle a swap. */
export interface CombinedContent {
  readonly type: 'combine'
  readonly place: string
  /** Relative path of the file inside the target. */
  readonly path: string
  readonly from: readonly { readonly reference: ObjectReference; readonly key: string }[]
  readonly mode: number | undefined
  /** Leave the file out while a part of it is absent. */
  readonly optional: boolean
}

interface HookPolicy {
  /**
   * What the record calls it: a digest of what it does, so that it is found again after a restart wherever it then stands in the
   * list, and never taken for another one.
   */
  readonly key: string
  /** What it is called in logs, metrics and status: `signal SIGHUP /run/x.pid`, `exec systemctl #2`, `http 127.0.0.1:9000`. */
  readonly name: string
  /** Where it stands in the file: `directories[0].afterPublish[1]`. */
  readonly place: string
  /** Milliseconds for one try. */
  readonly timeout: number
  /** Further tries after the first. */
  readonly retries: number
}

export type Hook =
  | (HookPolicy & { readonly type: 'signal'; readonly signal: NodeJS.Signals; readonly pidFile: string })
  | (HookPolicy & { readonly type: 'exec'; readonly command: readonly string[] })
  | (HookPolicy & { readonly type: 'http'; readonly url: string; readonly method: string })
