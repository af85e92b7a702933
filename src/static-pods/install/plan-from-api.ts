import { objectName } from '../../message-text.js'
import { join } from 'node:path'
import { inParallel } from '../../parallel.js'
import type { ApiReader } from '../../kubernetes/reads/api-reader.js'
import { InvalidInput, StaticPodError } from '../failure.js'
import { lastingRequests, revisionContent, revisionRequest, type InstallPlan } from './install-plan.js'
import type { PlannedManifest } from './install-plan.js'
import type { KubernetesObject, ObjectKind } from '../../objects/types.js'
import { encodeManifest, parseManifest, refuseUnrunnable, type KnownNode, type Manifest } from '../pod/manifest.js'
import { revisionName } from '../names.js'
import { newUid } from '../kubelet.js'
import { readSmallFile } from '../node-files.js'
import { isSamePod } from '../pod/same-pod.js'
import { substitute, type Substitutions, type FetchedObject, type NeededObject } from './object-files.js'

/** The objects of one revision, by the names that the operator's flags give: without the revision's suffix. */
export interface RevisionObjects {
  readonly namespace: string
  readonly pod: string
  readonly revision: number
  readonly secrets: readonly string[]
  readonly optionalSecrets: readonly string[]
  readonly configMaps: readonly string[]
  readonly optionalConfigMaps: readonly string[]
  /** undefined: there is no directory of certificates. */
  readonly certificates:
    | {
        readonly directory: string
        readonly secrets: readonly string[]
        readonly optionalSecrets: readonly string[]
        readonly configMaps: readonly string[]
        readonly optionalConfigMaps: readonly string[]
      }
    | undefined
}

/** The objects whose copies of this revision go into its directory: Secrets first, each kind in order of the names. */
export function revisionedObjects(wanted: RevisionObjects): NeededObject[] {
  const { revision } = wanted
  return needed(wanted, (name) => revisionName(name, revision))
}

/** The objects without revisions, for the directory of certificates. */
export function certificateObjects(wanted: RevisionObjects): NeededObject[] {
  return wanted.certificates ? needed(wanted.certificates, (name) => name) : []
}

/** The ConfigMap that holds the manifests. */
export function manifestObject({ pod, revision }: RevisionObjects): NeededObject {
  return { kind: 'ConfigMap', name: revisionName(pod, revision), directoryName: pod, optional: false }
}

function needed(
  lists: Pick<RevisionObjects, 'secrets' | 'optionalSecrets' | 'configMaps' | 'optionalConfigMaps'>,
  nameOf: (name: string) => string,
): NeededObject[] {
  const of = (kind: ObjectKind, required: readonly string[], optional: readonly string[]): NeededObject[] =>
    [...new Set([...required, ...optional])]
      .sort()
      // A name in both lists may be absent, as in library-go.
      .map((name) => ({
        kind,
        name: nameOf(name),
        directoryName: name,
        optional: optional.includes(name),
      }))
  return [
    ...of('Secret', lists.secrets, lists.optionalSecrets),
    ...of('ConfigMap', lists.configMaps, lists.optionalConfigMaps),
  ]
}

export interface PlanSettings {
  readonly resourceDirectory: string
  readonly words: Substitutions
  /** This kubelet tells pods apart by a metadata.uid of their own. */
  readonly ownUid: boolean
  readonly node: KnownNode
}

/**
 * Reads every object of the revision, and plans the files that come of them; writes nothing.
 * @throws StaticPodError, InvalidInput
 */
