/* Installs one manifest from a local file, and its other files from a local directory, without an API server. */
import { basename, resolve } from 'node:path'
import { Deadline } from '../../deadline.js'
import { messageOf } from '../../errors.js'
import { readMounted } from '../../mounted-volume.js'
import { InvalidInput, late } from '../failure.js'
import { dryRun, install } from './install.js'
import {
  revisionRequest,
  type InstallPlan,
  type InstallRequest,
  type InstallResult,
  type InstallSettings,
} from './install-plan.js'
import { parseManifest, refuseUnrunnable, withRevision, writeManifest } from '../pod/manifest.js'
import { isObjectName } from '../../kubernetes-names.js'
import { readLocalTree, unreadable } from './local-tree.js'
import { revisionName } from '../names.js'
import { fileMode, substitute, type RevisionFile, type Substitutions } from './object-files.js'
import { readSmallFile } from '../node-files.js'

export interface FilesInstallRequest extends InstallRequest, Pick<InstallSettings, 'durable' | 'log' | 'signal'> {
  readonly files: LocalFiles
}

/** @throws InvalidInput, StaticPodError, DurableWriteError */
export async function installFromFiles(request: FilesInstallRequest): Promise<InstallResult> {
  const { files, timeout, signal, ...rest } = request
  const deadline = new Deadline(timeout, signal)
  const end = performance.now() + timeout
  try {
    const plan = await planFromFiles({ ...files, manifest: resolve(files.manifest) })
    const settings: InstallSettings = {
      ...rest,
      signal: deadline.signal,
      timeLeft: () => Math.max(0, end - performance.now()),
      warnOfHostPaths: true,
    }
    return await (request.dryRun ? dryRun(plan, settings) : install(plan, settings))
  } catch (error) {
    throw deadline.expired && !signal.aborted ? late(error, timeout) : error
  } finally {
    deadline.dispose()
  }
}

/** A manifest in a local file, and the files beside it. */
interface LocalFiles {
  readonly manifest: string
  /** undefined: the manifest's file name, without what follows its last dot. */
  readonly pod: string | undefined
  /** All three, or none. */
  readonly revision:
    | {
        readonly number: number
        readonly resourceDirectory: string
        /** undefined: the revision holds the manifest's copy alone. */
        readonly resources: string | undefined
      }
    | undefined
  readonly nodeName: string | undefined
}

/**
 * Plans the revision that the local files make; writes nothing, and asks no API server. Without a revision the manifest goes in byte for
 * byte; with one, the plan replaces the words REVISION, NODE_NAME and NODE_ENVVAR_NAME, as in an installation from the API, and sets the
 * label `revision` where there is none.
 * @throws InvalidInput
 * @internal
 */
export async function planFromFiles({
  manifest: path,
  pod: named,
  revision,
  nodeName,
}: LocalFiles): Promise<InstallPlan> {
  const bytes = await readSmallFile(path, { follow: true }).catch((error: unknown) => {
    throw new InvalidInput(messageOf(error))
  })
  if (bytes === undefined) throw new InvalidInput(`${path} does not exist`)
  const pod = named ?? basename(path).replace(/\.(ya?ml|json)$/, '')
  const name = named === undefined ? basename(path) : `${named}.yaml`
  if (name.startsWith('.')) throw new InvalidInput(`${path}: kubelet ignores files whose names start with a dot`)
  const node = { name: nodeName }
  if (revision === undefined) {
    const manifest = await parseManifest(bytes, path)
    refuseUnrunnable(manifest, path, node)
    const manifests = [{ name, content: bytes, manifest }]
    return { pod, revision: undefined, directory: undefined, lasting: [], manifests, node }
  }
  if (!isObjectName(pod))
    throw new InvalidInput(`${JSON.stringify(pod)} is not a valid name for a pod: name one with --pod (a DNS name)`)
  const words = { revision: revision.number, nodeName }
  const read = await parseManifest(substitute(bytes, words), path)
  refuseUnrunnable(read, path, node)
  // kubeadm's manifests and most others have none.
  const manifest = read.revision === undefined ? withRevision(read, revision.number) : read
  const manifests = [{ name, content: await writeManifest(manifest, manifest.uid), manifest }]
  const { files, directories } = revision.resources
    ? await readResources(revision.resources, words)
    : { files: new Map<string, never>(), directories: [] }
  if (files.has(name)) {
    throw new InvalidInput(
      `--resources holds ${name}, but holdfast puts its copy of the manifest there in ${revisionName(pod, revision.number)}: rename the file`,
    )
  }
  return {
    pod,
    revision: revision.number,
    directory: revisionRequest(revision.resourceDirectory, pod, revision.number, {
      files,
      directories,
      manifests,
      objects: [],
    }),
    lasting: [],
    manifests,
    node,
  }
}

/**
 * A local directory's files and directories, as a revision is to hold them, with the modes that library-go would give:
 * files below `secrets/` count as a Secret's, all others as a ConfigMap's.
 * @throws InvalidInput for an entry that cannot be copied: links, special files, too much
 */
async function readResources(
  root: string,
  words: Substitutions,
): Promise<{ files: Map<string, RevisionFile>; directories: readonly string[] }> {
  const { files, directories } = await readMounted(root, (directory) => readLocalTree(directory), unreadable)
  const planned = [...files].map(([path, { content }]): [string, RevisionFile] => {
    const mode = fileMode(path.startsWith('secrets/'), basename(path))
    return [path, { content: substitute(content, words), mode }]
  })
  return { files: new Map(planned), directories }
}
