/** The requests that are made for one object: paths, queries, and what they are called in messages. */
import type { ObjectReference } from '../types.js'

export type Query = Record<string, string>

export function resourceOf(reference: ObjectReference): 'secrets' | 'configmaps' {
  return reference.kind === 'Secret' ? 'secrets' : 'configmaps'
}

export function collectionPath(reference: ObjectReference): string {
  return `/api/v1/namespaces/${encodeURIComponent(reference.namespace)}/${resourceOf(reference)}`
}

export function objectPath(reference: ObjectReference): string {
  return `${collectionPath(reference)}/${encodeURIComponent(reference.name)}`
}

/** A list of the one object, consistent: without a resourceVersion it accepts no cache that lags. */
export function listQuery(reference: ObjectReference): Query {
  return { fieldSelector: `metadata.name=${reference.name}` }
}

/** A watch that goes on after this resource version. */
export function watchQuery(reference: ObjectReference, from: string, seconds: number): Query {
  return { ...streamQuery(reference, seconds), resourceVersion: from }
}

/**
 * List and watch in one stream (KEP-3157). Without a resourceVersion, the initial events are as consistent as a list: an object
 * that is not among them when they end is absent for certain.
 */
export function streamingListQuery(reference: ObjectReference, seconds: number): Query {
  return {
    ...streamQuery(reference, seconds),
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
  }
}

function streamQuery(reference: ObjectReference, seconds: number): Query {
  return {
    ...listQuery(reference),
    watch: '1',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(seconds),
  }
}
