/*
 * Faults of a Pod's containers that kubelet's validation refuses (kubernetes v1.35.4: pkg/apis/core/validation/validation.go; behind each
 * rule, its function there). pod-faults.ts has those of the rest of the pod.
 */
import { isLabel, isPortName, isQualifiedName } from '../../kubernetes-names.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { isThere, oneOf, wholeOf, type Faults } from './fault.js'
import { isLess, parseQuantity } from './quantity.js'

const inContainer = {
  imagePullPolicy: ['Always', 'IfNotPresent', 'Never'],
  restartPolicy: ['Always', 'OnFailure', 'Never'],
  terminationMessagePolicy: ['File', 'FallbackToLogsOnError'],
}
const inPort = { protocol: ['TCP', 'UDP', 'SCTP'] }
const inHttpGet = { scheme: ['HTTP', 'HTTPS'] }
const inMount = { mountPropagation: ['None', 'HostToContainer', 'Bidirectional'] }
const seccompTypes = { type: ['RuntimeDefault', 'Localhost', 'Unconfined'] }

/** The names of the resources that a container may ask for without a slash (helper.IsStandardContainerResourceName). */
const resourceNames = ['cpu', 'memory', 'ephemeral-storage']

/** The fields of the pod that a variable may stand for (validEnvDownwardAPIFieldPathExpressions). */
const podFieldPaths = [
  ...['metadata.name', 'metadata.namespace', 'metadata.uid', 'spec.nodeName', 'spec.host', 'spec.serviceAccountName'],
  ...['status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs'],
]

const variableSources = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef']
const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep']
const probes = ['livenessProbe', 'readinessProbe', 'startupProbe']
const isPort = (port: number) => port >= 1 && port <= 65_535
const portProblem = 'must be a port, 1 to 65535'

interface Pod {
  readonly volumes: ReadonlySet<string>
  readonly hostNetwork: boolean
}

/** The faults of all containers; their names must differ. */
export function* containersFaults(spec: JsonMap, volumes: ReadonlySet<string>): Faults {
  const pod = { volumes, hostNetwork: spec.hostNetwork === true }
  const names = new Set<string>()
  const hostPorts = new Set<string>()
  for (const list of ['initContainers', 'containers']) {
    const isInit = list === 'initContainers'
    for (const [index, item] of asList(spec[list]).entries()) {
      const [container, at] = [asMap(item) ?? {}, `spec.${list}[${index}]`]
      yield* ownName(container.name, `${at}.name`, 'container', names)
      yield* containerFaults(container, at, pod)
      // Init containers run one by one.
      yield* hostPortFaults(container, at, isInit ? new Set() : hostPorts, pod)
      yield* lifeFaults(container, at, isInit && container.restartPolicy !== 'Always')
    }
  }
}

/** validateContainerCommon */
function* containerFaults(container: JsonMap, at: string, pod: Pod): Faults {
  yield* oneOf(container, inContainer, at)
  const image = asText(container.image) ?? ''
  if (image.trim() === '' || image.trim() !== image)
    yield { field: `${at}.image`, problem: 'is missing, or has spaces around it' }
  yield* portFaults(container, at)
  for (const [index, item] of asList(container.env).entries()) {
    yield* variableFaults(asMap(item) ?? {}, `${at}.env[${index}]`)
  }
  for (const [index, item] of asList(container.envFrom).entries()) {
    const source = asMap(item) ?? {}
    const count = ['configMapRef', 'secretRef'].filter((name) => isThere(source[name])).length
    if (count !== 1) yield { field: `${at}.envFrom[${index}]`, problem: 'must have one of configMapRef, secretRef' }
  }
  yield* mountFaults(container, at, pod)
  yield* resourceFaults(asMap(container.resources) ?? {}, `${at}.resources`)
  yield* seccompFaults(container.securityContext, `${at}.securityContext`)
}

/** validateContainerPorts */
function* portFaults(container: JsonMap, at: string): Faults {
  const names = new Set<string>()
  for (const [index, item] of asList(container.ports).entries()) {
    const port = asMap(item) ?? {}
    const field = `${at}.ports[${index}]`
    const name = asText(port.name) ?? ''
    if (name !== '' && !isPortName(name)) yield { field: `${field}.name`, problem: 'is not a valid name for a port' }
    else if (names.has(name)) yield { field: `${field}.name`, problem: 'is also the name of another port' }
    if (name !== '') names.add(name)
    if (!isPort(wholeOf(port.containerPort))) yield { field: `${field}.containerPort`, problem: portProblem }
    if (wholeOf(port.hostPort) !== 0 && !isPort(wholeOf(port.hostPort)))
      yield { field: `${field}.hostPort`, problem: portProblem }
    yield* oneOf(port, inPort, field)
  }
}

