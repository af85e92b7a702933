import { objectName } from '../message-text.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import { expand, referencesOf, selectionsOf } from '../config/references.js'
import type { DirectoryConfiguration, Limits } from '../config/types.js'
import { render } from '../directories/render.js'
import { certificateBlocks } from '../x509/certificates.js'
import type { ContentFinding, KeptObject, Rendering, Unrendered } from '../directories/types.js'
import { readPublication, readPublishedFiles, adoption } from '../durable/index.js'
import type { PublicationRequest } from '../durable/publish/index.js'
import { keyPairProblemAmong } from '../directories/validate.js'
import type { Adopting, HistoryLimits, Pin, RecordedObject } from '../durable/types.js'
import { codeOf } from '../errors.js'
import type {
  LoadedState,
  SelectedState,
  ObjectReference,
  ObjectVersion,
  Source,
  DesiredObject,
  ObjectKind,
} from '../objects/types.js'
import type { DirectoryState } from './directory-state.js'
import type { PublishedObject } from './conditions.js'
import { hasObject } from '../objects/same-state.js'
import { storedSize } from '../objects/stored-object.js'

type Loaded = (reference: ObjectReference) => LoadedState | SelectedState | undefined

/** What the source has not reported yet: objects, and selections. */
export function unreported(configuration: DirectoryConfiguration, latest: Source['latest']): ObjectReference[] {
  return referencesOf(expand(configuration, latest)).filter((reference) => latest(reference) === undefined)
}

/** The objects of one pass, with their content: it reads each at most once, for all of its uses. */
export class PassObjects {
  readonly #loaded = new Map<string, LoadedState | SelectedState | undefined>()

