/**
 * Two contents of one directory, compared for people: each entry on either side. The answer holds no byte of a Secret, and nothing
 * that tells one: neither its text nor its digest.
 */
import { objectName } from '../message-text.js'
import type { ContentEntry, TargetContent } from '../durable/look/index.js'
import type { RecordedObject } from '../durable/types.js'
import { compareCertificates, type CertificateChange } from './compare-certificates.js'
import { compareLines } from './compare-lines.js'

/** One of the two contents. */
export type Side = Pick<TargetContent, 'entries' | 'objects'>

type Aspect = 'type' | 'content' | 'mode' | 'owner'

/** The facts of one side of an entry that a diff shows. */
interface EntryFacts {
  readonly type: ContentEntry['type']
  readonly mode: number
  /** `uid:gid`. */
  readonly owner: string
  /** Bytes; null for an entry that is no file. */
  readonly size: number | null
  /** The objects that it was made from, as far as the record tells: `Secret demo/web`. */
  readonly objects: readonly string[]
}

export interface EntryChange {
  /** Relative to the directory, which is `.` itself. */
  readonly path: string
  readonly change: 'same' | 'added' | 'removed' | 'changed'
  /** The aspects that differ. */
  readonly differs: readonly Aspect[]
  readonly from: EntryFacts | null
  readonly to: EntryFacts | null
  /** Of a file whose certificates, or whose key, are others. */
  readonly certificates: readonly CertificateChange[]
  /** With `showText`: lines of a unified diff, or why there are none; null where the text is the same. */
  readonly text: { readonly lines: readonly string[] } | { readonly hidden: string } | null
}

/** Each entry that either of them has, in the order of the paths. `showText`: with the lines that come from ConfigMaps alone. */
export function compareContents(from: Side, to: Side, showText: boolean): EntryChange[] {
  const [old, now] = [byPath(from), byPath(to)]
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort((a, b) =>
    Buffer.compare(Buffer.from(a), Buffer.from(b)),
  )
  const certificates = compareCertificates(filesOf(from), filesOf(to))
  return paths.map((path) => {
    const [before, after] = [old.get(path), now.get(path)]
    const differs = before && after ? differencesOf(before, after) : []
    const isSame = before !== undefined && after !== undefined && differs.length === 0
    const hasOtherText = before === undefined || after === undefined || differs.includes('content')
    return {
      path: path === '' ? '.' : path,
      change: isSame ? 'same' : before === undefined ? 'added' : after === undefined ? 'removed' : 'changed',
      differs,
      from: before ? entryFacts(before, from) : null,
      to: after ? entryFacts(after, to) : null,
      certificates: certificates.get(path) ?? [],
      text:
        showText && hasOtherText
          ? textOf(before && { entry: before, side: from }, after && { entry: after, side: to })
          : null,
    }
  })
}

function byPath({ entries }: Side): Map<string, ContentEntry> {
  return new Map(entries.map((entry) => [entry.path, entry]))
}

function filesOf({ entries }: Side): Map<string, Uint8Array> {
  return new Map(entries.flatMap(({ path, content }) => (content ? [[path, content] as const] : [])))
}

function differencesOf(before: ContentEntry, after: ContentEntry): Aspect[] {
  const isOtherType = before.type !== after.type
  const differs: Record<Aspect, boolean> = {
    type: isOtherType,
    content: !isOtherType && before.sha256 !== after.sha256,
    mode: before.mode !== after.mode,
    owner: before.uid !== after.uid || before.gid !== after.gid,
  }
  return (Object.keys(differs) as Aspect[]).filter((aspect) => differs[aspect])
}

function entryFacts({ path, type, mode, uid, gid, size }: ContentEntry, { objects }: Side): EntryFacts {
  return {
    type,
    mode,
    owner: `${uid}:${gid}`,
    size: size ?? null,
    objects: originsOf(path, objects).map(objectName),
  }
}

function originsOf(path: string, objects: readonly RecordedObject[]): RecordedObject[] {
  return objects.filter(({ paths, combined = [] }) => paths.includes(path) || combined.includes(path))
}

interface Sided {
  readonly entry: ContentEntry
  readonly side: Side
}

/** An entry that is no file has no text. */
function textOf(before: Sided | undefined, after: Sided | undefined): EntryChange['text'] {
  const sides = [before, after].filter((side) => side !== undefined)
  if (sides.every(({ entry }) => entry.type !== 'file')) return null
  for (const side of sides) {
    const hidden = hiddenFor(side)
    if (hidden !== undefined) return { hidden }
  }
  return compareLines(before?.entry.content, after?.entry.content)
}

/** A diff shows only text that certainly came from ConfigMaps: on the disk, any program may have put a key into any file. */
function hiddenFor({ entry, side }: Sided): string | undefined {
  const origins = originsOf(entry.path, side.objects)
  if (origins.some(({ kind }) => kind !== 'ConfigMap')) return 'it holds what a Secret gave'
  if (entry.type !== 'file' || !entry.asRecorded || origins.length === 0)
    return 'it is not known to come from a ConfigMap'
  return entry.content === undefined ? 'it is too large' : undefined
}
