import { messageOf } from '../errors.js'
import { readOne } from '../yaml/read.js'
import { findApiReference } from './api-references.js'
import { InvalidInput } from './failure.js'
import { asList, asMap, asText, type JsonMap } from './json.js'
import { findPodFault } from './pod-faults.js'

/** A Pod as a manifest holds it: checked as far as kubelet would refuse it. */
export interface Manifest {
  readonly pod: JsonMap
  readonly name: string
  /** undefined: kubelet's default. */
  readonly namespace: string | undefined
  /** The label `revision`. */
  readonly revision: string | undefined
  readonly uid: string | undefined
  readonly annotations: JsonMap
}

/**
 * Reads a manifest. `place` names it in messages.
 * @throws InvalidInput for what is not one Pod, or not whole; nothing of the text is quoted
 */
export async function parseManifest(bytes: Uint8Array, place: string): Promise<Manifest> {
  let value: unknown
  try {
    value = withText(await readOne(new TextDecoder('utf-8', { fatal: true }).decode(bytes), 'manifest'))
  } catch (error) {
    const what =
      error instanceof TypeError
        ? 'it is not UTF-8 text'
        : error instanceof RangeError
          ? 'it is nested too deeply'
          : messageOf(error)
    throw new InvalidInput(`${place}: ${what}`)
  }
  const pod = asMap(value)
  if (pod === undefined) throw new InvalidInput(`${place}: it holds no object; it must hold a Pod`)
  if (pod.kind !== 'Pod' || pod.apiVersion !== 'v1') {
    const found = `kind ${shown(pod.kind)}, apiVersion ${shown(pod.apiVersion)}`
    throw new InvalidInput(`${place}: ${found}: from a manifest file, kubelet runs only kind Pod, apiVersion v1`)
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
    name,
    namespace: asText(metadata.namespace),
    revision: asText(asMap(metadata.labels)?.revision),
    uid: asText(metadata.uid),
    annotations: asMap(metadata.annotations) ?? {},
  }
}

/** @throws InvalidInput, with the field, for a pod that kubelet would refuse, or could not run without the API. */
export function refuseUnrunnable({ pod }: Manifest, place: string): void {
  const found = findPodFault(pod)
  if (found !== undefined)
    throw new InvalidInput(`${place}: ${found.field} ${found.problem}; kubelet would refuse the pod`)
  const reference = findApiReference(pod)
  if (reference === undefined) return
  throw new InvalidInput(
    `${place}: ${reference.field}: a static pod may not refer to objects of the API (${reference.objects}); put what it ` +
      `needs on the node's disk, and mount it with hostPath`,
  )
}

/** The same manifest with the label `revision`, by which the monitor and prune know it. */
export function withRevision(manifest: Manifest, revision: number): Manifest {
  const metadata = asMap(manifest.pod.metadata) ?? {}
  const labels = { ...asMap(metadata.labels), revision: String(revision) }
  return { ...manifest, pod: { ...manifest.pod, metadata: { ...metadata, labels } }, revision: labels.revision }
}

/** The pod with other metadata.uid (undefined: none) and further annotations, as the JSON that kubelet reads. */
export function encodeManifest(
  { pod }: Manifest,
  uid: string | undefined,
  annotations: Readonly<Record<string, string>> = {},
): Uint8Array {
  const metadata = asMap(pod.metadata) ?? {}
  const others = Object.entries(metadata).filter(([field]) => field !== 'uid')
  const changed = Object.fromEntries(uid === undefined ? others : [...others, ['uid', uid]])
  if (Object.keys(annotations).length > 0) {
    changed.annotations = { ...asMap(metadata.annotations), ...annotations }
  }
  return Buffer.from(`${JSON.stringify({ ...pod, metadata: changed })}\n`)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 64)) : 'missing'
}

/*
 * Where a Pod has text, kubelet's parser turns an unquoted number or boolean into text (sigs.k8s.io/yaml, by the type of
 * the field it decodes into): `value: 8080` is accepted. JSON that we write must have it as text already, or kubelet
 * would refuse what it took from the YAML.
 */

/** Fields whose value is text wherever they stand in a Pod. */
const textFields = new Set([
  ...['apiVersion', 'kind', 'name', 'generateName', 'namespace', 'uid', 'resourceVersion'],
  ...['image', 'imagePullPolicy', 'workingDir', 'value', 'key', 'operator', 'effect', 'path', 'host', 'scheme'],
  ...['mountPath', 'subPath', 'subPathExpr', 'mountPropagation', 'recursiveReadOnly', 'terminationMessagePath'],
  ...['restartPolicy', 'dnsPolicy', 'nodeName', 'serviceAccountName', 'serviceAccount', 'hostname', 'subdomain'],
  ...['schedulerName', 'priorityClassName', 'runtimeClassName', 'preemptionPolicy', 'ip', 'protocol', 'hostIP'],
  ...['type', 'medium', 'level', 'role', 'user', 'localhostProfile', 'fieldPath', 'resource', 'topologyKey'],
  ...['procMount', 'service', 'reference', 'pullPolicy', 'prefix', 'server', 'devicePath', 'terminationMessagePolicy'],
])

/** Lists of text. */
const textLists = new Set([
  ...['command', 'args', 'values', 'add', 'drop', 'hostnames', 'nameservers', 'searches', 'finalizers'],
])

/** Maps from text to text; quantities (limits, requests) may be numbers, and kubelet reads them so. */
const textMaps = new Set(['labels', 'annotations', 'nodeSelector', 'matchLabels'])

/** The same value, with text where a Pod has text. */
function withText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown): unknown => withText(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, field(key, inner)]))
}

function field(key: string, value: unknown): unknown {
  if (textFields.has(key)) return isScalar(value) ? String(value) : withText(value)
  if (textLists.has(key) && Array.isArray(value)) {
    return value.map((item: unknown): unknown => (isScalar(item) ? String(item) : withText(item)))
  }
  if (textMaps.has(key) && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value).map(([name, text]) => [name, isScalar(text) ? String(text) : text] as const)
    return Object.fromEntries(entries)
  }
  return withText(value)
}

function isScalar(value: unknown): value is number | boolean {
  return typeof value === 'number' || typeof value === 'boolean'
}
