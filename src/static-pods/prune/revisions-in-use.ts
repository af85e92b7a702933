/*
 * Which revisions must stay: those that a manifest on the node names, and the last known good one. An unreadable manifest is an
 * error, never "names nothing".
 */
import { nodeFiles } from '../../durable/index.js'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, messageOf } from '../../errors.js'
import type { FileSystem } from '../../durable/file-system.js'
import type { Log } from '../../log.js'
import { encodeJson } from '../../yaml/exact-number.js'
import { StaticPodError } from '../failure.js'
import { usualManifestDirectory } from '../host-path-users.js'
import { hostPathVolumes, namesByKernel } from '../host-paths.js'
import { parseManifest, type Manifest } from '../pod/manifest.js'
import { parseRevision, revisionOf, revisionsNamedIn } from '../names.js'
import { listManifests, readListed } from '../node-files.js'

/**
 * The directory whose manifests tell which revisions are in use: the named one; else `manifests` beside the resource directory, as
 * OpenShift has it; else the usual one. Without any of these, the first of them, with a warning: then no revision counts as
 * live.
 * @throws StaticPodError where the named one does not exist: a mistyped path must not make everything removable
 */
export async function manifestDirectoryOf(
  named: string | undefined,
  resourceDirectory: string,
  log: Log,
  fallback = usualManifestDirectory,
): Promise<string> {
  if (named !== undefined) {
    if (await exists(named)) return named
    throw new StaticPodError(
      `the manifest directory ${named} does not exist, so it is unknown which revisions are in use; nothing was removed; ` +
        `check --pod-manifest-dir, and whether it is mounted here`,
    )
  }
  const beside = join(dirname(resourceDirectory), 'manifests')
  for (const path of [beside, fallback]) if (await exists(path)) return path
  log.warn(
    { paths: [beside, fallback] },
    'found no manifest directory, so no revision counts as live; name the directory with --pod-manifest-dir',
  )
  return beside
}

/** True for an entry that stat refuses to show, too: reading it tells. */
async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => codeOf(error) !== 'ENOENT',
  )
}

interface Revisions {
  readonly manifestDirectory: string
  /** Holds them. */
  readonly resourceDirectory: string
  readonly pod: string
}

export interface NamedRevisions {
  /** The manifest that names the revision; undefined where none does. */
  naming(revision: number): string | undefined
  /** A file that is no pod, and so may name any revision. */
  readonly unreadable: string | undefined
}

/**
 * The revisions that manifests in the directory name: by path, in any spelling, or by the pod's own label. A file that cannot be read as a
 * pod may be a manifest that another program is about to write: it may name any revision.
 * @throws Error where the directory, or a file in it, cannot be read
 */
export async function revisionsOfManifests(
  fs: FileSystem,
  { manifestDirectory, resourceDirectory, pod }: Revisions,
  log: Log,
): Promise<NamedRevisions> {
  const found = new Map<number, string>()
  let unreadable: string | undefined
  for (const path of await listManifests(fs, manifestDirectory)) {
    const bytes = await readListed(fs, path)
    if (bytes === undefined) continue
    const own = path === join(manifestDirectory, `${pod}.yaml`)
    try {
      const manifest = await parseManifest(bytes, path)
      const inText = revisionsIn(bytes, manifest, pod, own)
      for (const revision of [...inText, ...(await revisionsMountedBy(fs, manifest, resourceDirectory, pod))]) {
        if (!found.has(revision)) found.set(revision, path)
      }
    } catch (error) {
      log.warn({ path, error: messageOf(error) }, `${path} is not readable as a pod, and may name any revision`)
      unreadable ??= path
    }
  }
  return { naming: (revision) => found.get(revision), unreadable }
}

function revisionsIn(bytes: Uint8Array, manifest: Manifest, pod: string, own: boolean): Set<number> {
  const found = revisionsNamedIn(pod, Buffer.from(bytes).toString('latin1'))
  // YAML and JSON may write the name with escapes: search the decoded manifest, too.
  for (const revision of revisionsNamedIn(pod, encodeJson(manifest.pod))) found.add(revision)
  const label = own ? parseRevision(manifest.revision ?? '') : undefined
  if (label !== undefined) found.add(label)
  return found
}

/** Revisions that a volume mounts under another name, by a symbolic link that lies anywhere. */
async function revisionsMountedBy(
  fs: FileSystem,
  { pod }: Manifest,
  resourceDirectory: string,
  name: string,
): Promise<number[]> {
  const resources = (await namesByKernel(fs, resourceDirectory)).at(-1) ?? resourceDirectory
  const revisions = new Set<number>()
  for (const path of hostPathVolumes(pod).flatMap(({ mounted }) => mounted)) {
    for (const known of await namesByKernel(fs, path)) {
      const [entry = ''] = known.startsWith(`${resources}/`) ? known.slice(resources.length + 1).split('/', 1) : []
      const revision = revisionOf(name, entry)
      if (revision !== undefined) revisions.add(revision)
    }
  }
  return [...revisions]
}

/** Revisions that symbolic links in the resource directory lead to (`NAME-last-known-good`), and the link of each. */
export async function revisionsOfLinks(
  fs: FileSystem,
  resourceDirectory: string,
  pod: string,
): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for (const { name, type } of await nodeFiles.entriesOf(fs, resourceDirectory)) {
    if (type !== 'symlink') continue
    const path = join(resourceDirectory, name)
    for (const revision of revisionsNamedIn(pod, (await nodeFiles.readLink(fs, path)) ?? '')) found.set(revision, path)
  }
  return found
}
