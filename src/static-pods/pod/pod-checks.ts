/** Checks of parts of a pod that belong together, by the names that the table of rules gives them. */
import { isLabel, isLabelValue, isObjectName, isPortName, isQualifiedName } from '../../kubernetes-names.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { annotationChecks } from './annotation-checks.js'
import { isFirst, isThere, once, textOf, wholeOf, type Check, type FieldPlace } from './place.js'
import { podTypes } from './pod-types.js'
import { parseQuantity, wholeUp } from './quantity.js'
import { resourceChecks } from './resource-checks.js'

export { texts } from './text-checks.js'

const hasNone = (value: unknown) => asList(value).length === 0
const textsOf = (list: unknown, name: string) => asList(list).map((item) => textOf(asMap(item)?.[name]))
const areDifferent = (texts: readonly unknown[]) => new Set(texts).size === texts.length
const isPort = (value: unknown) =>
  typeof value === 'string' ? isPortName(value) : wholeOf(value) >= 1 && wholeOf(value) <= 65_535

const isInit = ({ path }: FieldPlace) => path[1] === 'initContainers'
/** An init container that ends before the others start. */
const isOnce = (place: FieldPlace) => isInit(place) && place.container.restartPolicy !== 'Always'
const ofVariable = ({ path }: FieldPlace) => path.includes('env')
const isPrivileged = ({ container }: FieldPlace) => asMap(container.securityContext)?.privileged === true
const system = ({ spec }: FieldPlace) => asText(asMap(spec.os)?.name)
/** kubelet takes less than nothing for a second. */
const graceOf = ({ spec: { terminationGracePeriodSeconds: given } }: FieldPlace) =>
  isThere(given) ? (wholeOf(given) < 0 ? 1 : wholeOf(given)) : 30

// ---- names and ports that are taken

/** Names of containers come once; init containers come after the others (validateInitContainers). */
const isOwnName: Check = (value, place) => {
  const { spec } = place
  const first = once(spec, 'containers', () => {
    const all = [...textsOf(spec.containers, 'name'), ...textsOf(spec.initContainers, 'name')]
    return new Map(all.map((name, index) => [name, index] as const).reverse())
  })
  return first.get(textOf(value)) === place.index + (isInit(place) ? asList(spec.containers).length : 0)
}

const hostPortOf = (item: JsonMap, { spec }: FieldPlace) =>
  wholeOf(item.hostPort) || (spec.hostNetwork === true ? wholeOf(item.containerPort) : 0)

/** checkHostPortConflicts: of all containers, and of each init container, which run one by one. */
const isFreePort: Check = (_, place) => {
  const { owner, container, spec } = place
  const keyOf = (item: JsonMap) => `${textOf(item.protocol) || 'TCP'}/${textOf(item.hostIP)}/${hostPortOf(item, place)}`
  const first = once(isInit(place) ? container : spec, 'host ports', () => {
    const ports = (isInit(place) ? [container] : asList(spec.containers)).flatMap((of) => asList(asMap(of)?.ports))
    return new Map(
      ports
        .map((item) => asMap(item) ?? {})
        .map((item) => [keyOf(item), item] as const)
        .reverse(),
    )
  })
  return hostPortOf(owner, place) === 0 || first.get(keyOf(owner)) === owner
}

// ---- volumes

const sources = Object.entries(podTypes.Volume ?? {}).flatMap(([type, names]) =>
  type === 'text' ? [] : names.split(' '),
)
const sourcesOf = (volume: JsonMap) => sources.filter((name) => isThere(volume[name]))

function volumeOf({ spec }: FieldPlace, name: unknown): JsonMap | undefined {
  const all = once(
    spec,
    'volumes',
    () => new Map(asList(spec.volumes).map((item) => [textOf(asMap(item)?.name), item])),
  )
  return textOf(name) === '' ? undefined : asMap(all.get(textOf(name)))
}

/** A volume without a source is an emptyDir. */
const isEmptyDir = (volume: JsonMap | undefined) =>
  volume !== undefined && (isThere(volume.emptyDir) || sourcesOf(volume).length === 0)

// ---- fields that stand for others

