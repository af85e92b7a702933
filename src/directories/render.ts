/**
 * From objects to files: what a configured directory must hold now. A pure function of its arguments: it reads neither the
 * disk nor the network, copies no content but that of combined files, and its findings never hold content.
 */
import { objectName } from '../object-name.js'
import type { DirectoryConfiguration, SelectedContent } from '../config/types.js'
import type { KubernetesObject, LoadedState, ObjectReference, SelectedState } from '../objects/types.js'
import { availabilityOf, type Availability } from './availability.js'
import { certificateBlocks } from '../x509/certificates.js'
import { Draft } from './draft.js'
import { renderCombined } from './render-combined.js'
import { renderObject } from './render-object.js'
import { renderSelection } from './render-selection.js'
import type { CertificateDate, Finding, KeptObject, RenderedFile, Rendering } from './types.js'
import { certificateDate, checkBundles, dateFindings, unaskedFindings, validations } from './validate.js'

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
        renderSelection(draft, content, latest(content.reference), membersOf(content, directory).map(availability))
    }
  }
  if (draft.findings.length > 0) return { ready: false, findings: draft.findings }
  return finish(directory, draft, [...known.values()], now)
}

/** The objects that the selection matches. */
function membersOf({ place }: SelectedContent, { contents }: DirectoryConfiguration): ObjectReference[] {
  return contents.flatMap((content) =>
    content.type === 'object' && content.selected && content.place === place ? [content.reference] : [],
  )
}

async function finish(
  directory: DirectoryConfiguration,
  draft: Draft,
  known: readonly Availability[],
  now: Date,
): Promise<Rendering> {
  const rules = directory.validate.flatMap((validation) =>
    typeof validation === 'string' ? [validations[validation]] : [],
  )
  const findings: Finding[] = []
  for (const object of rules.length > 0 ? presentSecrets(known) : []) {
    findings.push(...rules.flatMap((rule) => rule.secret(object)))
    await turn()
  }
  const parts = [...draft.files.values()].flatMap(({ parts = [] }) => parts)
  findings.push(...checkBundles(directory, parts, known.length > 0 && known.every(({ state }) => state === 'present')))
  const certificates: CertificateDate[] = []
  const warnings: Finding[] = []
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
