/* An object's keys as files: their directory, their modes, and the words that are replaced in them. */
import type { KubernetesObject, ObjectKind } from '../../objects/types.js'

/** An object that an installation needs, and the name under which its files go: without the revision's suffix. */
export interface NeededObject {
  readonly kind: ObjectKind
  readonly name: string
  readonly directoryName: string
  readonly optional: boolean
}

export interface FetchedObject extends NeededObject {
  /** The need that this object answers. */
  readonly needed: NeededObject
  readonly object: KubernetesObject
}

export interface RevisionFile {
  readonly content: Uint8Array
  readonly mode: number
}

/** `secrets/NAME` or `configmaps/NAME`, as library-go lays it out. */
export function objectDirectory({ kind, directoryName }: FetchedObject): string {
  return `${kind === 'Secret' ? 'secrets' : 'configmaps'}/${directoryName}`
}

/** The object's keys as files, by name, with library-go's modes: 0600, but `*.sh` 0700 of a Secret, 0755 of a ConfigMap. */
export function objectFiles(fetched: FetchedObject, words: Substitutions): Map<string, RevisionFile> {
  const files = new Map<string, RevisionFile>()
  for (const [key, bytes] of fetched.object.data) {
    files.set(key, { content: substitute(bytes, words), mode: fileMode(fetched.kind === 'Secret', key) })
  }
  return files
}

export function fileMode(secret: boolean, name: string): number {
  if (!name.endsWith('.sh')) return 0o600
  return secret ? 0o700 : 0o755
}

/** The values of the words that a template may hold. */
export interface Substitutions {
  readonly revision: number
  /** undefined: NODE_NAME and NODE_ENVVAR_NAME stay as they are. */
  readonly nodeName: string | undefined
}

/**
 * Replaces REVISION, then NODE_NAME, then NODE_ENVVAR_NAME (the node's name with `_` for `-` and `.`) in any bytes, which
 * need not be text: all others stay as they are.
 */
export function substitute(bytes: Uint8Array, { revision, nodeName }: Substitutions): Uint8Array {
  const words: [string, string][] = [['REVISION', String(revision)]]
  if (nodeName !== undefined) {
    words.push(['NODE_NAME', nodeName], ['NODE_ENVVAR_NAME', nodeName.replace(/[-.]/g, '_')])
  }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (words.every(([word]) => !buffer.includes(word, 0, 'latin1'))) return bytes
  // latin1 maps each byte to one character and back, so that nothing is decoded.
  let text = buffer.toString('latin1')
  for (const [word, value] of words) text = text.replaceAll(word, () => value)
  return Buffer.from(text, 'latin1')
}
