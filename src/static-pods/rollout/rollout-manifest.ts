/* One manifest of a rollout, on its way forth and back: a file that another program has put in its place stays. */
import type { Disk } from '../../durable/index.js'
import type { WatchMeans } from '../ready/watch.js'
import { readNodeFile } from '../node-files.js'
import { bytesOf, type RolledManifest } from './rollout-state.js'

/** Makes a manifest live, durably: also where a predecessor may have been killed before its sync. */
export async function publishManifest(
  path: string,
  manifest: RolledManifest,
  { disk, log, signal }: WatchMeans,
): Promise<'published' | 'unchanged' | 'other'> {
  signal.throwIfAborted()
  if (!(await isOurs(path, manifest, disk))) return 'other'
  const content = bytesOf(manifest.next)
  const [result] = await disk.publishFiles([{ path, content, options: { mode: 0o600, log } }], signal)
  return result?.outcome === 'unchanged' ? 'unchanged' : 'published'
}

/** Puts the previous manifest back, durably; answers why not, where the other program's file stays. */
export async function restoreManifest(
  path: string,
  manifest: RolledManifest,
  { disk, log }: WatchMeans,
): Promise<string | undefined> {
  if (!(await isOurs(path, manifest, disk))) {
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

async function isOurs(path: string, { previous, next }: RolledManifest, { fs }: Disk): Promise<boolean> {
  const live = await readNodeFile(fs, path)
  const text = live === undefined ? null : Buffer.from(live).toString('base64')
  return text === next || text === previous
}