export async function planFromApi(
  reader: ApiReader,
  wanted: RevisionObjects,
  settings: PlanSettings,
  signal: AbortSignal,
): Promise<InstallPlan> {
  const { namespace, pod, revision, certificates } = wanted
  const revisioned = revisionedObjects(wanted)
  const own = manifestObject(wanted)
  const lasting = certificateObjects(wanted)
  const listed = revisioned.find(({ kind, name }) => kind === own.kind && name === own.name)
  const fetched = await fetchObjects(reader, namespace, [...revisioned, ...lasting, ...(listed ? [] : [own])], signal)
  const of = (list: readonly NeededObject[]) => fetched.filter((item) => list.includes(item.needed))
  const source = of([listed ?? own])[0]?.object
  // `--optional-configmaps` may have made it optional; without it there is nothing to install.
  if (source === undefined)
    throw new StaticPodError(`${objectName({ kind: 'ConfigMap', namespace, name: own.name })} does not exist`)
  const manifests = await manifestsOf(source, pod, revision, settings)
  return {
    pod,
    revision,
    directory: revisionRequest(settings.resourceDirectory, pod, revision, {
      ...revisionContent(of(revisioned), settings.words),
      manifests,
    }),
    lasting: certificates ? lastingRequests(certificates.directory, of(lasting), settings.words) : [],
    reread: async (target) => {
      if (certificates === undefined) return undefined
      const again = await fetchObjects(reader, namespace, lasting, signal)
      const requests = lastingRequests(certificates.directory, again, settings.words)
      return requests.find((request) => request.target === target)
    },
    manifests,
    node: settings.node,
  }
}

async function manifestsOf(
  source: KubernetesObject,
  pod: string,
  revision: number,
  settings: PlanSettings,
): Promise<PlannedManifest[]> {
  const place = objectName(source.reference)
  if (!source.data.has('pod.yaml'))
    throw new InvalidInput(`${place} has no key pod.yaml, which holds the pod to install`)
  const planned: PlannedManifest[] = []
  const directory = join(settings.resourceDirectory, revisionName(pod, revision))
  for (const [key, bytes] of source.data) {
    if (key !== 'pod.yaml' && !key.endsWith('-pod.yaml')) continue
    const name = key === 'pod.yaml' ? `${pod}.yaml` : key
    if (key.startsWith('.') || planned.some((other) => other.name === name)) {
      throw new InvalidInput(
        `${place}, key ${key}: kubelet would ignore a file of this name, or another key has the same file name`,
      )
    }
    const manifest = await parseManifest(substitute(bytes, settings.words), `${place}, key ${key}`)
    refuseUnrunnable(manifest, `${place}, key ${key}`, settings.node)
    const content = await encodeAsBefore(manifest, settings.ownUid, join(directory, name))
    planned.push({ name, content, manifest })
  }
  // The pod itself last: its monitor's manifest is there when it changes.
  const main = `${pod}.yaml`
  return planned.sort((a, b) => Number(a.name === main) - Number(b.name === main) || (a.name < b.name ? -1 : 1))
}

/** Where the kubelet needs a uid, an earlier try's uid stays if all else is equal: then it is the same pod. */
async function encodeAsBefore(manifest: Manifest, ownUid: boolean, copy: string): Promise<Uint8Array> {
  if (!ownUid) return encodeManifest(manifest, undefined)
  const bytes = await readSmallFile(copy).catch(() => undefined)
  const earlier = bytes && (await parseManifest(bytes, copy).catch(() => undefined))
  const isSame = earlier?.uid !== undefined && isSamePod(manifest, earlier)
  return encodeManifest(manifest, isSame ? earlier.uid : newUid())
}

/** Reads that are under way at a time: one connection carries a hundred. */
const width = 16

/**
 * Reads all of them, before anything is written. Optional ones may be absent.
 * @throws StaticPodError, ApiError, InvalidObjectError for the first that is absent, refused, or not valid; the other reads are then aborted
 */
async function fetchObjects(
  reader: ApiReader,
  namespace: string,
  needed: readonly NeededObject[],
  signal: AbortSignal,
): Promise<FetchedObject[]> {
  const found = new Map<NeededObject, KubernetesObject>()
  const giveUp = new AbortController()
  const either = AbortSignal.any([signal, giveUp.signal])
  let first: unknown
  await inParallel(needed, width, async (item) => {
    const { kind, name, optional } = item
    try {
      const object = await reader.getObject({ kind, namespace, name }, either)
      if (object !== undefined) found.set(item, object)
      else if (!optional) {
        throw new StaticPodError(`${objectName({ kind, namespace, name })} does not exist, but is required`)
      }
    } catch (error) {
      first ??= error
      giveUp.abort(error)
      throw error
    }
  }).catch((error: unknown) => {
    throw first ?? error
  })
  return needed.flatMap((item) => {
    const object = found.get(item)
    return object ? [{ ...item, needed: item, object }] : []
  })
}
