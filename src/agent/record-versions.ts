import { objectName } from '../object-name.js'
import { readPublication, recordObjects } from '../durable/index.js'
import type { RecordedObject } from '../durable/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { withoutPaths, type DirectoryState, type PublishedObject } from './directory-state.js'

/**
 * Milliseconds between two times that versions are recorded without a publication. Some objects get another version every two
 * seconds, and never other content (an annotation with a lease in it): a record that grew with each would never stop growing.
 */
const shortestInterval = 10 * 60_000

/**
 * Records newer versions of the objects that gave what is published, since after a restart the record is the floor below which no
 * version is accepted. `objects`: as they were rendered; only those that are recorded in another version are written. At most
 * every ten minutes, unless it is `urgent`. Never rejects: where this fails, the floor stays where it is.
 */
export async function recordVersions(
  state: DirectoryState,
  objects: readonly RecordedObject[],
  log: Log,
  { urgent = false } = {},
): Promise<void> {
  const { path, digest } = state
  const known = new Map(state.recordedObjects.map((object) => [objectName(object), object]))
  const newer = objects.filter((object) => !isSameVersion(object, known.get(objectName(object))))
  state.recordDue = undefined
  if (digest === undefined || newer.length === 0) return
  const now = performance.now()
  // What is there is another object's from now on, and no earlier content of the one that was deleted.
  const isOther = newer.some((object) => known.get(objectName(object))?.uid !== object.uid)
  const wait = state.recordedAt + shortestInterval - now
  if (!urgent && !isOther && wait > 0) {
    state.recordDue = Date.now() + wait
    return
  }
  try {
    if (!(await recordObjects(path, digest, newer))) return
    const names = new Set(newer.map(objectName))
    const others = state.recordedObjects.filter((object) => !names.has(objectName(object)))
    state.recordedObjects = [...others, ...newer.map(withoutPaths)]
    state.recordedAt = now
  } catch (error) {
    const message = `${path}: could not record the newest versions of its objects: ${messageOf(error)}`
    log.warn({ directory: path }, message)
  }
}

/** The same for what was held back, as the state knows it. Files of an object are known to its record alone. */
export async function recordHeldBack(
  state: DirectoryState,
  log: Log,
  options: { readonly urgent?: boolean } = {},
): Promise<void> {
  const latest = new Map(state.objects.map((object) => [objectName(object), object]))
  const isKnown = (one: PublishedObject, now: PublishedObject | undefined) =>
    now === undefined || isSameVersion(one, now)
  if (state.recordedObjects.every((one) => isKnown(one, latest.get(objectName(one))))) {
    state.recordDue = undefined
    return
  }
  const publication = await readPublication(state.path).catch(() => undefined)
  if (publication === undefined || publication.digest !== state.digest) return
  const objects = publication.objects.map((object) => {
    const { uid, resourceVersion } = latest.get(objectName(object)) ?? object
    return { ...object, uid, resourceVersion }
  })
  await recordVersions(state, objects, log, options)
}

function isSameVersion({ uid, resourceVersion }: PublishedObject, other: PublishedObject | undefined): boolean {
  return uid === other?.uid && resourceVersion === other.resourceVersion
}

/**
 * Records which of the objects that gave what is published are gone, where only that will tell once their names are there again: objects of
 * files may have no uid. Never rejects: a later pass tries again.
 */
export async function recordGone(path: string, isGone: (object: RecordedObject) => boolean, log: Log): Promise<void> {
  try {
    const publication = await readPublication(path)
    const gone = (publication?.objects ?? []).filter((one) => one.uid === '' && one.gone !== true && isGone(one))
    if (publication === undefined || gone.length === 0) return
    await recordObjects(
      path,
      publication.digest,
      gone.map((object) => ({ ...object, gone: true })),
    )
  } catch (error) {
    log.warn({ directory: path }, `${path}: could not record which of its objects are gone: ${messageOf(error)}`)
  }
}
