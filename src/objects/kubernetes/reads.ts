/** Reads of one object that accept no cache: no resourceVersion is given. */
import type { Sighting } from '../stored-object.js'
import { describeReference, type ObjectReference } from '../types.js'
import { isAbsent } from './absence.js'
import type { ApiClient, RequestOptions } from './client.js'
import { refusedRequest, WatchFailure } from './failure.js'
import { collectionPath, listQuery, objectPath } from './requests.js'
import { resourceVersionOf, sightList, sightObject } from './sighting.js'

/** What the object is now, and the version of the collection as of which that is so: a watch goes on from there. */
export interface ListRead {
  readonly sighting: Sighting
  readonly resourceVersion: string | undefined
}

/** @throws WatchFailure, ConnectionError */
export async function readList(
  client: ApiClient,
  reference: ObjectReference,
  options: RequestOptions,
): Promise<ListRead> {
  const answer = await client.get(collectionPath(reference), listQuery(reference), options)
  if (answer.status !== 200) throw refusedRequest(reference, 'list', answer)
  return { sighting: sightList(reference, answer.body), resourceVersion: resourceVersionOf(answer.body) }
}

/** How often GET and list may say different things: the object was made or deleted between the two. */
const maximumContradictions = 3

/**
 * Settles whether a sighting that is older than what was known is a lagging cache or a history that was rewound. A GET by name
 * is answered by etcd itself, also where the API server answers consistent lists from its cache (KEP-2340).
 * @throws WatchFailure, ConnectionError
 */
export async function readFresh(
  client: ApiClient,
  reference: ObjectReference,
  options: RequestOptions,
): Promise<Sighting> {
  for (let contradictions = 0; contradictions < maximumContradictions; contradictions++) {
    const answer = await client.get(objectPath(reference), {}, options)
    if (answer.status === 200) return sightObject(reference, answer.body)
    if (!isAbsent(answer)) throw refusedRequest(reference, 'get', answer)
    // A 404 does not say as of which version it holds: an empty list does.
    const { sighting } = await readList(client, reference, options)
    if (sighting.observation.state === 'absent') return sighting
  }
  throw new WatchFailure(
    'protocol',
    `${describeReference(reference)}: the API server's GET says that it is absent, its list that it is there`,
  )
}
