/*
 * References that a static pod may not have: to objects of the API, which kubelet has to run it without. The same fields, in the same
 * order, as kubelet's own check (kubernetes v1.35: pkg/api/pod/util.go, HasAPIObjectReference; called from
 * pkg/kubelet/config/common.go).
 */
import { asList, asMap, type JsonMap } from '../json.js'

const secretRefVolumes = ['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos']

/** A source of any other name is local, or unknown: kubelet drops that, and the volume without a source becomes an emptyDir. */
const apiVolumes: Readonly<Record<string, string>> = {
  configMap: 'ConfigMaps',
  secret: 'Secrets',
  csi: 'CSI drivers',
  glusterfs: 'Endpoints',
  persistentVolumeClaim: 'PersistentVolumeClaims',
  ephemeral: 'PersistentVolumeClaims',
  azureFile: 'Secrets',
}

const apiSources: Readonly<Record<string, string>> = {
  configMap: 'ConfigMaps',
  secret: 'Secrets',
  serviceAccountToken: 'ServiceAccounts',
  clusterTrustBundle: 'ClusterTrustBundles',
  podCertificate: 'PodCertificateRequests',
}

export interface ApiReference {
  /** As in `spec.volumes[2].secret`. */
  readonly field: string
  /** The kind of object that it leads to. */
  readonly objects: string
}

/** The first reference to an object of the API; undefined where there is none. */
export function findApiReference(pod: JsonMap): ApiReference | undefined {
  for (const reference of references(asMap(pod.spec) ?? {})) return reference
  return undefined
}

function* references(spec: JsonMap): Generator<ApiReference> {
  for (const name of ['serviceAccountName', 'serviceAccount']) {
    if (isNamed(spec[name])) yield { field: `spec.${name}`, objects: 'ServiceAccounts' }
  }
  for (const [index, item] of asList(spec.imagePullSecrets).entries()) {
    if (isNamed(asMap(item)?.name)) yield { field: `spec.imagePullSecrets[${index}]`, objects: 'Secrets' }
  }
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const [index, container] of asList(spec[list]).entries()) {
      yield* containerReferences(asMap(container) ?? {}, `spec.${list}[${index}]`)
    }
  }
  if (asList(spec.resourceClaims).length > 0) yield { field: 'spec.resourceClaims', objects: 'ResourceClaims' }
  for (const [index, volume] of asList(spec.volumes).entries()) {
    yield* volumeReferences(asMap(volume) ?? {}, `spec.volumes[${index}]`)
  }
}

function* containerReferences(container: JsonMap, at: string): Generator<ApiReference> {
  for (const [index, source] of asList(container.envFrom).entries()) {
    for (const [name, objects] of [
      ['secretRef', 'Secrets'],
      ['configMapRef', 'ConfigMaps'],
    ] as const) {
      if (isNamed(asMap(asMap(source)?.[name])?.name)) yield { field: `${at}.envFrom[${index}].${name}`, objects }
    }
  }
  for (const [index, variable] of asList(container.env).entries()) {
    for (const [name, objects] of [
      ['secretKeyRef', 'Secrets'],
      ['configMapKeyRef', 'ConfigMaps'],
    ] as const) {
      if (isNamed(asMap(asMap(asMap(variable)?.valueFrom)?.[name])?.name))
        yield { field: `${at}.env[${index}].valueFrom.${name}`, objects }
    }
  }
}

function* volumeReferences(volume: JsonMap, at: string): Generator<ApiReference> {
  for (const name of secretRefVolumes) {
    const secret = asMap(asMap(volume[name])?.secretRef)
    if (isNamed(secret?.name)) yield { field: `${at}.${name}.secretRef`, objects: 'Secrets' }
  }
  for (const [name, objects] of Object.entries(apiVolumes)) {
    if (asMap(volume[name])) yield { field: `${at}.${name}`, objects }
  }
  for (const [index, item] of asList(asMap(volume.projected)?.sources).entries()) {
    const source = asMap(item) ?? {}
    for (const [name, objects] of Object.entries(apiSources)) {
      if (asMap(source[name])) yield { field: `${at}.projected.sources[${index}].${name}`, objects }
    }
    if (!asMap(source.downwardAPI))
      yield { field: `${at}.projected.sources[${index}]`, objects: 'an unknown kind of object' }
  }
}

function isNamed(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
