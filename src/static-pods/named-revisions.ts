/*
 * Which revisions must stay: those that a manifest on the node names, and the last known good one. Whatever cannot be read
 * is an error, never "names nothing".
 */
import { readlink, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.js'
import { messageOf } from './failure.js'
import { parseManifest } from './manifest.js'
import { parseRevision, revisionsNamedIn } from './names.js'
import { codeOf, listManifests, readSmallFile } from './read-file.js'

/** Each revision that a manifest in the directory names, by path or by its label, and the manifest that names it. */
export async function revisionsOfManifests(
  manifestDirectory: string,
  pod: string,
  log: Log,
): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for (const path of await listManifests(manifestDirectory)) {
    const bytes = await readSmallFile(path, { follow: true })
    if (bytes === undefined) continue
    const own = path === join(manifestDirectory, `${pod}.yaml`)
    for (const revision of await revisionsIn(bytes, path, pod, own, log)) {
      if (!found.has(revision)) found.set(revision, path)
    }
  }
  return found
}

async function revisionsIn(bytes: Uint8Array, path: string, pod: string, own: boolean, log: Log): Promise<Set<number>> {
  const found = revisionsNamedIn(pod, Buffer.from(bytes).toString('latin1'))
  try {
    const manifest = await parseManifest(bytes, path)
    // Text that YAML or JSON may write with escapes is looked at as it is meant, too.
    for (const revision of revisionsNamedIn(pod, JSON.stringify(manifest.pod))) found.add(revision)
    const label = own ? parseRevision(manifest.revision ?? '') : undefined
    if (label !== undefined) found.add(label)
  } catch (error) {
    log.warn({ path, error: messageOf(error) }, 'a manifest is not one kubelet could run; it was searched as text')
  }
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
