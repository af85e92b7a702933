import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { containersOf, deploy, documents, only, podFiles, podSpec, yamlFiles, type Manifest } from './manifests.js'

const version = (JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string }).version

const kustomizations = yamlFiles.filter((file) => file.endsWith('kustomization.yaml'))

/** Files that no kustomization takes in: they go to a node's disk. */
const forTheNode = ['static-pod/holdfast-pod.yaml', 'static-pod/holdfast.yaml', 'systemd/holdfast.yaml']

interface Kustomization {
  readonly resources?: readonly string[]
  readonly patches?: readonly { readonly path?: string }[]
  readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[]
}

/** Files and directories that a kustomization refers to, below deploy/. */
function references(file: string): string[] {
  const { resources = [], patches = [], configMapGenerator = [] } = documents(file)[0] as unknown as Kustomization
  return [
    ...resources,
    ...patches.flatMap(({ path }) => (path === undefined ? [] : [path])),
    ...configMapGenerator.flatMap(({ files }) => files),
  ].map((path) => normalize(join(dirname(file), path)))
}

await t.test('each file is YAML, and each object names its kind', async (t) => {
  t.ok(yamlFiles.length > 15, `${yamlFiles.length} files`)
  for (const file of yamlFiles) {
    const found = documents(file)
    t.ok(found.length > 0, file)
    for (const { apiVersion, kind } of found) t.match(`${apiVersion} ${kind}`, /^[a-z0-9./]+ [A-Z]\w+$/, file)
  }
})

await t.test('kustomizations name each file of their directory, and no missing one', async (t) => {
  const named = new Set(kustomizations.flatMap(references))
  for (const path of named) t.ok(existsSync(join(deploy, path)), path)
  for (const directory of [...named].filter((path) => statSync(join(deploy, path)).isDirectory())) {
    t.ok(kustomizations.includes(join(directory, 'kustomization.yaml')), `${directory} is a kustomization`)
  }
  const rest = yamlFiles.filter((file) => !kustomizations.includes(file) && !named.has(file))
  t.same(rest, forTheNode)
})

await t.test('a kustomization takes no file from another directory, which kubectl refuses', async (t) => {
  for (const file of kustomizations) {
    for (const path of references(file)) {
      if (statSync(join(deploy, path)).isFile()) t.equal(dirname(path), dirname(file), `${file}: ${path}`)
    }
  }
})

for (const [name, file] of Object.entries(podFiles)) {
  await t.test(`${name} grants only the needed rights`, async (t) => {
    const spec = podSpec(file)
    t.equal(spec.securityContext.seccompProfile?.type, 'RuntimeDefault')
    for (const container of containersOf(spec)) {
      t.equal(container.image, `holdfast:${version}`)
      const { securityContext, resources, volumeMounts } = container
      t.same(securityContext.capabilities?.drop, ['ALL'])
      t.same(securityContext.capabilities?.add ?? [], [])
      t.equal(securityContext.allowPrivilegeEscalation, false)
      t.equal(securityContext.readOnlyRootFilesystem, true)
      t.not(securityContext.privileged, true)
      t.ok('memory' in resources.requests && 'memory' in resources.limits)
      // A limit of the processor's time lengthens a publication that has begun.
      t.equal(resources.limits.cpu, undefined)
      const volumes = spec.volumes.map((volume) => volume.name)
      for (const mount of volumeMounts) t.ok(volumes.includes(mount.name), `volume of ${mount.mountPath}`)
    }
    if (name !== 'initContainer') t.equal(spec.priorityClassName, 'system-node-critical')
  })

  await t.test(`${name}: host paths are narrow, at the host's own place, and see the host's mounts`, async (t) => {
    const spec = podSpec(file)
    const hostPaths = new Map(spec.volumes.flatMap(({ name, hostPath }) => (hostPath ? [[name, hostPath]] : [])))
    if (name === 'initContainer') t.equal(hostPaths.size, 0)
    for (const { name: volume, mountPath, readOnly, mountPropagation } of spec.containers[0]?.volumeMounts ?? []) {
      const hostPath = hostPaths.get(volume)
      if (hostPath === undefined) continue
      t.equal(mountPath, hostPath.path, 'paths in messages and in status are the node’s')
      t.notMatch(hostPath.path, /^\/(|etc|etc\/kubernetes|var|var\/lib|run|var\/run)\/?$/)
      const written = readOnly !== true && !['/var/lib/holdfast', '/run/holdfast/locks'].includes(mountPath)
      t.equal(mountPropagation, written ? 'HostToContainer' : undefined, mountPath)
    }
  })
}

await t.test('tokens go only where they are needed', async (t) => {
  t.equal(podSpec(podFiles.daemonSet).automountServiceAccountToken, true)
  t.equal(podSpec(podFiles.installer).automountServiceAccountToken, true)
  t.equal(podSpec(podFiles.staticPod).automountServiceAccountToken, false)
  const spec = podSpec(podFiles.initContainer)
  t.equal(spec.automountServiceAccountToken, false)
  const withToken = containersOf(spec).filter(({ volumeMounts }) =>
    volumeMounts.some(({ mountPath }) => mountPath.endsWith('/kubernetes.io/serviceaccount')),
  )
  t.same(
    withToken.map(({ name }) => name),
    ['files'],
  )
  for (const file of yamlFiles) {
    for (const account of documents(file).filter(({ kind }) => kind === 'ServiceAccount')) {
      t.equal(account['automountServiceAccountToken'], false, file)
    }
  }
})

// kubelet refuses a static pod that refers to any object of the API (pkg/kubelet/config/common.go, HasAPIObjectReference).
await t.test('the static pod refers to no object of the API', async (t) => {
  const spec = podSpec(podFiles.staticPod)
  t.equal(spec.serviceAccountName, undefined)
  for (const volume of spec.volumes) t.same(Object.keys(volume).sort(), ['hostPath', 'name'])
  t.notMatch(JSON.stringify(spec), /"(secretKeyRef|configMapKeyRef|secretRef|configMapRef|imagePullSecrets)"/)
})

await t.test('namespaces and service accounts that are named exist', async (t) => {
  // Kustomizations and configurations are no objects of the API.
  const all = yamlFiles.flatMap(documents).filter((one) => 'metadata' in one)
  const names = (kind: string): string[] =>
    all.filter((one) => one.kind === kind).map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)
  const namespaces = [...names('Namespace'), '/default', '/kube-system']
  const accounts = names('ServiceAccount')
  for (const { kind, metadata, ...rest } of all as (Manifest & { subjects?: Subject[] })[]) {
    if (metadata.namespace) t.ok(namespaces.includes(`/${metadata.namespace}`), `${kind} ${metadata.name}`)
    for (const subject of rest.subjects ?? []) {
      if (subject.kind !== 'ServiceAccount') continue
      t.ok(accounts.includes(`${subject.namespace ?? ''}/${subject.name}`), `${kind}: ${subject.name}`)
    }
  }
  for (const file of [podFiles.daemonSet, podFiles.installer, podFiles.initContainer]) {
    const namespace = documents(file)[0]?.metadata.namespace ?? ''
    t.ok(accounts.includes(`${namespace}/${podSpec(file).serviceAccountName}`), file)
  }
  // hostPath is allowed by this level only (Pod Security Standards).
  const { labels } = only('namespace/namespace.yaml', 'Namespace').metadata as { labels?: object }
  t.match(labels, { 'pod-security.kubernetes.io/enforce': 'privileged' })
})

interface Subject {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}
