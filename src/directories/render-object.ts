import { objectName } from '../object-name.js'
import { isDataKey } from '../kubernetes-names.js'
import type { ObjectContent } from '../config/types.js'
import type { KubernetesObject } from '../objects/types.js'
import { missingKey, type Availability } from './availability.js'
import type { Draft } from './draft.js'
import type { KeptObject } from './types.js'

/** Adds the files of one object to the draft. Semantics of `items` and `optional` as kubelet's: pkg/volume/secret, MakePayload. */
export function renderObject(
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
      if (isDataKey(key)) add(key, bytes, within(content, key), undefined)
      else {
        const message = `${objectName(reference)} has a key that is not a valid file name: ${JSON.stringify(key.slice(0, 64))}`
        draft.find({ reason: 'ObjectInvalid', message, reference })
      }
    }
    return
  }
  for (const { key, path, mode } of content.items) {
    const bytes = object.data.get(key)
    if (bytes !== undefined) add(key, bytes, within(content, path), mode)
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
    const asked = content.items.map(({ path }) => within(content, path))
    const paths = asked.filter((path) => there.has(path))
    return paths.length === 0 ? undefined : { paths, complete: paths.length === asked.length }
  }
  const prefix = within(content, '')
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
    const mode = content.items?.find((item) => within(content, item.path) === path)?.mode
    const draftFile = { content: file.content, origin, reference, kept: true }
    draft.add(path, mode === undefined ? draftFile : { ...draftFile, mode }, reference)
    draft.record(reference, kept.recorded, { path })
  }
}

function within({ into }: ObjectContent, path: string): string {
  return into === '' ? path : `${into}/${path}`
}