/** `metadata.labels['x']` */
const isSubscript = (path: string) => {
  const [, of, name = ''] = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(path) ?? []
  return isQualifiedName(of === 'annotations' ? name.toLowerCase() : name)
}
const fields = {
  any: 'metadata.name metadata.namespace metadata.uid'.split(' '),
  variable:
    'spec.nodeName spec.host spec.serviceAccountName status.hostIP status.hostIPs status.podIP status.podIPs'.split(
      ' ',
    ),
  file: 'metadata.labels metadata.annotations'.split(' '),
}

const isDivisor: Check = (value, { owner }) => {
  const divisor = parseQuantity(value)
  const resource = textOf(owner.resource)
  if (divisor === undefined || divisor.digits === 0n || !/^(?:limits|requests)\./.test(resource)) return true
  if (resource.endsWith('.cpu')) return divisor.digits === 1n && [0, -3].includes(divisor.power)
  const whole = divisor.power < 0 ? 0n : wholeUp(divisor)
  return [1000n, 1024n].some((base) => [0n, 1n, 2n, 3n, 4n, 5n, 6n].some((n) => base ** n === whole))
}

// ---- selectors

const isSound: Check = (values, { owner: { operator } }) => {
  const count = asList(values).length
  if (operator === 'In' || operator === 'NotIn') return count > 0
  if (operator === 'Gt' || operator === 'Lt') return count === 1
  return count === 0 || (operator !== 'Exists' && operator !== 'DoesNotExist')
}
const ofFields = ({ path }: FieldPlace) => path.includes('matchFields')

/** ValidateMatchLabelKeysAndMismatchLabelKeys */
const areOther: Check = (keys, { owner }) => {
  const selector = asMap(owner.labelSelector) ?? {}
  const seen = new Set(Object.keys(asMap(selector.matchLabels) ?? {}))
  return textsOf(selector.matchExpressions, 'key').every((name) => {
    const isTaken = asList(keys).includes(name) && seen.has(name)
    seen.add(name)
    return !isTaken
  })
}

/** validateWindowsHostProcessPod */
const areHostProcesses: Check = (_, { spec }) => {
  const of = (has: unknown) => asMap(asMap(asMap(has)?.securityContext)?.windowsOptions)?.hostProcess ?? undefined
  const own = [...asList(spec.initContainers), ...asList(spec.containers)].map(of)
  const all = own.map((one) => one ?? of(spec))
  if (isThere(of(spec)) && own.some((one) => one !== undefined && one !== of(spec))) return false
  return !all.includes(true) || (spec.hostNetwork === true && all.every((one) => one === true))
}

// ---- the kernel

/** utilsysctl.GetNamespace */
const isOwnSysctl: Check = (value, { spec }) => {
  const text = textOf(value)
  const name = /^[^./]*\//.test(text) ? text.replaceAll(/[./]/g, (mark) => (mark === '/' ? '.' : '/')) : text
  const ofIpc = /^(?:kernel\.(?:sem|shm(?:all|max|mni|_rmid_forced)?|msg(?:max|mnb|mni)?)$|fs\.mqueue\.)/
  return !(spec.hostNetwork === true && name.startsWith('net.')) && !(spec.hostIPC === true && ofIpc.test(name))
}

const signal =
  /^SIG(?:ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|SEGV|STKFLT|STOP|SYS|TERM|TRAP|TSTP|TTIN|TTOU|URG|USR1|USR2|VTALRM|WINCH|XCPU|XFSZ|RTMIN(?:\+(?:[1-9]|1[0-5]))?|RTMAX(?:-(?:[1-9]|1[0-4]))?)$/

