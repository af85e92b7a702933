import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { loadConfiguration } from '../../src/config/parse.js'
import type { AgentConfiguration } from '../../src/config/types.js'
import { deploy, podFiles, podSpec, yamlFiles, type Container } from './manifests.js'

const files = yamlFiles.filter((file) => file.endsWith('/holdfast.yaml'))

const load = (file: string): Promise<AgentConfiguration> => loadConfiguration(join(deploy, file))

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(`${directory}/`)
}

await t.test('each configuration passes the agent’s own parser', async (t) => {
  t.same(files, [
    'base/holdfast.yaml',
    'init-container/holdfast.yaml',
    'static-pod/holdfast.yaml',
    'systemd/holdfast.yaml',
  ])
  for (const file of files) {
    const { directories } = await load(file)
    t.ok(directories.length > 0, file)
  }
})

await t.test('those for nodes say the same, but for their credentials', async (t) => {
  const [base, staticPod, systemd] = await Promise.all(
    ['base', 'static-pod', 'systemd'].map((place) => load(`${place}/holdfast.yaml`)),
  )
  for (const other of [staticPod, systemd]) {
    // `systemctl reload` is what an operator of a unit expects; a container has no such word.
    const reload = other === systemd ? { reload: 'auto' } : {}
    const same = { file: '', digest: '', source: {} }
    t.same({ ...other, ...same, ...reload }, { ...base, ...same })
  }
  t.equal(systemd?.reload, 'signal')
})

const pods = [
  { pod: podFiles.daemonSet, configuration: 'base/holdfast.yaml', container: 'agent' },
  { pod: podFiles.staticPod, configuration: 'static-pod/holdfast.yaml', container: 'agent' },
  { pod: podFiles.initContainer, configuration: 'init-container/holdfast.yaml', container: 'files' },
]

function containerOf(pod: string, name: string): Container {
  const spec = podSpec(pod)
  const found = [...(spec.initContainers ?? []), ...spec.containers].find((one) => one.name === name)
  if (found === undefined) throw new Error(`${pod} has no container ${name}`)
  return found
}

for (const { pod, configuration, container: name } of pods) {
  await t.test(`${pod}: mounts and probes are what ${configuration} needs`, async (t) => {
    const container = containerOf(pod, name)
    const { directories, stateDirectory, server, source } = await load(configuration)
    const file = container.args?.find((word) => word.startsWith('--config='))?.slice('--config='.length) ?? ''
    const writable = container.volumeMounts.filter(({ readOnly }) => readOnly !== true)
    const readOnly = container.volumeMounts.filter((mount) => mount.readOnly === true)

    t.ok(
      readOnly.some(({ mountPath }) => mountPath === dirname(file)),
      `${file} is mounted`,
    )
    if (container.args?.[0] === 'agent') {
      const variable = container.env?.find((one) => one.name === 'HOLDFAST_CONFIG')
      t.equal(variable?.value, file, 'kubectl exec … holdfast status needs no --config')
    }
    for (const { path } of directories) {
      // Both sides of an exchange must be in one mount.
      t.ok(
        writable.some(({ mountPath }) => isBelow(path, mountPath)),
        `a parent of ${path} is mounted`,
      )
      t.notOk(
        container.volumeMounts.some(({ mountPath }) => mountPath === path),
        `${path} is no mount itself`,
      )
    }
    if (source.type === 'kubernetes' && source.kubeconfig !== undefined) {
      const { kubeconfig } = source
      t.ok(
        readOnly.some(({ mountPath }) => isBelow(kubeconfig, mountPath)),
        `${kubeconfig} is mounted`,
      )
    }
    if (container.args?.[0] !== 'agent') return
    t.ok(
      writable.some(({ mountPath }) => mountPath === stateDirectory),
      `${stateDirectory} is mounted`,
    )
    t.equal(podSpec(pod).hostNetwork, true)
    for (const [probe, path] of [
      [container.livenessProbe, '/livez'],
      [container.readinessProbe, '/readyz'],
    ] as const) {
      t.match(probe?.httpGet, { host: server?.host, port: server?.port, path })
    }
  })
}

await t.test("the unit's sandbox allows writes to its configuration's paths alone", async (t) => {
  const unit = readFileSync(join(deploy, 'systemd/holdfast.service'), 'utf8')
  const all = (key: string): string[] =>
    [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].flatMap(([, value = '']) =>
      value.split(' ').filter((word) => word !== ''),
    )
  const { directories, stateDirectory } = await load('systemd/holdfast.yaml')
  t.same(all('ReadWritePaths'), [...new Set(directories.map(({ path }) => dirname(path)))])
  t.same(
    all('StateDirectory').map((name) => join('/var/lib', name)),
    [stateDirectory],
  )
  t.same(all('RequiresMountsFor'), [...all('ReadWritePaths'), stateDirectory])
  t.same(all('ProtectSystem'), ['strict'])
  t.same(all('CapabilityBoundingSet'), [])
  t.match(unit, /^CapabilityBoundingSet=$/m)
  t.match(all('ExecStart').join(' '), /^\/usr\/local\/bin\/holdfast agent --config \/etc\/holdfast\/holdfast\.yaml$/)
})
