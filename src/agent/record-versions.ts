import { objectName } from '../message-text.js'
import { readPublication, recordObjects } from '../durable/index.js'
import type { RecordedObject } from '../durable/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { withoutPaths } from './conditions.js'
import { isBehindVersions, isSameVersion, recordingInterval, type DirectoryState } from './directory-state.js'

/**
 * Records newer versions of the published content's objects, since after a restart the record is the floor below which the agent accepts no
 * version. `objects`: those of the rendering; writes only those whose recorded version differs. At most every ten minutes, unless it is
 * `urgent`. Never rejects: after a failure the floor stays, until the time for the next ones.
 */
export async function recordVersions(
  state: DirectoryState,
  objects: readonly RecordedObject[],
  log: Log,
  { urgent = false } = {},
): Promise<void> {
  const { path } = state
  const { record, recordedAt } = state.facts
  const known = new Map(record?.objects.map((object) => [objectName(object), object]))
  const newer = objects.filter((object) => !isSameVersion(object, known.get(objectName(object))))
  if (!record || newer.length === 0) return
  const now = performance.now()
  // The content is another object's from now on, and no earlier content of the deleted one.
  const isOther = newer.some((object) => known.get(objectName(object))?.uid !== object.uid)
  if (!urgent && !isOther && now < recordedAt + recordingInterval) return
  try {
    if (!(await recordObjects(path, record.digest, newer))) return
    const names = new Set(newer.map(objectName))
    const others = record.objects.filter((object) => !names.has(objectName(object)))
    state.happened({ kind: 'recorded', objects: [...others, ...newer.map(withoutPaths)], at: now })
  } catch (error) {
    const message = `${path}: could not record the newest versions of its objects: ${messageOf(error)}`
    log.warn({ directory: path }, message)
    state.happened({ kind: 'recorded', objects: record.objects, at: now })
  }
}

/** The same for versions that were held back, from the state. Only the record knows the files of an object. */
export async function recordHeldBack(
  state: DirectoryState,
  log: Log,
  options: { readonly urgent?: boolean } = {},
): Promise<void> {
  const { record, objects: newest } = state.facts
  if (!isBehindVersions(state.facts)) return
  const latest = new Map(newest.map((object) => [objectName(object), object]))
  const publication = await readPublication(state.path).catch(() => undefined)
  if (publication === undefined || publication.digest !== record?.digest) return
  const objects = publication.objects.map((object) => {
    const { uid, resourceVersion } = latest.get(objectName(object)) ?? object
    return { ...object, uid, resourceVersion }
  })
  await recordVersions(state, objects, log, options)
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
