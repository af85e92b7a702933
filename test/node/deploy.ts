/** The manifests of deploy/, applied as an operator applies them: through an overlay with the image and what this cluster needs. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { Cluster } from '../e2e/cluster.js'
import { command } from '../deploy/operations-page.js'
import { workingDirectory } from '../e2e/guard.js'
import { project } from '../project.js'

const deployDirectory = join(project, 'deploy')

export interface PodTemplate {
  readonly spec: { readonly containers: readonly { readonly securityContext: object }[] }
}

interface Rendered {
  readonly kind: string
  readonly spec: { readonly template: PodTemplate }
}

export interface Overlay {
  /** Of deploy/: `base`, `installer`. */
  readonly base: string
  /** Of deploy/components. */
  readonly components?: readonly string[]
  /** The agent's configuration, instead of the base's. */
  readonly configuration?: object
  /** kustomize's patches. */
  readonly patches?: readonly object[]
}

/** The pod template of the overlay's DaemonSet, as `kubectl kustomize` makes it. */
export async function templateOf(cluster: Cluster, overlay: Overlay): Promise<PodTemplate> {
  const rendered = await cluster.kubectl(['kustomize', writeOverlay(cluster, overlay)])
  const objects = parseAllDocuments(rendered).map((document) => document.toJS() as Rendered)
  const found = objects.find(({ kind }) => kind === 'DaemonSet')
  if (!found) throw new Error(`no DaemonSet in ${overlay.base}`)
  return found.spec.template
}

/** `kubectl apply -k` */
export async function apply(cluster: Cluster, overlay: Overlay): Promise<void> {
  await cluster.kubectl(['apply', '-k', writeOverlay(cluster, overlay)])
}

/** As docs/operations.md says it, but for the DaemonSet, which goes first. */
export async function uninstall(cluster: Cluster, overlay: Overlay): Promise<void> {
  const directory = writeOverlay(cluster, overlay)
  await cluster.kubectl(command('kubectl delete -k my-cluster', { 'my-cluster': directory }).slice(1))
}

function writeOverlay(cluster: Cluster, overlay: Overlay): string {
  const { base, components = [], configuration, patches = [] } = overlay
  const directory = mkdtempSync(join(workingDirectory, 'overlay-'))
  const of = (...parts: string[]): string => relative(directory, join(deployDirectory, ...parts))
  if (configuration) writeFileSync(join(directory, 'holdfast.yaml'), JSON.stringify(configuration))
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [of(base)],
    components: components.map((component) => of('components', component)),
    images: [{ name: 'holdfast', newTag: 'test' }],
    patches: [...['DaemonSet', 'Job'].map((kind) => serverPatch(kind, cluster)), ...patches],
    ...(configuration && {
      configMapGenerator: [{ name: 'holdfast', namespace: 'holdfast', behavior: 'replace', files: ['holdfast.yaml'] }],
    }),
  }
  writeFileSync(join(directory, 'kustomization.yaml'), JSON.stringify(kustomization))
  return directory
}

/** There is no kube-proxy, which would bring the pods from the service's address to the API server. */
export function serverVariables(cluster: Cluster): { name: string; value: string }[] {
  return [
    { name: 'KUBERNETES_SERVICE_HOST', value: '127.0.0.1' },
    { name: 'KUBERNETES_SERVICE_PORT', value: String(cluster.api.port) },
  ]
}

function serverPatch(kind: string, cluster: Cluster): object {
  const path = '/spec/template/spec/containers/0/env/-'
  const operations = serverVariables(cluster).map((value) => ({ op: 'add', path, value }))
  return { target: { kind }, patch: JSON.stringify(operations) }
}