  constructor(
    private readonly source: Pick<Source, 'latest' | 'load'>,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Loads the objects of an expanded directory, one after the other: in parallel, their reads would take twice their memory. Answers why
   * it went no further: the first object whose dropped content the source could not read again, or that is more than the directory's
   * limits. undefined: all of it is here.
   */
  async load(configuration: DirectoryConfiguration): Promise<Unrendered | undefined> {
    const { limits } = configuration
    let size = 0
    for (const reference of referencesOf(configuration)) {
      if (reference.selector !== undefined) continue
      const name = objectName(reference)
      let state = this.#loaded.get(name)
      if (state === undefined) {
        const dropped = this.source.latest(reference)?.state === 'unloaded'
        state = await this.source.load(reference, this.signal)
        if (dropped && state?.state === 'unknown') {
          const finding = { reason: state.reason, message: state.message, reference }
          return { ready: false, findings: [finding], unread: true }
        }
      }
      if (state?.state === 'present') size += storedSize(state.object.data)
      if (size > limits.bytes) {
        const message = `${name}: with it, the objects of the directory take more than limits.bytes, ${limits.bytes} bytes`
        return { ready: false, findings: [{ reason: 'ObjectInvalid', message, reference }] }
      }
      this.#loaded.set(name, state)
    }
    return undefined
  }

  /**
   * With the present matches of its selections. The rendering uses the same ones, known or unknown: they may change while the pass renders
   * another directory, or reads objects.
   */
  expand(configuration: DirectoryConfiguration): DirectoryConfiguration {
    for (const { reference } of selectionsOf(configuration)) {
      const state = this.source.latest(reference)
      this.#loaded.set(objectName(reference), state?.state === 'unloaded' ? undefined : state)
    }
    return expand(configuration, (reference) => this.source.latest(reference))
  }

  get latest(): Loaded {
    return (reference) => this.#loaded.get(objectName(reference))
  }
}

/**
 * The content that the directory must hold by the source's present state. `emptied`: files that the last pass warned of. Rejects where it
 * cannot read the kept files from the disk, and with the signal's reason.
 */
export async function renderFrom(
  configured: DirectoryConfiguration,
  objects: PassObjects,
  emptied: readonly string[] = [],
): Promise<Rendering> {
  const configuration = objects.expand(configured)
  const unrendered = await objects.load(configuration)
  if (unrendered !== undefined) return unrendered
  const latest = withinLimits(objects.latest, configuration.limits)
  const kept = await keptObjects(configuration, latest)
  const rendering = await render(configuration, latest, (reference) => kept.get(objectName(reference)))
  if (!rendering.ready || !configuration.validate.includes('certificates')) return rendering
  const warnings = await emptiedFindings(configuration.path, rendering.files, emptied)
  // Dates first: they decide whether a comparison leads to another pass.
  return { ...rendering, warnings: [...rendering.warnings, ...warnings] }
}

/** A CA that was there is empty now: of a new issuer, that is right; of a bundle, consumers then trust nothing. */
async function emptiedFindings(
  target: string,
  files: Readonly<Record<string, { readonly content: Uint8Array }>>,
  emptied: readonly string[],
): Promise<ContentFinding[]> {
  // The first byte of a file decides for most: nothing copies a content of mebibytes.
  const isSpace = (byte: number) => byte <= 0x20
  const empty = Object.entries(files).flatMap(([path, { content }]) => (content.every(isSpace) ? [path] : []))
  if (empty.length === 0) return []
  const findings: ContentFinding[] = []
  for (const path of empty) {
    const published = emptied.includes(path) ? {} : await readPublishedFiles(target, [path]).catch(() => ({}))
    const held = Object.values(published).some(({ content }) => certificateBlocks(content).length > 0)
    if (!held && !emptied.includes(path)) continue
    const message = `${path} held certificates, and is empty now: holdfast publishes it so; validate: [bundle: KEY] refuses it`
    findings.push({ reason: 'CertificateInvalid', message, emptied: path })
  }
  return findings
}

/** An object with more keys than the directory reads is unknown to it, as one is that cannot be decoded. */
function withinLimits(latest: Loaded, { keys }: Limits): Loaded {
  return (reference) => {
    const state = latest(reference)
    if (state?.state !== 'present' || state.object.data.size <= keys) return state
    const message = `it has ${state.object.data.size} keys; limits.keys of the directory is ${keys}`
    return { state: 'unknown', reason: 'ObjectInvalid', message }
  }
}

/**
 * The published files of the objects that have no content now: vanished, terminating, or unreadable; and of those that gave a file together
 * with one of them. The renderer decides whether they stay.
 */
async function keptObjects(configuration: DirectoryConfiguration, latest: Loaded): Promise<Map<string, KeptObject>> {
  const kept = new Map<string, KeptObject>()
  const isMissing = (reference: ObjectReference): boolean => {
    if (reference.selector !== undefined) return false
    const observation = latest(reference)
    return observation?.state !== 'present' || observation.object.terminating
  }
  const missing = referencesOf(configuration).filter(isMissing)
  if (missing.length === 0) return kept
  const together = configuration.contents.flatMap((content) =>
    content.type === 'combine' && content.from.some(({ reference }) => isMissing(reference))
      ? content.from.map(({ reference }) => reference)
      : [],
  )
  const publication = await readPublication(configuration.path)
  for (const reference of new Map([...missing, ...together].map((one) => [objectName(one), one])).values()) {
    const recorded = publication?.objects.find((object) => objectName(object) === objectName(reference))
    if (recorded === undefined) continue
    const paths = [...recorded.paths, ...(recorded.combined ?? [])]
    const files = await readKeptFiles(configuration, paths)
    kept.set(objectName(reference), { recorded, files })
  }
  return kept
}

type KeptFiles = Awaited<ReturnType<typeof readPublishedFiles>>

/** The files that are still there. Another program may have removed one, or all of the target: then there is nothing to keep. */
async function readKeptFiles(
  { path: target, limits }: DirectoryConfiguration,
  paths: readonly string[],
): Promise<KeptFiles> {
  try {
    return await readPublishedFiles(target, paths, limits.bytes)
  } catch (error) {
    if (!isFileGone(error)) throw error
  }
  // Another type of file in the place of one of them must not take the others with it.
  const files = Object.create(null) as KeptFiles
  for (const path of paths) {
    try {
      Object.assign(files, await readPublishedFiles(target, [path], limits.bytes))
    } catch (error) {
      if (!isFileGone(error)) throw error
    }
  }
  return files
}

/** The published file has gone, or another entry has its place. */
function isFileGone(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}

/** The options that a pass gives to each directory. */
export type PassRequest = Pick<PublicationRequest, 'requireProven' | 'agent' | 'held' | 'lockTimeout' | 'log' | 'check'>

/** The request that makes the disk hold the rendered files. */
export function publicationRequest(
  configuration: DirectoryConfiguration,
  { files, objects }: Extract<Rendering, { ready: true }>,
  latest: Source['latest'],
  pass: PassRequest,
): PublicationRequest {
  return {
    ...pass,
    target: configuration.path,
    files,
    mode: configuration.mode,
    fileMode: configuration.fileMode,
    ...(configuration.owner ? { owner: configuration.owner } : {}),
    attributes: configuration.attributes,
    publish: configuration.publish,
    retireTimeout: configuration.retire === 'whenUnused' ? configuration.retireTimeout : undefined,
    history: historyFor(configuration, latest),
    supersedes: (pin) => isNewer(objects, pin, latest),
    publisher: 'agent',
    foreign: configuration.adopt === false ? 'same-names' : 'always',
    ...adoptingFor(configuration),
    objects: [...objects],
    hooks: configuration.afterPublish.map(({ key }) => key),
    movedFrom: configuration.movedFrom?.path ?? null,
    movedTo: null,
  }
}

/** In the form symlink, only a target that was let go may be taken over: holdfast does not exchange another program's links. */
function adoptingFor({ adopt }: DirectoryConfiguration): Pick<PublicationRequest, 'adopt'> {
  if (adopt === false) return {}
  return { adopt: adoption.takeOver(adoptingBy(adopt)) }
}

/** How the configuration wants a directory taken over. */
function adoptingBy(adopt: true | 'replace'): Adopting {
  return { replace: adopt === 'replace', keyPairs: keyPairProblemAmong }
}

/**
 * Which earlier contents stay: an object that is certainly gone takes its contents away, and so does an object that no selection matches
 * any more, and an object's successor with its name and another uid. While one selection is unknown, it may match any object of its kind
 * and namespace.
 */
export function historyFor(configuration: DirectoryConfiguration, latest: Source['latest']): HistoryLimits {
  // As they are now: a publication asks more than once.
  const needed = new Map(referencesOf(expand(configuration, latest)).map((one) => [objectName(one), latest(one)]))
  const selections = selectionsOf(configuration).map(({ reference }) => ({
    ...reference,
    now: latest(reference)?.state,
  }))
  const mayStay = (object: RecordedObject): boolean => {
    const name = objectName(object)
    const state = needed.get(name)
    if (state && hasObject(state)) return !isReplaced(object, state.object.uid)
    if (needed.has(name)) return state?.state !== 'absent'
    const its = selections.filter(({ kind, namespace }) => kind === object.kind && namespace === object.namespace)
    return its.length === 0 || its.some(({ now }) => now !== 'selected')
  }
  return { ...configuration.history, mayStay }
}

/** An API server gives no two objects one uid, and deletes an object before it makes another one by its name. Objects of files may have none. */
function isReplaced({ uid, others = [] }: RecordedObject, now: string): boolean {
  return now !== '' && [uid, ...others].some((one) => one !== '' && one !== now)
}

/**
 * All that these directories need, each once, with the newest version of it that any of them has published. The matches of a selection are
 * among them; until the source knows them, its published objects, so that the source notices an older history.
 */
export function desiredObjects(states: Iterable<DirectoryState>, latest: Source['latest']): DesiredObject[] {
  const desired = new Map<string, DesiredObject>()
  for (const { facts } of states) {
    const { configuration, objects } = facts
    const published = new Map(objects.map((object) => [objectName(object), object]))
    const unknown = selectionsOf(configuration).filter(({ reference }) => latest(reference)?.state !== 'selected')
    const selected = objects.flatMap((object) => unknown.flatMap(({ reference }) => matching(reference, object)))
    for (const reference of [...referencesOf(expand(configuration, latest)), ...selected]) {
      const key = objectName(reference)
      const version = published.get(key)
      const known = desired.get(key)?.published
      const newest = newer(known, version && { uid: version.uid, resourceVersion: version.resourceVersion })
      desired.set(key, newest ? { reference, published: newest } : { reference })
    }
  }
  return [...desired.values()]
}

/** A published object may be an earlier match of the selection. */
function matching({ kind, namespace }: ObjectReference, object: PublishedObject): ObjectReference[] {
  return object.kind === kind && object.namespace === namespace ? [{ kind, namespace, name: object.name }] : []
}

/** Versions of one object of an API server compare as numbers; of anything else, the first one stands. */
function newer(a: ObjectVersion | undefined, b: ObjectVersion | undefined): ObjectVersion | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return (compareResourceVersions(a.resourceVersion, b.resourceVersion) ?? 0) < 0 ? b : a
}

/**
 * Whether something has come since an operator rolled back: a newer version of an object, another object by its name, or none any more.
 * Versions that have no order are newer where they differ. `objects`: those of the content to publish.
 * @internal
 */
export function isNewer(objects: readonly RecordedObject[], { from }: Pin, latest: Source['latest']): boolean {
  const now = new Set(objects.map(objectName))
  const before = new Map(from.map((object) => [objectName(object), object]))
  const isGone = (object: RecordedObject): boolean =>
    !now.has(objectName(object)) || latest({ ...object, kind: object.kind as ObjectKind })?.state === 'absent'
  const isLater = (object: RecordedObject): boolean => {
    const known = before.get(objectName(object))
    if (known?.uid !== object.uid) return true
    const order = compareResourceVersions(object.resourceVersion, known.resourceVersion)
    return order === undefined ? object.resourceVersion !== known.resourceVersion : order > 0
  }
  return from.some(isGone) || objects.some(isLater)
}
