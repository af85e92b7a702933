/*
 * Which revisions must stay: those that a manifest on the node names, and the last known good one. Whatever cannot be read
 * is an error, never "names nothing".
 */
import { readlink, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.js'
import { messageOf } from './failure.js'
import { parseManifest, type Manifest } from './manifest.js'
import { parseRevision, revisionsNamedIn } from './names.js'
import { codeOf, listManifests, readSmallFile } from './read-file.js'

/** A manifest that names a revision, or one that cannot be read as a pod and may name it. */
export interface NamingManifest {
  readonly path: string
  readonly isCertain: boolean
}

export interface NamedRevisions {
  /** The manifest by which the revision may be in use; undefined where there is none. */
  naming(revision: number): NamingManifest | undefined
}

/**
 * The revisions that manifests in the directory name, by path or by the pod's own label. What cannot be read as a pod may be one that
 * another program is about to write: it may name any revision.
 * @throws Error where the directory, or a file in it, cannot be read
 */
export async function revisionsOfManifests(manifestDirectory: string, pod: string, log: Log): Promise<NamedRevisions> {
  const found = new Map<number, NamingManifest>()
  let unreadable: NamingManifest | undefined
  for (const path of await listManifests(manifestDirectory)) {
    const bytes = await readSmallFile(path, { follow: true })
    if (bytes === undefined) continue
    const own = path === join(manifestDirectory, `${pod}.yaml`)
    try {
      const manifest = await parseManifest(bytes, path)
      for (const revision of revisionsIn(bytes, manifest, pod, own)) {
        if (!found.has(revision)) found.set(revision, { path, isCertain: true })
      }
    } catch (error) {
      log.warn({ path, error: messageOf(error) }, `${path} cannot be read as a pod, and may name any revision`)
      unreadable ??= { path, isCertain: false }
    }
  }
  return { naming: (revision) => found.get(revision) ?? unreadable }
}

function revisionsIn(bytes: Uint8Array, manifest: Manifest, pod: string, own: boolean): Set<number> {
  const found = revisionsNamedIn(pod, Buffer.from(bytes).toString('latin1'))
  // Text that YAML or JSON may write with escapes is looked at as it is meant, too.
  for (const revision of revisionsNamedIn(pod, JSON.stringify(manifest.pod))) found.add(revision)
  const label = own ? parseRevision(manifest.revision ?? '') : undefined
  if (label !== undefined) found.add(label)
  return found
}

/** Revisions that symbolic links in the resource directory lead to (`NAME-last-known-good`), and the link of each. */
export async function revisionsOfLinks(resourceDirectory: string, pod: string): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for (const entry of await entriesOf(resourceDirectory)) {
    if (!entry.isSymbolicLink()) continue
    const path = join(resourceDirectory, entry.name)
    for (const revision of revisionsNamedIn(pod, await readlink(path))) found.set(revision, path)
  }
  return found
}

/** Empty where there is no such directory. */
export async function entriesOf(directory: string) {
  try {
    return await readdir(directory, { withFileTypes: true })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return []
    throw new Error(`${directory} cannot be read: ${code ?? String(error)}`, { cause: error })
  }
}
