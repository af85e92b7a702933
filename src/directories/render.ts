/**
 * From objects to files: what a configured directory must hold now. A pure function of its arguments: it reads neither the
 * disk nor the network, copies no content but that of combined files, and its findings never hold content.
 */
import { objectName } from '../message-text.js'
import type { DirectoryConfiguration, SelectedContent, ObjectContent } from '../config/types.js'
import type { KubernetesObject, LoadedState, ObjectReference, SelectedState } from '../objects/types.js'
import { availabilityOf, type Availability, missingKey } from './availability.js'
import { certificateBlocks } from '../x509/certificates.js'
import { Draft } from './draft.js'
import { renderCombined } from './render-combined.js'
import type { CertificateDate, ContentFinding, KeptObject, RenderedFile, Rendering } from './types.js'
import { certificateDate, checkBundles, dateFindings, unaskedFindings, validations } from './validate.js'
import { isDataKey } from '../kubernetes-names.js'

/** Lets the loop serve the others: the certificates and keys of one object are read in one go, those of the next after this. */
const turn = () => new Promise(setImmediate)

/**
 * Renders a directory whose selections are expanded. `latest`: the source's answer, undefined before its first. `kept`: the published
 * part of an object, undefined where it has none. `now` decides which certificates are reported as expired.
 */
export async function render(
  directory: DirectoryConfiguration,
  latest: (reference: ObjectReference) => LoadedState | SelectedState | undefined,
  kept: (reference: ObjectReference) => KeptObject | undefined,
  now: Date = new Date(),
): Promise<Rendering> {
  const draft = new Draft(directory.limits.files)
  // Reads each object once, so that all of a directory's contents see the same version of it.
  const known = new Map<string, Availability>()
  const availability = (reference: ObjectReference) => {
    const name = objectName(reference)
    const found = known.get(name) ?? availabilityOf(reference, latest(reference), kept(reference))
    known.set(name, found)
    return found
  }
  for (const content of directory.contents) {
    if (draft.isFull) break
    switch (content.type) {
      case 'object':
        renderObject(draft, content, availability(content.reference), directory.onMissing)
        break
      case 'combine':
        renderCombined(draft, content, availability, directory.onMissing)
        break
      case 'selector':
        renderSelection(
          draft,
          content,
          latest(content.reference),
          selectedMembers(content, directory).map(availability),
        )
    }
  }
  if (draft.findings.length > 0) return { ready: false, findings: draft.findings }
  return finishRendering(directory, draft, [...known.values()], now)
}

/** The objects that the selection matches. */
function selectedMembers({ place }: SelectedContent, { contents }: DirectoryConfiguration): ObjectReference[] {
  return contents.flatMap((content) =>
    content.type === 'object' && content.selected && content.place === place ? [content.reference] : [],
  )
}

async function finishRendering(
  directory: DirectoryConfiguration,
  draft: Draft,
  known: readonly Availability[],
  now: Date,
): Promise<Rendering> {
  const rules = directory.validate.flatMap((validation) =>
    typeof validation === 'string' ? [validations[validation]] : [],
  )
  const findings: ContentFinding[] = []
  for (const object of rules.length > 0 ? presentSecrets(known) : []) {
    findings.push(...rules.flatMap((rule) => rule.secret(object)))
    await turn()
  }
  const parts = [...draft.files.values()].flatMap(({ parts = [] }) => parts)
  findings.push(...checkBundles(directory, parts, known.length > 0 && known.every(({ state }) => state === 'present')))
  const certificates: CertificateDate[] = []
  const warnings: ContentFinding[] = []
  // Without a prototype: `__proto__` is a key that the API allows.
  const files = Object.create(null) as Record<string, RenderedFile>
  for (const [path, { content, mode, origin, reference, kept }] of draft.files) {
    files[path] = mode === undefined ? { content } : { content, mode }
    const blocks = certificateBlocks(content)
    const file = { path, content, blocks, origin, reference }
    if (!kept) findings.push(...rules.flatMap((rule) => rule.file(file)))
    if (rules.length === 0) warnings.push(...unaskedFindings(file))
    const date = certificateDate(path, blocks)
    if (date !== undefined) certificates.push(date)
    if (blocks.length > 0) await turn()
  }
  if (findings.length > 0) return { ready: false, findings }
  return {
    ready: true,
    files,
    objects: draft.objects,
    certificates,
    warnings: [...dateFindings(certificates, now), ...warnings],
  }
}

function presentSecrets(known: readonly Availability[]): KubernetesObject[] {
  return known
    .filter((availability) => availability.state === 'present')
    .map(({ object }) => object)
    .filter(({ reference }) => reference.kind === 'Secret')
}

/**
 * Whether the objects of a selection may be published: each has a separate content beside it. An unread selection is never "none"; and
 * an object that is gone already, although the selection has not said so yet, is none.
 */
