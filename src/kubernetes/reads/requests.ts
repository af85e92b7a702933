/** Requests to the API server: paths and queries, their names in messages, and the rights that they take. */
import { type ObjectReference } from '../../objects/types.js'

export type Query = Readonly<Record<string, string>>

const metadata = (kind: string): string => `application/json;as=${kind};g=meta.k8s.io;v=v1`

/** Media types of answers that have each object's metadata alone, as kubectl asks for where it shows names; a watch sends objects. */
export const metadataOnly = { object: metadata('PartialObjectMetadata'), list: metadata('PartialObjectMetadataList') }

/** One object, or without `name` a collection: of the core group, or of holdfast's own. */
export interface ApiTarget {
  readonly resource: 'secrets' | 'configmaps' | 'pods' | 'nodes' | 'nodepublications'
  /** undefined for a resource without namespaces. */
  readonly namespace: string | undefined
  readonly name: string | undefined
  /** What helps where the API server refuses with this HTTP status, if not what helps for other resources. */
  readonly advice?: Readonly<Record<number, string>>
}

/** As a rule of a Role grants it. */
export type ReadVerb = 'get' | 'list' | 'watch'

const singular = {
  secrets: 'Secret',
  configmaps: 'ConfigMap',
  pods: 'pod',
  nodes: 'node',
  nodepublications: 'NodePublication',
} as const satisfies Record<ApiTarget['resource'], string>

const resources = { Secret: 'secrets', ConfigMap: 'configmaps' } as const satisfies Record<
  ObjectReference['kind'],
  ApiTarget['resource']
>

export function objectTarget({ kind, namespace, name }: ObjectReference): ApiTarget {
  return { resource: resources[kind], namespace, name }
}

export function nodeTarget(name: string): ApiTarget {
  return { resource: 'nodes', namespace: undefined, name }
}

/** Without `name`: the pods of the namespace. */
export function podTarget(namespace: string, name?: string): ApiTarget {
  return { resource: 'pods', namespace, name }
}

export function targetPath({ resource, namespace, name }: ApiTarget): string {
  const scope = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`
  return `/api/v1/${scope}${resource}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
}

/** `Secret ns/name`, `node n`, `pods of ns`. */
export function describeTarget({ resource, namespace, name }: ApiTarget): string {
  if (name === undefined) return namespace === undefined ? resource : `${resource} of ${namespace}`
  return `${singular[resource]} ${namespace === undefined ? name : `${namespace}/${name}`}`
}

export function collectionPath(reference: ObjectReference): string {
  return targetPath({ ...objectTarget(reference), name: undefined })
}

/** A list of the one object, consistent: without a resourceVersion it accepts no cache that lags. */
export function listQuery(reference: ObjectReference): Query {
  return { fieldSelector: `metadata.name=${reference.name}` }
}

/** A watch of what the selector matches that goes on after this resource version. */
export function watchQuery(selector: Query, from: string, seconds: number): Query {
  return { ...streamQuery(selector, seconds), resourceVersion: from }
}

/**
 * List and watch in one stream (KEP-3157). Without a resourceVersion, the initial events are as consistent as a list: an object
 * that is not among them when they end is absent for certain.
 */
export function streamingListQuery(reference: ObjectReference, seconds: number): Query {
  return initialEvents(listQuery(reference), seconds)
}

/** The same of all objects that a label selector matches. */
export function selectedStreamQuery(labelSelector: string, seconds: number): Query {
  return initialEvents({ labelSelector }, seconds)
}

function initialEvents(selector: Query, seconds: number): Query {
  return { ...streamQuery(selector, seconds), sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
}

function streamQuery(selector: Query, seconds: number): Query {
  return {
    ...selector,
    watch: '1',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(seconds),
  }
}
