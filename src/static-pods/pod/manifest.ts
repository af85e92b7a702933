import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { withTextAt } from '../../yaml/edit.js'
import { encodeJson } from '../../yaml/exact-number.js'
import { readManifestText, type ManifestText } from '../../yaml/manifest-text.js'
import { decodeYaml, notText } from '../../yaml/decode.js'
import { YamlError } from '../../yaml/parse.js'
import { InvalidInput } from '../failure.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { podFaults, type PodFault, findTypeFault } from './pod-faults.js'

/** A Pod as a manifest holds it: checked as far as kubelet would refuse it. */
export interface Manifest {
  readonly pod: JsonMap
  /** The text of the file; later changes of `pod` do not change it. */
  readonly source: string
  readonly name: string
  /** undefined: kubelet's default. */
  readonly namespace: string | undefined
  /** The label `revision`. */
  readonly revision: string | undefined
  readonly uid: string | undefined
  readonly annotations: JsonMap
  /** A sentence about text that two readers may read differently; undefined: there is none. kubelet takes it. */
  readonly ambiguity: string | undefined
}

/** Bytes (pkg/kubelet/config: maxConfigLength, at which utilio.ReadAtMost stops). */
export const largestManifest = 10 * 1024 * 1024 - 1

/**
 * Reads a manifest, and takes what kubelet's decoder takes. `place` names it in messages.
 * @throws InvalidInput unless the text is one whole Pod; the message quotes nothing of the text
 */
export async function parseManifest(bytes: Uint8Array, place: string): Promise<Manifest> {
  if (bytes.length > largestManifest)
    throw new InvalidInput(`${place}: it holds ${bytes.length} bytes; kubelet reads at most ${largestManifest}`)
  const source = decodeYaml(bytes)
  if (source === undefined) throw new InvalidInput(`${place}: ${notText}`)
  const text = await manifestText(source, place)
  const { value, positionAt } = text
  const pod = asMap(value)
  if (pod === undefined) throw new InvalidInput(`${place}: it holds no object; it must hold a Pod`)
  if (pod.kind !== 'Pod' || pod.apiVersion !== 'v1') {
    const found = `kind ${shown(pod.kind)}, apiVersion ${shown(pod.apiVersion)}`
    throw new InvalidInput(`${place}: ${found}: from a manifest file, kubelet runs only kind Pod, apiVersion v1`)
  }
  const fault = findTypeFault(pod)
  if (fault !== undefined) {
    const { line, column } = await positionAt(fault.path)
    throw new InvalidInput(`${place}: line ${line}, column ${column}: ${fault.field} ${fault.problem}; ${refused}`)
  }
  const metadata = asMap(pod.metadata) ?? {}
  const name = asText(metadata.name) ?? ''
  if (name === '') throw new InvalidInput(`${place}: metadata.name is missing`)
  const containers = asList(asMap(pod.spec)?.containers)
  if (containers.length === 0) throw new InvalidInput(`${place}: spec.containers is missing or empty`)
  for (const [index, container] of containers.entries()) {
    for (const field of ['name', 'image']) {
      if (!asText(asMap(container)?.[field]))
        throw new InvalidInput(`${place}: spec.containers[${index}].${field} is missing`)
    }
  }
  return {
    pod,
    source,
    name,
    namespace: asText(metadata.namespace),
    revision: asText(asMap(metadata.labels)?.revision),
    uid: asText(metadata.uid),
    annotations: asMap(metadata.annotations) ?? {},
    ambiguity: ambiguityOf(text),
  }
}

/** kubelet runs one of two such pods at a time. */
export function isSamePodName(a: Manifest, b: Manifest): boolean {
  return a.name === b.name && (a.namespace ?? 'default') === (b.namespace ?? 'default')
}

const refused = 'kubelet would refuse the pod'

/** @throws InvalidInput */
async function manifestText(source: string, place: string): Promise<ManifestText> {
  try {
    return await readManifestText(source)
  } catch (error) {
    const position = error instanceof YamlError ? error.position : undefined
    const what =
      error instanceof RangeError
        ? 'it is nested too deeply'
        : position && error instanceof YamlError
          ? `line ${position.line}, column ${position.column}: ${error.problem}`
          : messageOf(error)
    throw new InvalidInput(`${place}: ${what}`)
  }
}

function ambiguityOf({ documents, repeated }: ManifestText): string | undefined {
  if (documents > 1)
    return `it holds ${documents} YAML documents, and kubelet reads only the first: put each pod into a file of its own`
  return (
    repeated && `line ${repeated.line}, column ${repeated.column}: a field stands twice in one map: remove one of them`
  )
}

/** What is known of the node that the pod is for. */
export interface KnownNode {
  readonly name?: string | undefined
  /** The minor version of its kubelet. */
  readonly kubelet?: number | undefined
}

/** The newest kubelet whose rules pod-rules.ts has: it decides where the node's is not known. */
const newestKubelet = 37