export const checks: Readonly<Record<string, Check | readonly [Check, string]>> = {
  ...annotationChecks,
  ...resourceChecks,
  there: isThere,
  absent: (value) => value === undefined,
  empty: hasNone,
  some: [(value) => !hasNone(value), 'is missing or empty'],
  different: (all) => areDifferent(asList(all)),
  unique: [(_, place, name) => isFirst(place, name, (item) => textOf(item[name])), 'is also that of another'],
  positive: [(value) => wholeOf(value) > 0, 'must be more than 0'],
  weight: (value) => wholeOf(value) >= 1 && wholeOf(value) <= 100,
  port: [isPort, 'must be a port, 1 to 65535, or the name of one'],
  'port number': [(value) => isPort(wholeOf(value)), 'must be a port, 1 to 65535'],
  'name of a label': [(_, __, name) => isQualifiedName(name), 'is not a valid name for a label'],
  'name of an annotation': [
    (_, __, name) => isQualifiedName(name.toLowerCase()),
    'is not a valid name for an annotation',
  ],

  // kubelet puts the node's name behind (generatePodName).
  'pod name': (value, { node }) => isObjectName(`${textOf(value)}-${node?.toLowerCase() ?? 'x'}`),
  'beginning of a name': (value) =>
    value === undefined || value === '' || isObjectName(textOf(value).replace(/.-$/, 'a')),
  'of this system': (all) => ['linux', undefined].includes(asText(asMap(all)?.['kubernetes.io/os'])),
  finalizer: (value) =>
    isQualifiedName(textOf(value)) && /\/|^(?:orphan|foregroundDeletion|kubernetes)$/.test(textOf(value)),
  'one way to end': (all) => !['orphan', 'foregroundDeletion'].every((name) => asList(all).includes(name)),
  'no event': (_, { owner }) => owner.apiVersion !== 'v1' || owner.kind !== 'Event',
  'first controller': (value, place) =>
    value !== true || isFirst(place, 'controller', (item) => (item.controller === true ? 'true' : '')),

  'free host name': (value, { spec }) =>
    value === undefined || (spec.hostNetwork !== true && spec.setHostnameAsFQDN !== true),
  'own processes': (value, { spec }) => value !== true || spec.hostPID !== true,
  'own users': (value, { spec: { hostNetwork, hostPID, hostIPC } }) =>
    value !== false || ![hostNetwork, hostPID, hostIPC].includes(true),
  'name servers': (value, { spec }) => spec.dnsPolicy !== 'None' || !hasNone(asMap(value)?.nameservers),
  'no responders': (value, { spec }) => value === undefined || hasNone(spec.evictionResponders),
  'short searches': (all) => asList(all).length <= 32 && Buffer.byteLength(asList(all).join(' ')) <= 2048,
  'operator of a key': (value, { owner }) => textOf(owner.key) !== '' || value === 'Exists',
  'effect for a time': (value, { owner }) => !isThere(owner.tolerationSeconds) || value === 'NoExecute',
  'tolerated value': (value, { owner }) =>
    owner.operator === 'Exists' ? textOf(value) === '' : isLabelValue(textOf(value)),
  'other spread': (_, place) =>
    isFirst(place, 'spread', (item) => `${textOf(item.topologyKey)} ${textOf(item.whenUnsatisfiable)}`),
  'strict spread': (value, { owner }) => value === undefined || owner.whenUnsatisfiable === 'DoNotSchedule',
  selector: (keys, { owner }) => hasNone(keys) || isThere(owner.labelSelector),
  'other keys': areOther,
  'no mismatch': (keys, { owner }) => !asList(keys).some((name) => asList(owner.mismatchLabelKeys).includes(name)),
  values: isSound,
  'operator of a field': (value, place) => !ofFields(place) || value === 'In' || value === 'NotIn',
  'value of a field': (all, place) => !ofFields(place) || asList(all).length === 1,
  // A preference that no node can have only counts for nothing.
  'value of a node': (value, place) =>
    ofFields(place) ? isObjectName(textOf(value)) : place.path.includes('preference') || isLabelValue(textOf(value)),
  'key of a node': (value, place) => (ofFields(place) ? value === 'metadata.name' : isQualifiedName(textOf(value))),

  'no Linux': (value, place) => value === undefined || system(place) !== 'linux',
  'host processes': areHostProcesses,
  masked: (value, { spec }) => value !== 'Unmasked' || spec.hostUsers === false,
  escalation: (value, { owner }) =>
    value !== false || !(owner.privileged === true || asList(asMap(owner.capabilities)?.add).includes('CAP_SYS_ADMIN')),
  'own sysctl': isOwnSysctl,
  'local profile': (value, { owner }) => isThere(value) === (owner.type === 'Localhost'),

  'own name': isOwnName,
  'restart policy': (all, { owner }) => hasNone(all) || isThere(owner.restartPolicy),
  'no sidecar': (all, place) => hasNone(all) || !isInit(place) || isOnce(place),
  lasting: (value, place) => value === undefined || !isOnce(place),
  'one success': (value) => [0, 1].includes(wholeOf(asMap(value)?.successThreshold)),
  'no grace': (value) => !isThere(asMap(value)?.terminationGracePeriodSeconds),
  'resized pod': (value, { spec }) => value === 'NotRequired' || spec.restartPolicy !== 'Never',
  'resized container': (value, place) => value !== 'RestartContainer' || !isOnce(place),
  'host port': (value) => wholeOf(value) === 0 || isPort(wholeOf(value)),
  'same port': (_, place) =>
    place.spec.hostNetwork !== true ||
    isInit(place) ||
    hostPortOf(place.owner, place) === wholeOf(place.owner.containerPort),
  'free port': isFreePort,
  'no value': (value, { owner }) => value === undefined || textOf(owner.value) === '',
  v1: (value) => textOf(value) === '' || value === 'v1',
  'field of a pod': (value, place) =>
    [...fields.any, ...fields[ofVariable(place) ? 'variable' : 'file']].includes(textOf(value)) ||
    isSubscript(textOf(value)),
  'named container': (value, place) => ofVariable(place) || textOf(value) !== '',
  divisor: isDivisor,
  system: (value, place) => value === undefined || system(place) !== undefined,
  signal: (value) => value === undefined || signal.test(textOf(value)),
  'clear protocol': (value, { owner }) =>
    value !== 'HTTP2' || (['', 'HTTP'].includes(textOf(owner.scheme)) && textOf(owner.host) === ''),
  'within grace': (value, place) => wholeOf(value) >= 0 && wholeOf(value) <= graceOf(place),

  'one source': (_, { owner }) => sourcesOf(owner).length <= 1,
  'name of a volume': (value, place) => volumeOf(place, value) !== undefined,
  'name of an emptyDir': (value, place) => isLabel(textOf(value)) && isEmptyDir(volumeOf(place, value)),
  'no subPath': (value, { owner }) => textOf(value) === '' || textOf(owner.subPath) === '',
  propagation: (value, place) => value !== 'Bidirectional' || isPrivileged(place),
  'read only': (value, { owner: { readOnly, mountPropagation } }) =>
    ['', 'Disabled'].includes(textOf(value)) || (readOnly === true && ['', 'None'].includes(textOf(mountPropagation))),
  'no image': (all, place) => hasNone(all) || !isThere(volumeOf(place, place.owner.name)?.image),
  size: (value) => (parseQuantity(value)?.digits ?? 0n) >= 0n,
  'different paths': (all) =>
    areDifferent(
      asList(all).flatMap((item) => textsOf(asMap(asMap(item)?.downwardAPI)?.items, 'path').filter(Boolean)),
    ),
  'short with volume': (value, { owner, spec, path }) => {
    const name = textOf(asMap(asList(spec.volumes)[Number(path[2])])?.name)
    return value === undefined || Buffer.byteLength(`${name}:${textOf(owner.targetPortal)}`) <= 64
  },
  'secret for CHAP': (value, { owner }) =>
    isThere(value) || (owner.chapAuthDiscovery !== true && owner.chapAuthSession !== true),
  'one list': (_, { owner }) => hasNone(owner.targetWWNs) !== hasNone(owner.wwids),
  'unit of names': (value, { owner }) =>
    hasNone(owner.targetWWNs) || (isThere(value) && wholeOf(value) >= 0 && wholeOf(value) <= 255),
  'one dataset': (_, { owner }) => (textOf(owner.datasetName) === '') !== (textOf(owner.datasetUUID) === ''),
  'disk of the kind': (value, { owner }) =>
    textOf(value).startsWith(owner.kind === 'Managed' ? '/subscriptions/' : 'https://'),
  'own domain': (_, __, name) => !/(?:^|\.)(?:kubernetes|k8s)\.io$/i.test(name.split('/')[0] ?? ''),
}
