import { objectName } from '../message-text.js'
import { readPublication, recordObjects } from '../durable/index.js'
import type { RecordedObject } from '../durable/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { withoutPaths, type PublishedObject } from './conditions.js'
import type { DirectoryState } from './directory-state.js'

/**
 * Milliseconds between two times that versions are recorded without a publication. Some objects get another version every two
 * seconds, and never other content (an annotation with a lease in it): a record that grew with each would never stop growing.
 */
const shortestInterval = 10 * 60_000

/**
 * Records newer versions of the published content's objects, since after a restart the record is the floor below which the agent accepts no
 * version. `objects`: those of the rendering; writes only those whose recorded version differs. At most every ten minutes, unless it is
 * `urgent`. Never rejects: after a failure the floor stays.
 */
export async function recordVersions(
  state: DirectoryState,
  objects: readonly RecordedObject[],
  log: Log,
  { urgent = false } = {},
): Promise<void> {
  const { path } = state
  const { record, versions } = state.facts
  const known = new Map(record?.objects.map((object) => [objectName(object), object]))
  const newer = objects.filter((object) => !isSameVersion(object, known.get(objectName(object))))
  const holdBack = (until: number | undefined) => state.happened({ kind: 'held back', until })
  holdBack(undefined)
  if (!record || newer.length === 0) return
  const now = performance.now()
  // The content is another object's from now on, and no earlier content of the deleted one.
  const isOther = newer.some((object) => known.get(objectName(object))?.uid !== object.uid)
  const wait = versions.recordedAt + shortestInterval - now
  if (!urgent && !isOther && wait > 0) {
    holdBack(Date.now() + wait)
    return
  }
  try {
    if (!(await recordObjects(path, record.digest, newer))) return
    const names = new Set(newer.map(objectName))
    const others = record.objects.filter((object) => !names.has(objectName(object)))
    state.happened({ kind: 'recorded', objects: [...others, ...newer.map(withoutPaths)], at: now })
  } catch (error) {
    const message = `${path}: could not record the newest versions of its objects: ${messageOf(error)}`
    log.warn({ directory: path }, message)
  }
}

/** The same for versions that were held back, from the state. Only the record knows the files of an object. */
export async function recordHeldBack(
  state: DirectoryState,
  log: Log,
  options: { readonly urgent?: boolean } = {},
): Promise<void> {
  const { record, objects: newest } = state.facts
  const latest = new Map(newest.map((object) => [objectName(object), object]))
  const isKnown = (one: PublishedObject, now: PublishedObject | undefined) =>
    now === undefined || isSameVersion(one, now)
  if (!record || record.objects.every((one) => isKnown(one, latest.get(objectName(one))))) {
    state.happened({ kind: 'held back', until: undefined })
    return
  }
  const publication = await readPublication(state.path).catch(() => undefined)
  if (publication === undefined || publication.digest !== record.digest) return
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
 * Records which of the published content's objects are gone, since objects of files may have no uid that would tell their successors. Never
 * rejects: a later pass tries again.
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