/** checkHostPortConflicts, validatePodHostNetworkDeps; with the host's network, each port is one of the host. */
function* hostPortFaults(container: JsonMap, at: string, taken: Set<string>, { hostNetwork }: Pod): Faults {
  for (const [index, item] of asList(container.ports).entries()) {
    const { containerPort, hostPort, hostIP, protocol } = asMap(item) ?? {}
    const field = `${at}.ports[${index}].hostPort`
    const port = wholeOf(hostPort) || (hostNetwork ? wholeOf(containerPort) : 0)
    if (hostNetwork && port !== wholeOf(containerPort) && at.startsWith('spec.containers'))
      yield { field, problem: 'must be the containerPort, with hostNetwork' }
    const place = `${asText(protocol) || 'TCP'}/${asText(hostIP) ?? ''}/${port}`
    if (port !== 0 && taken.has(place)) yield { field, problem: 'is also the hostPort of another port' }
    taken.add(place)
  }
}

/** ValidateEnv */
function* variableFaults(variable: JsonMap, at: string): Faults {
  const name = asText(variable.name) ?? ''
  if (name === '') yield { field: `${at}.name`, problem: 'is missing' }
  else if (!/^[ -<>-~]+$/.test(name)) yield { field: `${at}.name`, problem: 'is not a valid name for a variable' }
  if (!isThere(variable.valueFrom)) return
  const from = asMap(variable.valueFrom) ?? {}
  const field = `${at}.valueFrom`
  const sources = variableSources.filter((source) => isThere(from[source]))
  if (sources.length !== 1) yield { field, problem: `must have one of ${variableSources.join(', ')}` }
  if ((asText(variable.value) ?? '') !== '') yield { field, problem: 'must not be beside a value' }
  if (isThere(from.fieldRef)) {
    const { apiVersion, fieldPath } = asMap(from.fieldRef) ?? {}
    const path = asText(fieldPath) ?? ''
    const isKnown = podFieldPaths.includes(path) || isSubscript(path)
    if (!isKnown || !['', 'v1'].includes(asText(apiVersion) ?? ''))
      yield { field: `${field}.fieldRef.fieldPath`, problem: 'is no field that a variable may stand for' }
  }
  if (isThere(from.resourceFieldRef)) {
    const resource = asText(asMap(from.resourceFieldRef)?.resource) ?? ''
    if (!/^(?:limits|requests)\.(?:cpu|memory|ephemeral-storage|hugepages-.*)$/s.test(resource))
      yield { field: `${field}.resourceFieldRef.resource`, problem: 'must be limits.cpu, requests.memory, or such' }
  }
}

/** `metadata.labels['x']` */
function isSubscript(path: string): boolean {
  const [, of, key = ''] = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(path) ?? []
  return isQualifiedName(of === 'annotations' ? key.toLowerCase() : key)
}

/** ValidateVolumeMounts */
function* mountFaults(container: JsonMap, at: string, { volumes }: Pod): Faults {
  const places = new Set<string>()
  for (const [index, item] of asList(container.volumeMounts).entries()) {
    const mount = asMap(item) ?? {}
    const field = `${at}.volumeMounts[${index}]`
    const [name, path] = [asText(mount.name) ?? '', asText(mount.mountPath) ?? '']
    if (!volumes.has(name)) yield { field: `${field}.name`, problem: 'is not the name of a volume in spec.volumes' }
    if (path === '') yield { field: `${field}.mountPath`, problem: 'is missing' }
    else if (places.has(path)) yield { field: `${field}.mountPath`, problem: 'is also the path of another mount' }
    places.add(path)
    for (const sub of ['subPath', 'subPathExpr']) {
      const inner = asText(mount[sub]) ?? ''
      if (inner.startsWith('/') || inner.split('/').includes('..'))
        yield { field: `${field}.${sub}`, problem: 'must be a relative path without ".."' }
    }
    if (asText(mount.subPath) && asText(mount.subPathExpr))
      yield { field: `${field}.subPathExpr`, problem: 'must not be beside a subPath' }
    if (mount.mountPropagation === '') yield { field: `${field}.mountPropagation`, problem: 'must not be empty' }
    yield* oneOf(mount, inMount, field)
    if (mount.mountPropagation === 'Bidirectional' && asMap(container.securityContext)?.privileged !== true)
      yield { field: `${field}.mountPropagation`, problem: 'must not be Bidirectional without privileged: true' }
  }
}

