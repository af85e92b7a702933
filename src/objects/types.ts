import type { Reason } from '../reasons.js'
import type { ApiClient, ApiObserver } from '../kubernetes/connection/client.js'

export type ObjectKind = 'Secret' | 'ConfigMap'

/** Names one object that a directory needs, or with `selector` those of a namespace whose labels match: see selectionReference(). */
export interface ObjectReference {
  readonly kind: ObjectKind
  readonly namespace: string
  readonly name: string
  /** A label selector: the source then observes which names match, and no content. */
  readonly selector?: string
}

/** All objects of a kind and a namespace that a label selector matches. No object can have the name: it has brackets. */
export function selectionReference(kind: ObjectKind, namespace: string, selector: string): Required<ObjectReference> {
  return { kind, namespace, name: `(${selector})`, selector }
}

/** Which version of an object: enough to know a newer one from an older one, and another one by the same name. */
export interface ObjectVersion {
  /** metadata.uid; the empty string where the source has none (files). */
  readonly uid: string
  /** metadata.resourceVersion; for files, `file:…`: another one where the file was written since, and nothing of its content. */
  readonly resourceVersion: string
}

/** An object's version and reference, beside its content. */
interface ObjectIdentity extends ObjectVersion {
  readonly reference: ObjectReference
  /** metadata.deletionTimestamp is set: its published content stays until the object is gone, and no newer version is published. */
  readonly terminating: boolean
}

/** A Secret or a ConfigMap, decoded: bytes, from every field that the wire may have (data, binaryData, stringData). */
export interface KubernetesObject extends ObjectIdentity {
  readonly data: ReadonlyMap<string, Uint8Array>
}

/** An object whose content is not in memory: `Source.load` reads it again. */
export interface UnloadedObject extends ObjectIdentity {
  /** Of the content: the same version with another digest comes from another history. */
  readonly digest: string
}

/**
 * The state of one object, as a source knows it. `absent` is certain (404, DELETED, an empty consistent list); a failed read
 * is `unknown`, with the reason, and never counts as absence.
 */
export type LoadedState =
  { readonly state: 'present'; readonly object: KubernetesObject } | { readonly state: 'absent' } | UnknownState

/** The same, but the content of a present object may have been dropped from memory; of a selection, the names that it matches. */
export type ObservedState =
  LoadedState | { readonly state: 'unloaded'; readonly object: UnloadedObject } | SelectedState

/** The names that a selection matches now, sorted. What could not be read is UnknownState. */
export interface SelectedState {
  readonly state: 'selected'
  readonly names: readonly string[]
}

export interface UnknownState {
  readonly state: 'unknown'
  readonly reason: Reason
  readonly message: string
  /** A mistake of this node's configuration: waiting alone does not mend it. */
  readonly permanent?: true
}

/** One object that is to be observed, and the version that is published already (a floor: nothing older is accepted). */
export interface DesiredObject {
  readonly reference: ObjectReference
  readonly published?: ObjectVersion
}

/** A source's reports to its owner. Calls never throw. */
export interface SourceListener {
  /** The known state of the object has changed. `rewound`: an older version, confirmed as current (HistoryRewound). */
  observed(reference: ObjectReference, observation: ObservedState, details: { rewound: boolean }): void
  /** The source has just confirmed that its last report of the object is current (event, bookmark or list). */
  confirmed(reference: ObjectReference): void
  /** The source was told of a newer version of the object, which it has yet to read; absent: the owner need not know. */
  told?(reference: ObjectReference): void
  /** A watch ended and starts again; `reason` is one of watchRestartReasons. `references`: its objects. `lost`: the error. */
  watchRestarted(reason: WatchRestartReason, references: readonly ObjectReference[], lost?: UnknownState): void
  /** Counts what the source costs the API server; absent: the owner does not count. */
  readonly api?: ApiObserver
}

export const watchRestartReasons = [
  'timeout',
  'expired',
  'goaway',
  'connection',
  'throttled',
  'unauthorized',
  'credentials',
  'denied',
  'server-error',
  'protocol',
  'silence',
  'rotation',
] as const
export type WatchRestartReason = (typeof watchRestartReasons)[number]

/** Where objects come from: the Kubernetes API, or files. */
export interface Source {
  /**
   * Starts to observe these objects, goes on with those it knows, and forgets all others. It reports a known object
   * again only when that changes.
   */
  follow(desired: readonly DesiredObject[]): void
  /** The present state of an object, by the source; undefined until the first answer. */
  latest(reference: ObjectReference): ObservedState | undefined
  /**
   * The present state of an object, with its content: read again where it was dropped from memory. A failed read makes it
   * `unknown`. Rejects only with the signal's reason.
   */
  load(reference: ObjectReference, signal: AbortSignal): Promise<LoadedState | undefined>
  /** Whether it was told of a newer version than the present state, and has yet to read it; absent: it reads what it is told. */
  isBehind?(reference: ObjectReference): boolean
  /** This version is published: the floor below which only a confirmed rewind is accepted. */
  published(reference: ObjectReference, version: ObjectVersion): void
  /** Not-after date of the client certificate in use, if there is one. */
  clientCertificateNotAfter(): Date | undefined
  /** The source's API server, for events and the report of the node over the same connection; undefined where it has none. */
  readonly api?: Pick<ApiClient, 'get' | 'send'>
  /** Ends all watches and connections. */
  close(): Promise<void>
}
