import type { KubernetesObject, ObjectKind } from '../objects/types.js'
import { inParallel } from '../durable/index.js'
import type { Cluster } from './cluster.js'
import { StaticPodError } from './failure.js'

/** An object that an installation needs, and the name under which its files go: without the revision's suffix. */
export interface NeededObject {
  readonly kind: ObjectKind
  readonly name: string
  readonly directoryName: string
  readonly optional: boolean
}

export interface FetchedObject extends NeededObject {
  /** What was asked for. */
  readonly needed: NeededObject
  readonly object: KubernetesObject
}

/** Reads that are under way at a time: one connection carries a hundred. */
const width = 16

/**
 * Reads all of them, before anything is written. Optional ones may be absent.
 * @throws StaticPodError for the first that is absent, refused, or not whole; the others are then given up
 */
export async function fetchObjects(
  cluster: Cluster,
  namespace: string,
  needed: readonly NeededObject[],
  signal: AbortSignal,
): Promise<FetchedObject[]> {
  const found = new Map<NeededObject, KubernetesObject>()
  const giveUp = new AbortController()
  const either = AbortSignal.any([signal, giveUp.signal])
  let first: unknown
  await inParallel(needed, width, async (item) => {
    const { kind, name, optional } = item
    try {
      const object = await cluster.read({ kind, namespace, name }, either)
      if (object !== undefined) found.set(item, object)
      else if (!optional) {
        throw new StaticPodError(`${kind} ${namespace}/${name} does not exist, and it is required`)
      }
    } catch (error) {
      first ??= error
      giveUp.abort(error)
      throw error
    }
  }).catch((error: unknown) => {
    throw first ?? error
  })
  return needed.flatMap((item) => {
    const object = found.get(item)
    return object ? [{ ...item, needed: item, object }] : []
  })
}
