/**
 * One file of several keys. It belongs to no object alone, so it has current versions only, or stays as it is published:
 * it never mixes kept and new parts. While it stays, each of its objects is recorded with the version that the rest of
 * the directory has of it.
 */
import { objectName } from '../message-text.js'
import type { CombinedContent } from '../config/types.js'
import type { KubernetesObject } from '../objects/types.js'
import { missingKey, type Availability } from './availability.js'
import type { Draft, DraftFile } from './draft.js'
import type { ContentFinding } from './types.js'

const none = new Uint8Array()

type Part =
  | { readonly state: 'here'; readonly object: KubernetesObject; readonly bytes: Uint8Array }
  | { readonly state: 'keyless' | 'unknown'; readonly finding: ContentFinding }
  | { readonly state: 'absent' | 'leaving'; readonly available: Availability }

export function renderCombined(
  draft: Draft,
  content: CombinedContent,
  availability: (reference: CombinedContent['from'][number]['reference']) => Availability,
  onMissing: 'keep' | 'remove',
): void {
  const available = content.from.map(({ reference }) => availability(reference))
  const parts = content.from.map(({ key }, index) => partOf(content, key, available[index]))
  const lacking = parts.filter((part) => part.state !== 'here')
  if (lacking.length === 0) {
    const here = parts.filter((part) => part.state === 'here')
    const made = content.from.map(({ reference, key }, index) => ({
      reference,
      key,
      bytes: here[index]?.bytes ?? none,
    }))
    addPart(draft, content, available, {
      content: joinedParts(made.map(({ bytes }) => bytes)),
      kept: false,
      parts: made,
    })
    return
  }
  const has = (state: Part['state']) => lacking.some((part) => part.state === state)
  if (!content.optional) {
    const blocking = lacking.filter(({ state }) => state !== 'leaving')
    for (const part of blocking) report(draft, part, content.place)
    if (blocking.length > 0) return
  } else if (has('keyless') || (has('absent') && onMissing === 'remove')) return
  const published = publishedFile(content, available)
  if (published !== undefined) addPart(draft, content, available, { content: published, kept: true })
  // Without its absent part the file cannot be, even if all others come.
  else if (!has('absent') && (has('unknown') || !content.optional)) {
    for (const part of lacking) if (part.state === 'unknown' || !content.optional) report(draft, part, content.place)
  }
}

function report(draft: Draft, part: Exclude<Part, { state: 'here' }>, place: string): void {
  if ('finding' in part) draft.find(part.finding)
  else draft.lacks(part.available, place)
}

function partOf(content: CombinedContent, key: string, available: Availability | undefined): Part {
  if (available === undefined) throw new RangeError('a part without its object')
  switch (available.state) {
    case 'present': {
      const bytes = available.object.data.get(key)
      return bytes === undefined
        ? { state: 'keyless', finding: missingKey(available.reference, key, content.place) }
        : { state: 'here', object: available.object, bytes }
    }
    case 'unknown':
      return { state: 'unknown', finding: available.finding }
    case 'absent':
    case 'leaving':
      return { state: available.state, available }
  }
}

/** The file as it is published, if it was made of the same objects. */
function publishedFile({ path }: CombinedContent, available: readonly Availability[]): Uint8Array | undefined {
  const same = available.every(({ kept }) => kept?.recorded.combined?.includes(path) === true)
  const holder = available.find(({ kept }) => kept !== undefined && Object.hasOwn(kept.files, path))
  return same ? holder?.kept?.files[path]?.content : undefined
}

function addPart(
  draft: Draft,
  { path, place, from, mode }: CombinedContent,
  available: readonly Availability[],
  file: Pick<DraftFile, 'content' | 'kept' | 'parts'>,
): void {
  const [first] = from
  if (first === undefined) return
  const names = [...new Set(from.map(({ reference }) => objectName(reference)))]
  const origin = `${place}, of ${names.join(' and ')}`
  const draftFile = { ...file, origin, reference: names.length === 1 ? first.reference : undefined }
  draft.add(path, mode === undefined ? draftFile : { ...draftFile, mode }, first.reference)
  for (const one of available) {
    const version = one.state === 'present' ? one.object : one.kept?.recorded
    if (version === undefined) continue
    draft.record(one.reference, version, { combined: path, from: file.kept ? one.kept?.recorded : undefined })
  }
}

const dashes = Buffer.from('-----')

/** Byte for byte, but for one newline where a PEM block that lacks its last one would swallow the next block's first line. */
function joinedParts(parts: readonly Uint8Array[]): Uint8Array {
  const pieces = parts.flatMap((part, index) => {
    const glued = index < parts.length - 1 && dashes.equals(part.subarray(-dashes.length))
    return glued ? [part, Buffer.from('\n')] : [part]
  })
  return Buffer.concat(pieces)
}
