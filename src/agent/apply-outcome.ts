import { objectName } from '../object-name.js'
import { referencesOf, selectionsOf } from '../config/references.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { compareWithRecord } from './detect-drift.js'
import { withoutPaths, type PublishedObject } from './conditions.js'
import { isPastOver, type DirectoryFacts, type DirectoryState } from './directory-state.js'
import type { Context, PassOutcome } from './outcome.js'
import { recordVersions } from './record-versions.js'

type ObjectChanges = Pick<Context, 'removedObjects' | 'changedObjects'>

const noChanges: ObjectChanges = { removedObjects: [], changedObjects: [] }

/**
 * Brings the state up to an outcome, and answers which objects it changed. Rejects only where the record of an unchanged directory
 * cannot be read.
 */
export async function applyOutcome(state: DirectoryState, outcome: PassOutcome, log: Log): Promise<ObjectChanges> {
  const before = state.facts
  if (outcome.kind !== 'published') {
    state.happened({ kind: 'passed', outcome })
    // The core has just read it: by an operator's command, not by anything that the source reported.
    if (outcome.kind === 'failed' && (outcome.reason === 'Held' || outcome.reason === 'RolledBack'))
      await compareWithRecord(state)
    if (outcome.kind === 'moving' && outcome.state !== 'done') await compareMoving(state, log)
    return noChanges
  }
  const isNew = outcome.change !== 'unchanged'
  // Another program (`holdfast sync`) published this meanwhile: the date and the hooks are its own. Or an earlier content went.
  if (!isNew && (before.record?.digest !== outcome.digest || isPastOver(before))) await compareWithRecord(state)
  state.happened({ kind: 'passed', outcome })
  const { objects } = outcome
  if (isNew) return { removedObjects: removedObjects(before, objects), changedObjects: changedObjects(before, objects) }
  await recordVersions(state, objects, log)
  return noChanges
}

/** A successful move counts even where the comparison fails; the next comparison repeats that. */
async function compareMoving(state: DirectoryState, log: Log): Promise<void> {
  try {
    await compareWithRecord(state)
  } catch (error) {
    const { path } = state
    log.error(
      { reason: 'PublishFailed', directory: path },
      `could not compare ${path} with its record: ${messageOf(error)}`,
    )
  }
}

function removedObjects(facts: DirectoryFacts, objects: readonly PublishedObject[]): PublishedObject[] {
  const published = new Set(objects.map(objectName))
  const configured = new Set(referencesOf(facts.configuration).map(objectName))
  const selected = new Set(selectionsOf(facts.configuration).map(({ reference }) => collectionOf(reference)))
  // No person needs to know of the removal of an object that the operator took out of the configuration.
  return facts.objects.filter(
    (object) =>
      !published.has(objectName(object)) && (configured.has(objectName(object)) || selected.has(collectionOf(object))),
  )
}

function collectionOf({ kind, namespace }: Pick<PublishedObject, 'kind' | 'namespace'>): string {
  return `${kind} ${namespace}`
}

function changedObjects(facts: DirectoryFacts, objects: readonly PublishedObject[]): PublishedObject[] {
  const before = new Map(facts.objects.map((object) => [objectName(object), object]))
  return objects.map(withoutPaths).filter((object) => {
    const known = before.get(objectName(object))
    return known?.uid !== object.uid || known.resourceVersion !== object.resourceVersion
  })
}
