import type { Reason } from '../reasons.js'
import type { ApiClient } from './kubernetes/client.js'

export type ObjectKind = 'Secret' | 'ConfigMap'

/** Names one object that a directory needs. */
export interface ObjectReference {
  readonly kind: ObjectKind
  readonly namespace: string
  readonly name: string
}

/** `Secret kube-system/serving-cert`: the same text in logs, errors, status and as a map key. */
export function describeReference(reference: ObjectReference): string {
  return `${reference.kind} ${reference.namespace}/${reference.name}`
}

/** Which version of an object: enough to tell a newer one from an older one, and another one by the same name. */
export interface ObjectVersion {
  /** metadata.uid; the empty string where the source has none (files). */
  readonly uid: string
  /** metadata.resourceVersion; for files, `file:…`: another one where the file was written since, and nothing of its content. */
  readonly resourceVersion: string
}

/** A Secret or a ConfigMap, decoded: bytes, whatever the wire had (data, binaryData, stringData). */
export interface KubernetesObject extends ObjectVersion {
  readonly reference: ObjectReference
  readonly data: ReadonlyMap<string, Uint8Array>
  /** metadata.deletionTimestamp is set: it is kept until it is gone, and not published anew. */
  readonly terminating: boolean
}

/**
 * What a source knows of one object. `absent` is certain (404, DELETED, an empty consistent list); what merely
 * could not be read is `unknown`, with the reason, and is never taken for absence.
 */
export type Observation =
  | { readonly state: 'present'; readonly object: KubernetesObject }
  | { readonly state: 'absent' }
  | { readonly state: 'unknown'; readonly reason: Reason; readonly message: string }

/** One object that is wanted, and the version that is published already (a floor: nothing older is accepted). */
export interface WantedObject {
  readonly reference: ObjectReference
  readonly published?: ObjectVersion
}

/** What a source tells the one who owns it. Calls never throw. */
export interface SourceListener {
  /** What is known of the object has changed. `rewound`: an older version, confirmed as current (HistoryRewound). */
  observed(reference: ObjectReference, observation: Observation, details: { rewound: boolean }): void
  /** The source has just confirmed that what it last said of the object is current (event, bookmark or list). */
  confirmed(reference: ObjectReference): void
  /** A watch ended and is begun again; `reason` is one of watchRestartReasons. `reference`: what it watched, where that is one object. */
  watchRestarted(reason: WatchRestartReason, reference?: ObjectReference): void
}

export const watchRestartReasons = [
  'timeout',
  'expired',
  'goaway',
  'connection',
  'throttled',
  'unauthorized',
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
   * Begins to observe these objects, goes on with those it knows, and forgets all others. What it knows already is
   * told again only when it changes.
   */
  follow(wanted: readonly WantedObject[]): void
  /** What the source says of an object now; undefined until the first answer. */
  latest(reference: ObjectReference): Observation | undefined
  /** Tells the source that this version is published: the floor below which only a confirmed rewind is accepted. */
  published(reference: ObjectReference, version: ObjectVersion): void
  /** Not-after date of the client certificate in use, if there is one. */
  clientCertificateNotAfter(): Date | undefined
  /** The API server that is asked, to tell it of events over the same connection; undefined: none is. */
  readonly api?: Pick<ApiClient, 'send'>
  /** Ends all watches and connections. */
  close(): Promise<void>
}
