/** The files of deploy/, as parsed YAML. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { project } from '../project.js'

export const deploy = join(project, 'deploy')

/** Any object of the API, or a kustomization: only what the tests look at. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly [field: string]: unknown
}

interface VolumeMount {
  readonly name: string
  readonly mountPath: string
  readonly readOnly?: boolean
  readonly mountPropagation?: string
}

interface Probe {
  readonly httpGet: { readonly host?: string; readonly port: number; readonly path: string }
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
  readonly securityContext: {
    readonly privileged?: boolean
    readonly allowPrivilegeEscalation?: boolean
    readonly readOnlyRootFilesystem?: boolean
    readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] }
  }
  readonly resources: { readonly requests: object; readonly limits: { readonly cpu?: string } }
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly volumeMounts: readonly VolumeMount[]
}

export interface PodSpec {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly hostNetwork?: boolean
  readonly priorityClassName?: string
  readonly securityContext: {
    readonly seccompProfile?: { readonly type: string }
    readonly runAsUser?: number
  }
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes: readonly {
    readonly name: string
    readonly hostPath?: { readonly path: string; readonly type: string }
    readonly configMap?: { readonly name: string }
    readonly projected?: object
  }[]
}

/** Files that are not for Kubernetes. */
const others = /^(?:helm|prometheus)\//

/** Every YAML file for Kubernetes, as a path below deploy/. */
export const yamlFiles = readdirSync(deploy, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.yaml') && !others.test(name))
  .sort()

/** The documents of a file; throws for any fault of one. */
export function documents(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(deploy, file), 'utf8'), { uniqueKeys: true }).map((document) => {
    const [problem] = [...document.errors, ...document.warnings]
    if (problem) throw new Error(`${file}: ${problem.message}`)
    return document.toJS() as Manifest
  })
}

/** The one document of a file of this kind. */
export function only(file: string, kind: string): Manifest {
  const [found, ...more] = documents(file).filter((one) => one.kind === kind)
  if (found === undefined || more.length > 0) throw new Error(`${file} does not hold one ${kind}`)
  return found
}

/** Files that hold a pod, or a template of one: whole ones, no patches. */
export const podFiles = {
  daemonSet: 'base/daemonset.yaml',
  staticPod: 'static-pod/holdfast-pod.yaml',
  installer: 'installer/job.yaml',
  initContainer: 'init-container/pod.yaml',
} as const

export function podSpec(file: string): PodSpec {
  const [pod] = documents(file)
  const spec = pod?.['spec'] as PodSpec | { template: { spec: PodSpec } } | undefined
  if (spec === undefined) throw new Error(`${file} holds no pod`)
  return 'template' in spec ? spec.template.spec : spec
}

export function containersOf(spec: PodSpec): Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers]
}
