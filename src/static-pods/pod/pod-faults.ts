/*
 * Faults that kubelet's validation refuses in a Pod, as far as people make them: names, and parts that do not fit together
 * (kubernetes v1.35.4: pkg/kubelet/config/common.go, tryDecodeSinglePod; pkg/apis/core/validation, ValidatePodCreate; behind each rule, its
 * function there). kubelet takes a manifest that it refuses for none, and ends the pod that ran from the file before. The
 * types are right already (type-faults.ts). kubelet checks the rest: node affinity, resize policies, volumes of vendors, and such.
 */
import { isIP } from 'node:net'
import { isLabel, isLabelValue, isObjectName, isQualifiedName } from '../../kubernetes-names.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { containersFaults, ownName, seccompFaults } from './container-faults.js'
import { isThere, named, oneOf, wholeOf, type Faults, type PodFault } from './fault.js'
import { podTypes } from './pod-types.js'
import { parseQuantity } from './quantity.js'

const inSpec = {
  restartPolicy: ['Always', 'OnFailure', 'Never'],
  dnsPolicy: ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'],
  preemptionPolicy: ['PreemptLowerPriority', 'Never'],
}
const inToleration = {
  operator: ['Exists', 'Equal'],
  effect: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'],
}

const hostPathTypes = [
  ...['', 'DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'],
]

/** A volume has one source of these. */
const volumeSources = Object.entries(podTypes.Volume ?? {}).flatMap(([type, names]) =>
  type === 'text' ? [] : names.split(' '),
)

/** The first fault in the pod that kubelet would refuse; undefined where there is none. */
export function findPodFault(pod: JsonMap): PodFault | undefined {
  for (const fault of faults(pod)) return fault
  return undefined
}

function* faults(pod: JsonMap): Faults {
  const spec = asMap(pod.spec) ?? {}
  yield* metadataFaults(asMap(pod.metadata) ?? {})
  yield* oneOf(spec, inSpec, 'spec')
  const volumes = new Set<string>()
  for (const [index, volume] of asList(spec.volumes).entries())
    yield* volumeFaults(asMap(volume) ?? {}, `spec.volumes[${index}]`, volumes)
  yield* containersFaults(spec, volumes)
  if (asList(spec.ephemeralContainers).length > 0)
    yield { field: 'spec.ephemeralContainers', problem: 'can only be added to a running pod' }
  yield* nameFaults(spec)
  yield* addressFaults(spec)
  yield* tolerationFaults(spec)
  yield* seccompFaults(spec.securityContext, 'spec.securityContext')
  yield* sysctlFaults(spec)
  if (spec.hostPID === true && spec.shareProcessNamespace === true)
    yield { field: 'spec.shareProcessNamespace', problem: 'must not be true beside hostPID' }
}

/** ValidateObjectMeta */
function* metadataFaults(metadata: JsonMap): Faults {
  if (!isObjectName(asText(metadata.name) ?? ''))
    yield { field: 'metadata.name', problem: 'is not a valid name for a pod (a DNS subdomain)' }
  yield* named(metadata.namespace, 'metadata.namespace', isLabel, 'name for a namespace')
  yield* labelFaults(metadata.labels, 'metadata.labels')
  for (const key of Object.keys(asMap(metadata.annotations) ?? {})) {
    if (!isQualifiedName(key.toLowerCase()))
      yield { field: `metadata.annotations.${key}`, problem: 'is not a valid name for an annotation' }
  }
}

/** ValidateLabels */
function* labelFaults(labels: unknown, at: string): Faults {
  for (const [key, value] of Object.entries(asMap(labels) ?? {})) {
    if (!isQualifiedName(key)) yield { field: `${at}.${key}`, problem: 'is not a valid name for a label' }
    if (!isLabelValue(asText(value) ?? '')) yield { field: `${at}.${key}`, problem: 'is not a valid label value' }
  }
}

/** ValidatePodSpec */
function* nameFaults(spec: JsonMap): Faults {
  yield* named(spec.hostname, 'spec.hostname', isLabel, 'name for a host (a DNS label)')
  yield* named(spec.subdomain, 'spec.subdomain', isLabel, 'name for a subdomain (a DNS label)')
  yield* named(spec.priorityClassName, 'spec.priorityClassName', isObjectName, 'name for a priority class')
  if (isThere(spec.runtimeClassName) && !isObjectName(asText(spec.runtimeClassName) ?? ''))
    yield { field: 'spec.runtimeClassName', problem: 'is not a valid name for a runtime class' }
  yield* labelFaults(spec.nodeSelector, 'spec.nodeSelector')
  const deadline = spec.activeDeadlineSeconds
  if (isThere(deadline) && (wholeOf(deadline) < 1 || wholeOf(deadline) > 2_147_483_647))
    yield { field: 'spec.activeDeadlineSeconds', problem: 'must be 1 to 2147483647' }
}

