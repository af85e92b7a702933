import { compareResourceVersions } from '../objects/resource-version.js'
import { referencesOf } from '../config/references.js'
import type { DirectoryConfiguration } from '../config/types.js'
import { render } from '../directories/render.js'
import type { Finding, KeptObject, Rendering } from '../directories/types.js'
import { readPublication, readPublishedFiles } from '../durable/index.js'
import type { DirectoryRequest, HistoryLimits, PublicationOptions, RecordedObject } from '../durable/types.js'
import { codeOf } from '../errors.js'
import {
  describeReference,
  type LoadedState,
  type ObservedState,
  type ObjectReference,
  type ObjectVersion,
  type Source,
  type DesiredObject,
} from '../objects/types.js'
import type { DirectoryState } from './directory-state.js'

type Latest = (reference: ObjectReference) => ObservedState | undefined
type Loaded = (reference: ObjectReference) => LoadedState | undefined

/** What is to be written for a directory. */
export type Request = DirectoryRequest & PublicationOptions

/** The objects that the source has not reported yet. */
export function unreported(configuration: DirectoryConfiguration, latest: Latest): ObjectReference[] {
  return referencesOf(configuration).filter((reference) => latest(reference) === undefined)
}

/** What one pass knows of its objects, their content included: each is read at most once, whatever needs it. */
export class PassObjects {
  readonly #loaded = new Map<string, LoadedState | undefined>()

  constructor(
    private readonly source: Pick<Source, 'latest' | 'load'>,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * One after the other: what is read for all of them at once would take twice their memory. Answers why content that was dropped
   * from memory could not be read again, for the first such object; undefined: all of it is here.
   */
  async load(configuration: DirectoryConfiguration): Promise<Finding | undefined> {
    for (const reference of referencesOf(configuration)) {
      const name = describeReference(reference)
      if (this.#loaded.has(name)) continue
      const dropped = this.source.latest(reference)?.state === 'unloaded'
      const state = await this.source.load(reference, this.signal)
      if (dropped && state?.state === 'unknown') return { reason: state.reason, message: state.message, reference }
      this.#loaded.set(name, state)
    }
    return undefined
  }

  get latest(): Loaded {
    return (reference) => this.#loaded.get(describeReference(reference))
  }
}

/**
 * What the directory must hold by what the source says now. Rejects where what is to be kept cannot be read from the disk, and with
 * the signal's reason.
 */
export async function renderFrom(configuration: DirectoryConfiguration, objects: PassObjects): Promise<Rendering> {
  const unread = await objects.load(configuration)
  if (unread !== undefined) return { ready: false, findings: [unread], unread: true }
  const { latest } = objects
  const kept = await keptObjects(configuration, latest)
  return render(configuration, latest, (reference) => kept.get(describeReference(reference)))
}

/**
 * What is still published of the objects that cannot be rendered now: vanished, terminating, or not to be read. Whether it
 * stays is the renderer's matter.
 */
async function keptObjects(configuration: DirectoryConfiguration, latest: Loaded): Promise<Map<string, KeptObject>> {
  const kept = new Map<string, KeptObject>()
  const missing = referencesOf(configuration).filter((reference) => {
    const observation = latest(reference)
    return observation?.state !== 'present' || observation.object.terminating
  })
  if (missing.length === 0) return kept
  const publication = await readPublication(configuration.path)
  for (const reference of missing) {
    const recorded = publication?.objects.find((object) => isOf(object, reference))
    if (recorded === undefined) continue
    const paths = [...recorded.paths, ...(recorded.combined ?? [])]
    const files = await readKeptFiles(configuration.path, paths)
    kept.set(describeReference(reference), { recorded, files })
  }
  return kept
}

type KeptFiles = Awaited<ReturnType<typeof readPublishedFiles>>

/** What of it is still there. Somebody may have removed a file, or all of the target: then there is nothing of it to keep. */
async function readKeptFiles(target: string, paths: readonly string[]): Promise<KeptFiles> {
  try {
    return await readPublishedFiles(target, paths)
  } catch (error) {
    if (!isGone(error)) throw error
  }
  // Another type of file in the place of one of them must not take the others with it.
  const files: KeptFiles = {}
  for (const path of paths) {
    try {
      Object.assign(files, await readPublishedFiles(target, [path]))
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return files
}

/** What was published is not there any more, or something else stands in its place. */
function isGone(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}

function isOf(object: RecordedObject, { kind, namespace, name }: ObjectReference): boolean {
  return object.kind === kind && object.namespace === namespace && object.name === name
}

/** The write that makes the disk hold what was rendered. */
export function requestFor(
  configuration: DirectoryConfiguration,
  { files, objects }: Extract<Rendering, { ready: true }>,
  latest: Latest,
): Request {
  return {
    target: configuration.path,
    files: { ...files },
    contentStays: true,
    mode: configuration.mode,
    fileMode: configuration.fileMode,
    ...(configuration.owner ? { owner: configuration.owner } : {}),
    publish: configuration.publish,
    retire: configuration.retire,
    retireTimeout: configuration.retireTimeout,
    history: historyFor(configuration, latest),
    publisher: 'agent',
    foreign: configuration.adopt ? 'always' : 'same-names',
    objects: [...objects],
    hooks: configuration.afterPublish.map(({ key }) => key),
  }
}

/** Which earlier contents stay: an object that is gone, for certain, takes those away that were made from it. */
export function historyFor(configuration: DirectoryConfiguration, latest: Latest): HistoryLimits {
  const without = referencesOf(configuration).filter((reference) => latest(reference)?.state === 'absent')
  return { ...configuration.history, without }
}

/** All objects that these directories need, each once, with the newest version of it that any of them has published. */
export function desiredObjects(states: Iterable<DirectoryState>): DesiredObject[] {
  const desired = new Map<string, DesiredObject>()
  for (const state of states) {
    for (const reference of referencesOf(state.configuration)) {
      const { kind, namespace, name } = reference
      const published = state.objects.find(
        (object) => object.kind === kind && object.namespace === namespace && object.name === name,
      )
      const key = describeReference(reference)
      const known = desired.get(key)?.published
      const newest = newer(known, published && { uid: published.uid, resourceVersion: published.resourceVersion })
      desired.set(key, newest ? { reference, published: newest } : { reference })
    }
  }
  return [...desired.values()]
}

/** Versions of one object of an API server compare as numbers; of anything else, the first one stands. */
function newer(a: ObjectVersion | undefined, b: ObjectVersion | undefined): ObjectVersion | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return (compareResourceVersions(a.resourceVersion, b.resourceVersion) ?? 0) < 0 ? b : a
}
