import { basename } from 'node:path'
import { InvalidInput, messageOf } from './failure.js'
import { revisionRequest, type InstallPlan } from './install-plan.js'
import { encodeManifest, parseManifest, refuseUnrunnable } from './manifest.js'
import { isObjectName } from '../kubernetes-names.js'
import { revisionName } from './names.js'
import { readSmallFile } from './read-file.js'
import { readResources } from './read-resources.js'
import { substitute } from './substitute.js'

/** A manifest in a local file, and what else it needs. */
export interface LocalFiles {
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
 * What the local files make; writes nothing, and asks no API server. Without a revision the manifest is installed byte for
 * byte; with one, the words REVISION, NODE_NAME and NODE_ENVVAR_NAME are replaced, as in an installation from the API.
 * @throws InvalidInput
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
  if (name.startsWith('.')) throw new InvalidInput(`${path}: kubelet reads no file whose name has a leading dot`)
  if (revision === undefined) {
    const manifest = await parseManifest(bytes, path)
    refuseUnrunnable(manifest, path)
    const manifests = [{ name, content: bytes, manifest }]
    return { pod, revision: undefined, directory: undefined, lasting: [], manifests }
  }
  if (!isObjectName(pod)) throw new InvalidInput(`${JSON.stringify(pod)} cannot name a pod: use --pod with a DNS name`)
  const words = { revision: revision.number, nodeName }
  const manifest = await parseManifest(substitute(bytes, words), path)
  refuseUnrunnable(manifest, path)
  const manifests = [{ name, content: encodeManifest(manifest, manifest.uid), manifest }]
  const { files, directories } = revision.resources
    ? await readResources(revision.resources, words)
    : { files: new Map<string, never>(), directories: [] }
  if (files.has(name)) {
    throw new InvalidInput(
      `--resources holds ${name}, which is the name of the manifest's copy in ${revisionName(pod, revision.number)}`,
    )
  }
  return {
    pod,
    revision: revision.number,
    directory: revisionRequest(revision.resourceDirectory, pod, revision.number, {
      ...{ files, directories, manifests, objects: [] },
    }),
    lasting: [],
    manifests,
  }
}