/** ValidateHostAliases, validatePodDNSConfig */
function* addressFaults(spec: JsonMap): Faults {
  for (const [index, item] of asList(spec.hostAliases).entries()) {
    const { ip, hostnames } = asMap(item) ?? {}
    if (!isAddress(ip)) yield { field: `spec.hostAliases[${index}].ip`, problem: 'is not an IP address' }
    for (const [place, name] of asList(hostnames).entries()) {
      if (!isObjectName(asText(name) ?? ''))
        yield { field: `spec.hostAliases[${index}].hostnames[${place}]`, problem: 'is not a valid name for a host' }
    }
  }
  const { nameservers, options } = asMap(spec.dnsConfig) ?? {}
  const servers = asList(nameservers)
  if (servers.length > 3) yield { field: 'spec.dnsConfig.nameservers', problem: 'must be at most 3' }
  if (servers.length === 0 && spec.dnsPolicy === 'None')
    yield { field: 'spec.dnsConfig.nameservers', problem: 'is missing, which dnsPolicy: None needs' }
  for (const [index, address] of servers.entries()) {
    if (!isAddress(address)) yield { field: `spec.dnsConfig.nameservers[${index}]`, problem: 'is not an IP address' }
  }
  for (const [index, option] of asList(options).entries()) {
    if (!asText(asMap(option)?.name)) yield { field: `spec.dnsConfig.options[${index}].name`, problem: 'is missing' }
  }
}

/** validateSysctls */
function* sysctlFaults(spec: JsonMap): Faults {
  const names = new Set<string>()
  for (const [index, item] of asList(asMap(spec.securityContext)?.sysctls).entries()) {
    const field = `spec.securityContext.sysctls[${index}].name`
    const name = asText(asMap(item)?.name) ?? ''
    if (name.length > 253 || !/^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(name))
      yield { field, problem: 'is not a valid name for a kernel parameter' }
    else if (names.has(name)) yield { field, problem: 'is also the name of another' }
    names.add(name)
  }
}

/** netutils.ParseIPSloppy, which takes 010.0.0.1 for 10.0.0.1 */
function isAddress(value: unknown): boolean {
  const text = asText(value) ?? ''
  return isIP(text.replaceAll(/(?<=^|\.)0+(?=\d)/g, '')) !== 0 && !text.includes('%')
}

/** ValidateTolerations */
function* tolerationFaults(spec: JsonMap): Faults {
  for (const [index, item] of asList(spec.tolerations).entries()) {
    const toleration = asMap(item) ?? {}
    const field = `spec.tolerations[${index}]`
    const [key, value] = [asText(toleration.key) ?? '', asText(toleration.value) ?? '']
    const isExists = toleration.operator === 'Exists'
    yield* named(toleration.key, `${field}.key`, isQualifiedName, 'name for a taint')
    if (key === '' && !isExists) yield { field: `${field}.operator`, problem: 'must be Exists without a key' }
    yield* oneOf(toleration, inToleration, field)
    if (isExists ? value !== '' : !isLabelValue(value))
      yield { field: `${field}.value`, problem: 'must be empty with Exists, and else a label value' }
    if (isThere(toleration.tolerationSeconds) && toleration.effect !== 'NoExecute')
      yield { field: `${field}.effect`, problem: 'must be NoExecute beside tolerationSeconds' }
  }
}

/** validateVolumeSource, validateHostPathVolumeSource */
function* volumeFaults(volume: JsonMap, at: string, volumes: Set<string>): Faults {
  yield* ownName(volume.name, `${at}.name`, 'volume', volumes)
  const sources = volumeSources.filter((source) => isThere(volume[source]))
  if (sources.length > 1) yield { field: at, problem: `must have one source, but has ${sources.join(' and ')}` }
  const size = parseQuantity(asMap(volume.emptyDir)?.sizeLimit)
  if (size && size.digits < 0n) yield { field: `${at}.emptyDir.sizeLimit`, problem: 'must not be less than 0' }
  yield* downwardFaults(volume, at)
  const hostPath = volume.hostPath
  if (!isThere(hostPath)) return
  const path = asText(asMap(hostPath)?.path) ?? ''
  const type = asMap(hostPath)?.type
  if (path === '') yield { field: `${at}.hostPath.path`, problem: 'is missing' }
  if (path.split('/').includes('..')) yield { field: `${at}.hostPath.path`, problem: 'must not contain ".."' }
  if (isThere(type) && !hostPathTypes.includes(asText(type) ?? 'none'))
    yield { field: `${at}.hostPath.type`, problem: `must be one of ${hostPathTypes.slice(1).join(', ')}` }
}

/** validateDownwardAPIVolumeFile */
function* downwardFaults(volume: JsonMap, at: string): Faults {
  const { items, defaultMode } = asMap(volume.downwardAPI) ?? {}
  for (const [field, mode] of [
    ['defaultMode', defaultMode],
    ...asList(items).map((item, index) => [`items[${index}].mode`, asMap(item)?.mode] as const),
  ] as const) {
    if (wholeOf(mode) < 0 || wholeOf(mode) > 0o777)
      yield { field: `${at}.downwardAPI.${field}`, problem: 'must be 0 to 0777' }
  }
  for (const [index, item] of asList(items).entries()) {
    const { path, fieldRef, resourceFieldRef } = asMap(item) ?? {}
    const field = `${at}.downwardAPI.items[${index}]`
    const text = asText(path) ?? ''
    if (text === '' || text.startsWith('/') || text.startsWith('..') || text.split('/').includes('..'))
      yield { field: `${field}.path`, problem: 'must be a relative path without ".."' }
    if (isThere(fieldRef) === isThere(resourceFieldRef))
      yield { field, problem: 'must have one of fieldRef, resourceFieldRef' }
  }
}
