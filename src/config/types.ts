import type { Owner } from '../durable/types.js'
import type { ObjectReference } from '../objects/types.js'
import type { Hook } from './hooks.js'
import type { SourceConfiguration } from './source.js'

export type { SourceConfiguration }

/** A validated AgentConfiguration: paths are absolute, defaults are filled in, durations are milliseconds. */
export interface AgentConfiguration {
  /** The file that it was read from, absolute. */
  readonly file: string
  /** Of that file's text: `sha256:…`. */
  readonly digest: string
  readonly stateDirectory: string
  /** Refuse file systems on which guarantees 2 and 3 are not proven. */
  readonly requireProven: boolean
  /** Refuse what other users may write to and holdfast obeys: this file, a kubeconfig, a hook's program. */
  readonly requireTrusted: boolean
  /** Milliseconds between two comparisons of the disk with the published content. */
  readonly driftInterval: number
  /** Milliseconds after which an operation on the disk that has not ended is reported as stalled. */
  readonly operationTimeout: number
  /** When the agent reads this file again: on SIGHUP alone, or whenever it has changed. */
  readonly reload: 'signal' | 'auto'
  /** Report to the cluster what this node has on its disk. */
  readonly report: boolean
  readonly source: SourceConfiguration
  readonly directories: readonly DirectoryConfiguration[]
  readonly server: ServerConfiguration | undefined
}

export interface ServerAddress {
  readonly host: string
  readonly port: number
}

export interface ServerConfiguration extends ServerAddress {
  /** Names that a request's Host header may have, beside addresses, `localhost` and the node's name. */
  readonly hosts: readonly string[]
}

export interface DirectoryConfiguration {
  readonly path: string
  /** Where it stands in the file: `directories[0]`. */
  readonly place: string
  readonly publish: PublishForm
  /** Whether it may take over what holdfast did not publish; `replace`: even what the new content does not have. */
  readonly adopt: boolean | 'replace'
  readonly mode: number
  readonly fileMode: number
  readonly owner: Owner | undefined
  /** Whether mode and owner are as configured, or, where the target has them already, as they are there. */
  readonly attributes: 'set' | 'keep'
  readonly contents: readonly Content[]
  readonly onMissing: 'keep' | 'remove'
  /** The fate of the directory once the configuration does not name it any more. */
  readonly onDrop: 'keep' | 'remove'
  /** When the content that a publication replaced goes. */
  readonly retire: 'immediately' | 'whenUnused'
  /** Milliseconds after which it goes in any case. */
  readonly retireTimeout: number
  /** Which earlier contents stay beside it; `maxAge` in milliseconds, null: without a limit. */
  readonly history: { readonly keep: number; readonly maxAge: number | null }
  /** Where its content was before, and milliseconds that it stays there at least, too. */
  readonly movedFrom?: { readonly path: string; readonly keep: number }
  /** Of an old path, which only the agent's own list of directories has: the path whose content it gets. */
  readonly follows?: string
  /** What changes together is published together. */
  readonly debounce: Debounce
  /** Milliseconds between two publications of changes, on average. */
  readonly minInterval: number
  /** Milliseconds between two runs of a hook for new publications. */
  readonly hookInterval: number
  readonly limits: Limits
  readonly validate: readonly Validation[]
  /** Commands that examine new content before its publication, in order. */
  readonly beforePublish: readonly Hook<'exec'>[]
  readonly afterPublish: readonly Hook[]
}

/** The agent publishes a change once nothing has changed for `quiet`, and `atMost` after the first one: milliseconds. */
export interface Debounce {
  readonly quiet: number
  readonly atMost: number
}

/** What the objects of one directory may cost: beyond it, none of the directory is published. */
export interface Limits {
  /** Of one object. */
  readonly keys: number
  readonly files: number
  /** Of memory, for all of its objects. */
  readonly bytes: number
}

export type Content = ObjectContent | CombinedContent | SelectedContent

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
  /** A selector matches it now, and no content names it: it may go. */
  readonly selected?: true
}

/** The keys of each object of a namespace whose labels match. */
export interface SelectedContent {
  readonly type: 'selector'
  readonly place: string
  readonly reference: Required<ObjectReference>
  /** As in ObjectContent, with `{name}` for the object's name; paths of items may hold it, too. */
  readonly into: string
  /** Leave it out while nothing matches, and keys that an object lacks. */
  readonly optional: boolean
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

/** The words that `validate` may list. A new one starts here: the compiler then names each place that lacks it. */
export const validations = ['certificates'] as const

/** A word, or what a key must hold. */
export type Validation = (typeof validations)[number] | { readonly bundle: string }

/**
 * How a directory takes its place, and whether the form keeps the names that start with '..' for itself. A new form starts here: the
 * compiler then names each place that lacks it.
 */
export const publishForms = {
  exchange: { reservesDots: false },
  symlink: { reservesDots: true },
} as const satisfies Record<string, { readonly reservesDots: boolean }>

export type PublishForm = keyof typeof publishForms