/** @throws InvalidInput, with the field, for a pod that kubelet would refuse, or could not run without the API; and for an ambiguity */
export function refuseUnrunnable({ pod, ambiguity }: Manifest, place: string, node: KnownNode = {}): void {
  if (ambiguity !== undefined) throw new InvalidInput(`${place}: ${ambiguity}`)
  for (const fault of podFaults(pod, node.name)) {
    const { field, problem, kind } = fault
    if (!isDoubt(fault, node) && isOf(fault, node.kubelet ?? newestKubelet))
      throw new InvalidInput(
        `${place}: ${field} ${problem}; ${kind === 'never' ? 'kubelet would never run the pod' : refused}`,
      )
  }
}

/** Sentences about what another kubelet than the newest would refuse, or the newest, and a later one may not. */
export function doubtsOf({ pod }: Pick<Manifest, 'pod'>, node: KnownNode = {}): string[] {
  return [...podFaults(pod, node.name)]
    .filter((fault) => isDoubt(fault, node))
    .map(({ field, problem, kubelets }) => {
      const which = kubelets.until === undefined ? `up to 1.${newestKubelet}` : `before 1.${kubelets.until}`
      return `${field} ${problem}: a kubelet ${which} would refuse the pod`
    })
}

export function warnOfDoubts(manifest: Manifest, place: string, log: Log, node?: KnownNode): void {
  for (const doubt of doubtsOf(manifest, node)) log.warn({ manifest: place }, `${place}: ${doubt}`)
}

/** Where the node's kubelet is known, it decides. */
function isDoubt({ kind, kubelets }: PodFault, { kubelet }: KnownNode): boolean {
  if (kubelet === undefined) return kind === 'unknown' || kubelets.until !== undefined
  return kind === 'unknown' && kubelet > newestKubelet
}

function isOf({ kubelets: { from = 0, until = Infinity } }: PodFault, kubelet: number): boolean {
  return from <= kubelet && kubelet < until
}

/** The same manifest with the label `revision`, by which the monitor and prune know it. */
export function withRevision(manifest: Manifest, revision: number): Manifest {
  const metadata = asMap(manifest.pod.metadata) ?? {}
  const labels = { ...asMap(metadata.labels), revision: String(revision) }
  return { ...manifest, pod: { ...manifest.pod, metadata: { ...metadata, labels } }, revision: labels.revision }
}

/** The pod with other metadata.uid (undefined: none) and further annotations, as the JSON that kubelet reads. */
export function encodeManifest(
  manifest: Manifest,
  uid: string | undefined,
  annotations: Readonly<Record<string, string>> = {},
): Uint8Array {
  return Buffer.from(`${encodeJson(changedPod(manifest, uid, annotations))}\n`)
}

/** The same in the text as its author wrote it, with its comments; as JSON where the text cannot be changed so. */
export async function writeManifest(
  manifest: Manifest,
  uid: string | undefined,
  annotations: Readonly<Record<string, string>> = {},
): Promise<Uint8Array> {
  const text = await editedText(manifest, uid, annotations)
  return text === undefined ? encodeManifest(manifest, uid, annotations) : Buffer.from(text)
}

/** The manifest's own text with the uid, the labels and the annotations that the pod is to have; undefined where it cannot be changed so. */
export async function editedText(
  manifest: Manifest,
  uid: string | undefined,
  annotations: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const pod = changedPod(manifest, uid, annotations)
  const read = async (text: string) => asMap((await readManifestText(text).catch(() => undefined))?.value)
  const before = asMap((await read(manifest.source))?.metadata) ?? {}
  let text: string | undefined = manifest.source
  for (const [place, value] of manifestChanges(before, asMap(pod.metadata) ?? {})) {
    text = text && (await withTextAt(text, ['metadata', ...place], value, 'manifest'))
  }
  return text !== undefined && isDeepStrictEqual(await read(text), pod) ? text : undefined
}

type Change = readonly [place: readonly string[], value: string | undefined]

/** What makes the one metadata of the other, as far as holdfast changes it. Additions come first: they leave no mapping empty in between. */
function manifestChanges(before: JsonMap, after: JsonMap): Change[] {
  const within = ['labels', 'annotations'].flatMap((map): Change[] => {
    const [was, is] = [asMap(before[map]) ?? {}, asMap(after[map])]
    if (is === undefined) return map in before ? [[[map], undefined]] : []
    const set = Object.entries(is).flatMap(([key, value]): Change[] =>
      typeof value === 'string' && value !== was[key] ? [[[map, key], value]] : [],
    )
    const removed = Object.keys(was).flatMap((key): Change[] => (key in is ? [] : [[[map, key], undefined]]))
    return [...set, ...removed]
  })
  const { uid } = after
  return uid === before.uid ? within : [...within, [['uid'], typeof uid === 'string' ? uid : undefined]]
}

function changedPod(
  { pod }: Manifest,
  uid: string | undefined,
  annotations: Readonly<Record<string, string>>,
): JsonMap {
  const metadata = asMap(pod.metadata) ?? {}
  const others = Object.entries(metadata).filter(([field]) => field !== 'uid')
  const changed = Object.fromEntries(uid === undefined ? others : [...others, ['uid', uid]])
  if (Object.keys(annotations).length > 0) {
    changed.annotations = { ...asMap(metadata.annotations), ...annotations }
  }
  return { ...pod, metadata: changed }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 64)) : 'missing'
}
