/*
 * Faults that kubelet's validation refuses in a Pod, as far as people make them: names, and parts that do not fit together
 * (kubernetes: pkg/kubelet/config/common.go, tryDecodeSinglePod; pkg/apis/core/validation, ValidatePodCreate); a manifest that it
 * refuses counts as absent, and the pod that ran from the file before is ended. The types are right already (type-faults.ts). kubelet
 * checks the rest.
 */
import { isLabel, isObjectName } from '../../kubernetes-names.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'

export interface PodFault {
  /** As in `spec.containers[1].name`. */
  readonly field: string
  readonly problem: string
}

type Words = Readonly<Record<string, readonly string[]>>

const inSpec: Words = {
  restartPolicy: ['Always', 'OnFailure', 'Never'],
  dnsPolicy: ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'],
}

const inContainer: Words = {
  imagePullPolicy: ['Always', 'IfNotPresent', 'Never'],
  terminationMessagePolicy: ['File', 'FallbackToLogsOnError'],
}

const hostPathTypes = [
  ...['', 'DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'],
]

/** The first fault in the pod that kubelet would refuse; undefined where there is none. Quotes no value but names. */
export function findPodFault(pod: JsonMap): PodFault | undefined {
  for (const fault of faults(pod)) return fault
  return undefined
}

function* faults(pod: JsonMap): Generator<PodFault> {
  const metadata = asMap(pod.metadata) ?? {}
  const spec = asMap(pod.spec) ?? {}
  if (!isObjectName(asText(metadata.name) ?? ''))
    yield { field: 'metadata.name', problem: 'is not a valid name for a pod (a DNS subdomain)' }
  if (isThere(metadata.namespace) && metadata.namespace !== '' && !isLabel(asText(metadata.namespace) ?? ''))
    yield { field: 'metadata.namespace', problem: 'is not a valid name for a namespace' }
  for (const [key, value] of Object.entries(asMap(metadata.labels) ?? {})) {
    if (!isLabelValue(asText(value) ?? ''))
      yield { field: `metadata.labels.${key}`, problem: 'is not a valid label value' }
  }
  yield* oneOf(spec, inSpec, 'spec')
  const volumes = new Set<string>()
  for (const [index, volume] of asList(spec.volumes).entries())
    yield* volumeFaults(asMap(volume) ?? {}, `spec.volumes[${index}]`, volumes)
  const names = new Set<string>()
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of asList(spec[list]).entries())
      yield* containerFaults(asMap(container) ?? {}, `spec.${list}[${index}]`, names, volumes)
  }
  if (asList(spec.ephemeralContainers).length > 0)
    yield { field: 'spec.ephemeralContainers', problem: 'can only be added to a running pod' }
}

function* volumeFaults(volume: JsonMap, at: string, volumes: Set<string>): Generator<PodFault> {
  yield* ownName(volume.name, `${at}.name`, 'volume', volumes)
  const hostPath = volume.hostPath
  if (!isThere(hostPath)) return
  const path = asText(asMap(hostPath)?.path) ?? ''
  const type = asMap(hostPath)?.type
  if (path === '') yield { field: `${at}.hostPath.path`, problem: 'is missing' }
  if (path.split('/').includes('..')) yield { field: `${at}.hostPath.path`, problem: 'must not contain ".."' }
  if (isThere(type) && !hostPathTypes.includes(asText(type) ?? 'none'))
    yield { field: `${at}.hostPath.type`, problem: `must be one of ${hostPathTypes.slice(1).join(', ')}` }
}

function* containerFaults(
  container: JsonMap,
  at: string,
  names: Set<string>,
  volumes: ReadonlySet<string>,
): Generator<PodFault> {
  yield* ownName(container.name, `${at}.name`, 'container', names)
  yield* oneOf(container, inContainer, at)
  const image = asText(container.image) ?? ''
  if (image.trim() === '' || image.trim() !== image)
    yield { field: `${at}.image`, problem: 'is missing, or has spaces around it' }
  for (const [index, variable] of asList(container.env).entries()) {
    if (!asText(asMap(variable)?.name)) yield { field: `${at}.env[${index}].name`, problem: 'is missing' }
  }
  for (const [index, item] of asList(container.ports).entries()) {
    const port = asMap(item)?.containerPort
    if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535)
      yield { field: `${at}.ports[${index}].containerPort`, problem: 'must be a port, 1 to 65535' }
  }
  const places = new Set<string>()
  for (const [index, item] of asList(container.volumeMounts).entries()) {
    const mount = asMap(item) ?? {}
    const field = `${at}.volumeMounts[${index}]`
    const [name, path] = [asText(mount.name) ?? '', asText(mount.mountPath) ?? '']
    if (!volumes.has(name)) yield { field: `${field}.name`, problem: 'is not the name of a volume in spec.volumes' }
    if (path === '') yield { field: `${field}.mountPath`, problem: 'is missing' }
    else if (places.has(path)) yield { field: `${field}.mountPath`, problem: 'is also the path of another mount' }
    places.add(path)
  }
}

function* ownName(value: unknown, field: string, what: string, taken: Set<string>): Generator<PodFault> {
  const name = asText(value) ?? ''
  if (!isLabel(asText(name) ?? '')) yield { field, problem: `is not a valid name for a ${what} (a DNS label)` }
  else if (taken.has(name)) yield { field, problem: `is also the name of another ${what}` }
  taken.add(name)
}

function* oneOf(map: JsonMap, fields: Words, at: string): Generator<PodFault> {
  for (const [name, allowed] of Object.entries(fields)) {
    const value = asText(map[name]) ?? ''
    // An empty text is as good as none: the default takes its place.
    if (value !== '' && !allowed.includes(value))
      yield { field: `${at}.${name}`, problem: `must be one of ${allowed.join(', ')}` }
  }
}

function isLabelValue(text: string): boolean {
  return text.length <= 63 && /^(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?)?$/.test(text)
}

/** null is as good as absent to Go's decoder. */
function isThere(value: unknown): boolean {
  return value !== undefined && value !== null
}