function renderSelection(
  draft: Draft,
  { reference, place, optional }: SelectedContent,
  state: LoadedState | SelectedState | undefined,
  members: readonly Availability[],
): void {
  const name = objectName(reference)
  if (state?.state === 'selected') {
    if (optional || members.some(isThere)) return
    const { kind, namespace, selector } = reference
    const todo = `create one, set its label, or make ${place} optional`
    draft.find({
      reason: 'ObjectMissing',
      message: `no ${kind} in namespace ${namespace} matches ${selector}: ${todo}`,
    })
  } else if (state?.state === 'unknown') {
    draft.find({ reason: state.reason, message: `${name}: ${state.message}` })
  } else draft.find({ reason: 'SourceUnavailable', message: `${name}: the source has not answered yet` })
}

function isThere({ state, kept }: Availability): boolean {
  return state === 'leaving' ? kept !== undefined : state !== 'absent'
}

/** Adds the files of one object to the draft. Semantics of `items` and `optional` as kubelet's: pkg/volume/secret, MakePayload. */
function renderObject(
  draft: Draft,
  content: ObjectContent,
  availability: Availability,
  onMissing: 'keep' | 'remove',
): void {
  if (availability.state === 'present') {
    renderPresent(draft, content, availability.object)
    return
  }
  const { state, kept } = availability
  const published = kept && publishedOf(content, kept)
  // An object that only a selector names goes with its label or its deletion; its published part stays until it is gone.
  const mayGo = content.selected === true && (state === 'absent' || (state === 'leaving' && kept === undefined))
  if (content.optional || mayGo) {
    // An unreadable object may well exist: only a certainly absent one is left out.
    const keeps = state !== 'absent' || (onMissing === 'keep' && content.selected !== true)
    if (keeps && kept !== undefined && published !== undefined) keep(draft, content, kept, published.paths)
    else if (state === 'unknown') draft.find(availability.finding)
    return
  }
  if (state === 'unknown') draft.find(availability.finding)
  else if (state === 'leaving' && kept !== undefined && published?.complete === true) {
    keep(draft, content, kept, published.paths)
  } else draft.lacks(availability, content.place)
}

function renderPresent(draft: Draft, content: ObjectContent, object: KubernetesObject): void {
  const { reference } = content
  draft.record(reference, object)
  const add = (key: string, bytes: Uint8Array, path: string, mode: number | undefined) => {
    const origin = `${content.place}, ${objectName(reference)}, key ${key}`
    const file = { content: bytes, origin, reference, kept: false, parts: [{ reference, key, bytes }] }
    draft.add(path, mode === undefined ? file : { ...file, mode }, reference)
    draft.record(reference, object, { path })
  }
  if (content.items === undefined) {
    for (const [key, bytes] of object.data) {
      if (isDataKey(key)) add(key, bytes, pathInto(content, key), undefined)
      else {
        const message = `${objectName(reference)} has a key that is not a valid file name: ${JSON.stringify(key.slice(0, 64))}`
        draft.find({ reason: 'ObjectInvalid', message, reference })
      }
    }
    return
  }
  for (const { key, path, mode } of content.items) {
    const bytes = object.data.get(key)
    if (bytes !== undefined) add(key, bytes, pathInto(content, path), mode)
    else if (!content.optional) draft.find(missingKey(reference, key, content.place))
  }
}

/**
 * The published part of an object, as far as this content needs it. The content may have changed since: paths that it would no
 * longer write are not its own. `complete`: no needed key is missing.
 */
function publishedOf(
  content: ObjectContent,
  { recorded, files }: KeptObject,
): { paths: readonly string[]; complete: boolean } | undefined {
  const there = new Set(recorded.paths.filter((path) => Object.hasOwn(files, path)))
  if (content.items !== undefined) {
    const asked = content.items.map(({ path }) => pathInto(content, path))
    const paths = asked.filter((path) => there.has(path))
    return paths.length === 0 ? undefined : { paths, complete: paths.length === asked.length }
  }
  const prefix = pathInto(content, '')
  const paths = [...there].filter((path) => path.startsWith(prefix) && !path.includes('/', prefix.length))
  // An object without a key is published completely without a file.
  const elsewhere = recorded.paths.length > 0 || recorded.combined !== undefined
  return paths.length === 0 && elsewhere ? undefined : { paths, complete: true }
}

/** The files stay as they are, and so does the version that they are recorded with; modes are the configuration's. */
function keep(draft: Draft, content: ObjectContent, kept: KeptObject, paths: readonly string[]): void {
  const { reference } = content
  draft.record(reference, kept.recorded)
  for (const path of paths) {
    const file = kept.files[path]
    const origin = `${content.place}, ${objectName(reference)} as published`
    const known = draft.files.get(path)
    // Another content of the same object took the file already, and it is unknown which of the two gave it.
    if (file === undefined || (known?.kept === true && known.content === file.content)) continue
    const mode = content.items?.find((item) => pathInto(content, item.path) === path)?.mode
    const draftFile = { content: file.content, origin, reference, kept: true }
    draft.add(path, mode === undefined ? draftFile : { ...draftFile, mode }, reference)
    draft.record(reference, kept.recorded, { path })
  }
}

function pathInto({ into }: ObjectContent, path: string): string {
  return into === '' ? path : `${into}/${path}`
}