/** validateResourceRequirements */
function* resourceFaults(resources: JsonMap, at: string): Faults {
  const limits = asMap(resources.limits) ?? {}
  for (const list of ['limits', 'requests']) {
    for (const [name, value] of Object.entries(asMap(resources[list]) ?? {})) {
      const field = `${at}.${list}.${name}`
      const isKnown = name.includes('/') || resourceNames.includes(name) || name.startsWith('hugepages-')
      if (!isKnown || !isQualifiedName(name)) yield { field, problem: 'is no resource that a container has' }
      const quantity = parseQuantity(value)
      if (quantity && quantity.digits < 0n) yield { field, problem: 'must not be less than 0' }
      const limit = list === 'requests' ? parseQuantity(limits[name]) : undefined
      if (quantity && limit && isLess(limit, quantity)) yield { field, problem: 'must not be more than its limit' }
    }
  }
}

/** validateLivenessProbe and its like, validateLifecycle; `isOnce`: an init container that ends before others start. */
function* lifeFaults(container: JsonMap, at: string, isOnce: boolean): Faults {
  for (const name of [...probes, 'lifecycle']) {
    if (isOnce && isThere(container[name]))
      yield { field: `${at}.${name}`, problem: 'needs restartPolicy: Always in an init container' }
  }
  for (const name of probes) {
    const field = `${at}.${name}`
    if (!isThere(container[name])) continue
    const probe = asMap(container[name]) ?? {}
    yield* handlerFaults(probe, field)
    for (const count of [
      'initialDelaySeconds',
      'timeoutSeconds',
      'periodSeconds',
      'successThreshold',
      'failureThreshold',
    ])
      if (wholeOf(probe[count]) < 0) yield { field: `${field}.${count}`, problem: 'must not be less than 0' }
    if (name !== 'readinessProbe' && ![0, 1].includes(wholeOf(probe.successThreshold)))
      yield { field: `${field}.successThreshold`, problem: 'must be 1' }
    const grace = probe.terminationGracePeriodSeconds
    if (isThere(grace) && (name === 'readinessProbe' || wholeOf(grace) <= 0))
      yield { field: `${field}.terminationGracePeriodSeconds`, problem: 'must not be there, or must be more than 0' }
  }
  for (const name of ['postStart', 'preStop']) {
    const handler = asMap(container.lifecycle)?.[name]
    if (isThere(handler)) yield* handlerFaults(asMap(handler) ?? {}, `${at}.lifecycle.${name}`)
  }
}

/** validateHandler */
function* handlerFaults(handler: JsonMap, at: string): Faults {
  const kinds = at.includes('.lifecycle.') ? handlers.filter((kind) => kind !== 'grpc') : handlers.slice(0, -1)
  const found = kinds.filter((kind) => isThere(handler[kind]))
  if (found.length !== 1) yield { field: at, problem: `must have one of ${kinds.join(', ')}` }
  const { exec, httpGet, tcpSocket, grpc } = handler
  if (isThere(exec) && asList(asMap(exec)?.command).length === 0)
    yield { field: `${at}.exec.command`, problem: 'is missing or empty' }
  for (const [kind, action] of Object.entries({ httpGet, tcpSocket, grpc })) {
    const { port } = asMap(action) ?? {}
    const isValid = typeof port === 'string' ? isPortName(port) : isPort(wholeOf(port))
    if (isThere(action) && kinds.includes(kind) && !isValid)
      yield { field: `${at}.${kind}.port`, problem: `${portProblem}, or the name of one` }
  }
  yield* oneOf(asMap(httpGet) ?? {}, inHttpGet, `${at}.httpGet`)
  for (const [index, header] of asList(asMap(httpGet)?.httpHeaders).entries()) {
    if (!/^[-A-Za-z0-9]+$/.test(asText(asMap(header)?.name) ?? ''))
      yield { field: `${at}.httpGet.httpHeaders[${index}].name`, problem: 'is not a valid name for a header' }
  }
}

/** validateSeccompProfileField */
export function* seccompFaults(context: unknown, at: string): Faults {
  const profile = asMap(context)?.seccompProfile
  if (!isThere(profile)) return
  const field = `${at}.seccompProfile`
  const { type, localhostProfile } = asMap(profile) ?? {}
  if ((asText(type) ?? '') === '') yield { field: `${field}.type`, problem: 'is missing' }
  yield* oneOf(asMap(profile) ?? {}, seccompTypes, field)
  if (isThere(localhostProfile) !== (type === 'Localhost'))
    yield { field: `${field}.localhostProfile`, problem: 'must be there with type: Localhost, and with no other' }
}

/** A name that no other has. */
export function* ownName(value: unknown, field: string, what: string, taken: Set<string>): Faults {
  const name = asText(value) ?? ''
  if (!isLabel(name)) yield { field, problem: `is not a valid name for a ${what} (a DNS label)` }
  else if (taken.has(name)) yield { field, problem: `is also the name of another ${what}` }
  taken.add(name)
}
