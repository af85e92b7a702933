/* One manifest of a rollout, on its way forth and back: a file that another program has put in its place stays. */
import { basename, dirname } from 'node:path'
import type { Disk } from '../../durable/index.js'
import type { Log } from '../../log.js'
import { readNodeFile } from '../node-files.js'
import { bytesOf, type RolledManifest } from './rollout-state.js'

interface Means {
  readonly disk: Disk
  readonly log: Log
}

/** Makes a manifest live, durably: also where a predecessor may have been killed before its sync. */
export async function publishManifest(
  path: string,
  manifest: RolledManifest,
  { disk, log, signal }: Means & { readonly signal: AbortSignal },
): Promise<'published' | 'unchanged' | 'other'> {
  signal.throwIfAborted()
  if ((await whose(path, manifest, disk)) === 'other') return 'other'
  const content = bytesOf(manifest.next)
  const [result] = await disk.publishFiles([{ path, content, options: { mode: 0o600, log } }], signal)
  return result?.outcome === 'unchanged' ? 'unchanged' : 'published'
}

/** Puts the previous manifest back, durably; answers why not, where the other program's file stays. */
export async function restoreManifest(
  path: string,
  manifest: RolledManifest,
  { disk, log }: Means,
): Promise<string | undefined> {
  if ((await whose(path, manifest, disk)) === 'other') {
    const problem = `another program has changed ${path} during the rollout: holdfast leaves it alone`
    log.error({ path }, problem)
    return problem
  }
  const { previous, mode, owner } = manifest
  if (previous === null) await disk.removeFile(path)
  else {
    const options = { mode, ...(owner && { owner }), log }
    await disk.publishFiles([{ path, content: bytesOf(previous), options }], undefined)
  }
  return undefined
}

/** The mode and the owner of the file at a path. */
export async function ownerAt(
  path: string,
  disk: Disk,
): Promise<{ readonly mode: number; readonly owner: { readonly uid: number; readonly gid: number } } | undefined> {
  const found = await disk.inDirectory(dirname(path), (parent) => disk.fs.look(parent, basename(path)))
  return found && { mode: found.mode, owner: { uid: found.uid, gid: found.gid } }
}

async function whose(path: string, { previous, next }: RolledManifest, { fs }: Disk): Promise<'ours' | 'other'> {
  const live = await readNodeFile(fs, path)
  const text = live === undefined ? null : Buffer.from(live).toString('base64')
  return text === next || text === previous ? 'ours' : 'other'
}
