import type { FetchedObject } from './fetch-objects.js'
import { substitute, type Substitutions } from './substitute.js'

export interface PlannedFile {
  readonly content: Uint8Array
  readonly mode: number
}

/** `secrets/NAME` or `configmaps/NAME`, as library-go lays it out. */
export function objectDirectory({ kind, directoryName }: FetchedObject): string {
  return `${kind === 'Secret' ? 'secrets' : 'configmaps'}/${directoryName}`
}

/** The object's keys as files, by name, with library-go's modes: 0600, but `*.sh` 0700 of a Secret, 0755 of a ConfigMap. */
export function objectFiles(fetched: FetchedObject, words: Substitutions): Map<string, PlannedFile> {
  const files = new Map<string, PlannedFile>()
  for (const [key, bytes] of fetched.object.data) {
    files.set(key, { content: substitute(bytes, words), mode: fileMode(fetched.kind === 'Secret', key) })
  }
  return files
}

export function fileMode(secret: boolean, name: string): number {
  if (!name.endsWith('.sh')) return 0o600
  return secret ? 0o700 : 0o755
}
