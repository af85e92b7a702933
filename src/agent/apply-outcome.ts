import { objectName } from '../object-name.js'
import { referencesOf, selectionsOf } from '../config/references.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { compareWithRecord } from './detect-drift.js'
import { withoutPaths, type DirectoryState, type PublishedObject } from './directory-state.js'
import type { Moving } from './leaving/moving.js'
import type { Context, PassOutcome } from './outcome.js'
import { recordVersions } from './record-versions.js'

type ObjectChanges = Pick<Context, 'removedObjects' | 'changedObjects'>

/**
 * Brings the state up to an outcome, and answers which objects it changed. Rejects only where the record of an unchanged directory
 * cannot be read.
 */
export async function applyOutcome(state: DirectoryState, outcome: PassOutcome, log: Log): Promise<ObjectChanges> {
  if (outcome.kind === 'failed' && outcome.published) state.intact = false
  // The core has just read it: by an operator's command, not by anything that the source reported.
  if (outcome.kind === 'failed' && (outcome.reason === 'Held' || outcome.reason === 'RolledBack'))
    state.drift = await compareWithRecord(state)
  if (outcome.kind === 'failed' && outcome.rejection) state.rejection = outcome.rejection
  if (outcome.kind === 'moving') await applyMoving(state, outcome, log)
  if (outcome.kind !== 'published') return { removedObjects: [], changedObjects: [] }
  const { change, digest, sequence, objects, certificates } = outcome
  const changes =
    change === 'unchanged'
      ? { removedObjects: [], changedObjects: [] }
      : { removedObjects: removedObjects(state, objects), changedObjects: changedObjects(state, objects) }
  if (change !== 'unchanged') {
    state.publishedAt = new Date()
    state.pendingHooks = outcome.hooks
    state.publications += 1
    state.hold = undefined
    state.pin = undefined
    state.movedTo = undefined
    // Exactly, the next comparison says it.
    if (change === 'replaced' && state.configuration.history.keep > 0) state.pastSince ??= state.publishedAt
  } else if (state.digest !== digest || state.isPastOver) {
    // Another program (`holdfast sync`) published this meanwhile: the date and the hooks are its own. Or an earlier content went.
    await compareWithRecord(state)
  }
  state.rejection = undefined
  state.compared = true
  state.keeps = true
  state.intact = true
  state.drift = undefined
  state.uncompared = undefined
  state.digest = digest
  state.sequence = sequence
  state.objects = objects.map(withoutPaths)
  state.desired = { digest, objects: state.objects }
  state.isAhead = false
  if (change === 'unchanged') await recordVersions(state, objects, log)
  else state.recordedObjects = state.objects
  state.certificates = certificates
  state.emptied = outcome.warnings.flatMap(({ emptied }) => emptied ?? [])
  state.unproven = outcome.unproven
  return changes
}

/** A successful move counts even where the comparison fails; the next comparison repeats that. */
async function applyMoving(state: DirectoryState, { change, digest, state: reached }: Moving, log: Log): Promise<void> {
  if (change !== undefined && change !== 'unchanged') {
    state.publications += 1
    state.digest = digest
  }
  state.drift = undefined
  if (reached === 'done') return
  try {
    state.drift = await compareWithRecord(state)
  } catch (error) {
    const { path } = state
    log.error(
      { reason: 'PublishFailed', directory: path },
      `could not compare ${path} with its record: ${messageOf(error)}`,
    )
  }
}

function removedObjects(state: DirectoryState, objects: readonly PublishedObject[]): PublishedObject[] {
  const published = new Set(objects.map(objectName))
  const configured = new Set(referencesOf(state.configuration).map(objectName))
  const selected = new Set(selectionsOf(state.configuration).map(({ reference }) => collectionOf(reference)))
  // No person needs to know of the removal of an object that the operator took out of the configuration.
  return state.objects.filter(
    (object) =>
      !published.has(objectName(object)) && (configured.has(objectName(object)) || selected.has(collectionOf(object))),
  )
}

function collectionOf({ kind, namespace }: Pick<PublishedObject, 'kind' | 'namespace'>): string {
  return `${kind} ${namespace}`
}

function changedObjects(state: DirectoryState, objects: readonly PublishedObject[]): PublishedObject[] {
  const before = new Map(state.objects.map((object) => [objectName(object), object]))
  return objects.map(withoutPaths).filter((object) => {
    const known = before.get(objectName(object))
    return known?.uid !== object.uid || known.resourceVersion !== object.resourceVersion
  })
}
