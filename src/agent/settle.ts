import { describeReference } from '../objects/types.js'
import type { Attempt } from './attempt.js'
import { compare } from './compare.js'
import { referencesOf } from '../config/references.js'
import { withoutPaths, type DirectoryState, type PublishedObject } from './directory-state.js'
import type { Log } from '../log.js'
import type { Metrics, PublishResultLabel } from './metrics.js'
import { recordVersions } from './record-versions.js'

/** What an attempt changed in what is remembered of a directory. */
export interface Settled {
  /** Objects that are published no more. */
  readonly removed: readonly PublishedObject[]
  /** Objects that are published in another version than before, or for the first time. */
  readonly changed: readonly PublishedObject[]
}

/** Brings the state up to an attempt. Rejects only where the record of an unchanged directory cannot be read. */
export async function settle(state: DirectoryState, attempt: Attempt, log: Log): Promise<Settled> {
  if (attempt.kind === 'failed' && attempt.published) state.whole = false
  if (attempt.kind !== 'published') return { removed: [], changed: [] }
  const { outcome, digest, objects, certificates } = attempt
  const removed = outcome === 'unchanged' ? [] : noLonger(state, objects)
  const changed = outcome === 'unchanged' ? [] : anew(state, objects)
  if (outcome !== 'unchanged') {
    state.publishedAt = new Date()
    state.pendingHooks = attempt.hooks
    state.generation += 1
  } else if (state.digest !== digest) {
    // Somebody else (`holdfast sync`) published this meanwhile: the date and the hooks are theirs.
    await compare(state)
  }
  state.compared = true
  state.whole = true
  state.drift = undefined
  state.digest = digest
  state.objects = objects.map(withoutPaths)
  if (outcome === 'unchanged') await recordVersions(state, objects, log)
  else state.recordedObjects = state.objects
  state.certificates = certificates
  return { removed, changed }
}

function noLonger(state: DirectoryState, objects: readonly PublishedObject[]): PublishedObject[] {
  const published = new Set(objects.map(nameOf))
  const wanted = new Set(referencesOf(state.configuration).map(describeReference))
  // What the operator took out of the configuration was not removed by anything that needs to be told.
  return state.objects.filter((object) => !published.has(nameOf(object)) && wanted.has(nameOf(object)))
}

function anew(state: DirectoryState, objects: readonly PublishedObject[]): PublishedObject[] {
  const before = new Map(state.objects.map((object) => [nameOf(object), object]))
  return objects.map(withoutPaths).filter((object) => {
    const known = before.get(nameOf(object))
    return known?.uid !== object.uid || known.resourceVersion !== object.resourceVersion
  })
}

function nameOf({ kind, namespace, name }: PublishedObject): string {
  return `${kind} ${namespace}/${name}`
}

/** Counts an attempt. `seconds`: since it was due. */
export function count(metrics: Metrics, state: DirectoryState, attempt: Attempt, seconds: number): void {
  const { path } = state
  metrics.ready(path, state.whole)
  if (state.publishedAt) metrics.publishedAt(path, state.publishedAt)
  metrics.certificates(path, state.certificates)
  const label = resultLabel(attempt)
  if (label !== undefined) metrics.publish(path, label, label === 'refused' ? undefined : seconds)
}

function resultLabel(attempt: Attempt): PublishResultLabel | undefined {
  switch (attempt.kind) {
    case 'published':
      return attempt.outcome
    case 'failed':
      return attempt.published ? 'unknown' : 'failed'
    case 'incomplete':
      return 'refused'
    case 'waiting':
    case 'abandoned':
      return undefined
  }
}
