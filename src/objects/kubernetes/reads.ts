/** Reads of one object that accept no cache: they name no resourceVersion. */
import type { ObservedVersion } from '../stored-object.js'
import type { ObjectReference } from '../types.js'
import { isAbsent, protocolError, refusedRequest } from '../../kubernetes/reads/api-error.js'
import type { ApiClient, RequestOptions } from '../../kubernetes/connection/client.js'
import { collectionPath, listQuery, objectTarget, pathOf } from '../../kubernetes/reads/requests.js'
import { resourceVersionOf, observeList, observeObject } from '../../kubernetes/reads/observed-version.js'

/** The object now, and the version of the collection as of which that is so: a watch goes on from there. */
export interface ListRead {
  readonly observed: ObservedVersion
  readonly resourceVersion: string | undefined
}

/** @throws ApiError, ConnectionError */
export async function readList(
  client: ApiClient,
  reference: ObjectReference,
  options: RequestOptions,
): Promise<ListRead> {
  const answer = await client.get(collectionPath(reference), listQuery(reference), { ...options, verb: 'list' })
  if (answer.status !== 200) throw refusedRequest(objectTarget(reference), 'list', answer)
  return { observed: observeList(reference, answer.body), resourceVersion: resourceVersionOf(answer.body) }
}

/** How often GET and list may say different things: the object was made or deleted between the two. */
const maximumContradictions = 3

/**
 * Settles whether an observed version older than the known one comes from a lagging cache or from a rewound history. A GET by name
 * is answered by etcd itself, also where the API server answers consistent lists from its cache (KEP-2340).
 * @throws ApiError, ConnectionError
 */
export async function readFresh(
  client: ApiClient,
  reference: ObjectReference,
  options: RequestOptions,
): Promise<ObservedVersion> {
  const target = objectTarget(reference)
  for (let contradictions = 0; contradictions < maximumContradictions; contradictions++) {
    const answer = await client.get(pathOf(target), {}, options)
    if (answer.status === 200) return observeObject(reference, answer.body)
    if (!isAbsent(answer, target.name)) throw refusedRequest(target, 'get', answer)
    // A 404 does not say as of which version it holds: an empty list does.
    const { observed } = await readList(client, reference, options)
    if (observed.observation.state === 'absent') return observed
  }
  throw protocolError(reference, "the API server's answers disagree: to GET it is absent, in the list it is present")
}
