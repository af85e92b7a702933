/** The files of deploy/, given to a real API server as an operator gives them: rendered, and then judged by its own validation. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { holdfast } from '../cli/holdfast.js'
import { yamlBlocks } from '../deploy/operations-page.js'
import { deploy } from '../deploy/manifests.js'
import { executable, project } from '../project.js'
import { findProgram } from './assets.js'
import { comparable, created, helm, objectsOf, unhashed, type ApiObject } from './chart.js'
import { Cluster } from './cluster.js'
import { workingDirectory } from './guard.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

interface Rendered {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

async function render(directory: string): Promise<{ text: string; objects: Rendered[] }> {
  const text = await cluster.kubectl(['kustomize', directory])
  return { text, objects: parseAllDocuments(text).map((document) => document.toJS() as Rendered) }
}

/** The server checks every field (`--validate=strict`), and the Pod Security level of the namespace. */
const apply = (text: string): Promise<string> =>
  cluster.kubectl(['apply', '--server-side', '--validate=strict', '--filename=-'], text)

/** A kustomization of deploy/base as an operator makes one, with components or another configuration. */
function overlay({ components = [], configuration }: { components?: string[]; configuration?: string }): string {
  const directory = mkdtempSync(join(workingDirectory, 'overlay-'))
  const path = (...parts: string[]): string => relative(directory, join(deploy, ...parts))
  if (configuration !== undefined) writeFileSync(join(directory, 'holdfast.yaml'), configuration)
  const generator = { name: 'holdfast', namespace: 'holdfast', behavior: 'replace', files: ['holdfast.yaml'] }
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [path('base')],
    components: components.map((component) => path('components', component)),
    ...(configuration !== undefined && { configMapGenerator: [generator] }),
  }
  writeFileSync(join(directory, 'kustomization.yaml'), JSON.stringify(kustomization))
  return directory
}

/** First, since nothing may be there yet. */
await t.test('the chart makes what the kustomize tree makes', async (t) => {
  await apply((await render(join(deploy, 'namespace'))).text)
  const components = ['other-owners', 'signals', 'metrics', 'seccomp', 'critical-quota']
  const every = { otherOwners: true, signals: true, metrics: true, seccomp: true, criticalQuota: true }
  const variants = [
    { name: 'as it is', tree: join(deploy, 'base'), values: {} },
    { name: 'on the control plane', tree: join(deploy, 'overlays/control-plane'), values: { controlPlane: true } },
    { name: 'with each component', tree: overlay({ components }), values: every },
    { name: 'on OpenShift', tree: join(deploy, 'overlays/openshift'), values: { openshift: true } },
  ]
  for (const { name, tree, values } of variants) {
    const [ours, theirs] = [await helm('template', [], values), (await render(tree)).text].map((text) =>
      objectsOf(unhashed(text)).filter(({ kind }) => kind !== 'Namespace'),
    )
    // The server knows no kinds of OpenShift: those are compared as they are rendered.
    const answers = [ours, theirs].map(async (objects = []) => {
      const isForeign = ({ apiVersion }: ApiObject) => apiVersion.includes('openshift')
      const text = objects.filter((object) => !isForeign(object)).map((object) => JSON.stringify(object))
      return comparable([...objects.filter(isForeign), ...(await created(cluster, text.join('\n---\n')))])
    })
    const [chart, kustomize] = await Promise.all(answers)
    t.ok(Object.keys(chart ?? {}).length >= 7, name)
    t.same(chart, kustomize, name)
  }
})

await t.test('the API server takes the names of a release that YAML reads as something else', async (t) => {
  for (const name of ['4711', '1e3', '0x1f', 'on', 'null']) {
    for (const values of [{}, { fullnameOverride: name, criticalQuota: true }]) {
      const text = await helm('template', [], values, name)
      await t.resolves(cluster.kubectl(['apply', '--dry-run=server', '--validate=strict', '--filename=-'], text), name)
    }
  }
})

await t.test('another chart that depends on it switches it on and off', async (t) => {
  const parent = mkdtempSync(join(workingDirectory, 'parent-'))
  cpSync(join(deploy, 'helm/holdfast'), join(parent, 'charts/holdfast'), { recursive: true, dereference: true })
  const { version } = parse(readFileSync(join(parent, 'charts/holdfast/Chart.yaml'), 'utf8')) as { version: string }
  const dependencies = [{ name: 'holdfast', version, condition: 'holdfast.enabled' }]
  writeFileSync(
    join(parent, 'Chart.yaml'),
    JSON.stringify({ apiVersion: 'v2', name: 'parent', version: '0.1.0', dependencies }),
  )
  for (const [enabled, count] of [
    ['true', 1],
    ['false', 0],
  ] as const) {
    const words = ['template', 'one', parent, '--set', `holdfast.enabled=${enabled},global.registry=example.com`]
    const { stdout } = await promisify(execFile)(await findProgram('helm'), words, { env: { HOME: parent } })
    t.equal(objectsOf(stdout).filter(({ kind }) => kind === 'DaemonSet').length, count, enabled)
  }
})

await t.test('kubelet probes the agent where it listens', async (t) => {
  const rendered = (values: object) => helm('template', ['--show-only', 'templates/daemonset.yaml'], values)
  const at = (address: string | null) => ({ configuration: { server: { address } } })
  const other = await rendered(at('0.0.0.0:9000'))
  t.match(
    other,
    /containerPort: 9000 [^]*"127.0.0.1", port: 9000, path: \/livez[^]*"127.0.0.1", port: 9000, path: \/readyz/,
  )
  const scraped = await rendered({ ...at('127.0.0.1:9000'), metrics: true, ipv6: true })
  t.match(scraped, /port: "9000"[^]*--listen=\[\$\(HOST_IP\)\]:9000\n[^]*httpGet: \{ port: 9000, path: \/livez/)
  const refused = { message: /server.address must have a port for the probes/ }
  await t.rejects(rendered(at('127.0.0.1:0')), refused)
  await t.rejects(rendered({ configuration: { server: null } }), refused)
})

await t.test('the chart grants the rights that `holdfast rbac` prints', async (t) => {
  const item = (content: object) => ({ path: '/srv/x', contents: [content] })
  const combine = {
    combine: 'a',
    from: [
      { secret: 'two/b', key: 'k' },
      { configMap: 'c', key: 'k' },
    ],
  }
  const configurations = [
    {
      source: { namespace: 'one', kubernetes: {} },
      directories: [item({ secret: 'b' }), item({ secret: 'a' }), item(combine)],
      report: true,
    },
    {
      source: { kubernetes: { watch: 'namespaces' } },
      directories: [item({ secrets: { selector: 'a' } }), item(combine)],
    },
    {
      source: { kubernetes: { watch: 'namespaces' } },
      directories: [item({ configMaps: { selector: 'a', namespace: 'default' } }), item({ secret: 'default/x' })],
    },
  ]
  for (const { source, directories, report } of configurations) {
    const configuration = {
      ...(report && { report }),
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      source,
      directories: directories.map((directory, index) => ({ ...directory, path: `/srv/${index}` })),
    }
    const file = join(mkdtempSync(join(workingDirectory, 'rights-')), 'holdfast.yaml')
    writeFileSync(file, JSON.stringify(configuration))
    const printed = await holdfast(['rbac', '--config', file])
    t.equal(printed.code, 0, printed.stderr)
    // The chart's own source has a namespace.
    const values = {
      configuration: { ...configuration, source: { namespace: null, ...source } },
      parents: [{ name: 'srv', path: '/srv' }],
    }
    const rendered = objectsOf(await helm('template', ['--show-only', 'templates/rights.yaml'], values))
    t.same(comparable(rendered), comparable(objectsOf(printed.stdout)), JSON.stringify(source))
  }
})

await t.test('helm installs the chart with the values of docs/operations.md, and takes it away', async (t) => {
  const access = ['--kubeconfig', cluster.adminKubeconfig]
  const block = yamlBlocks().find(({ text }) => text.startsWith('# my-values.yaml\n'))
  const values = parse(block?.text ?? '') as { configuration: object }
  // Roles in namespaces of the operator's own, which have to be there.
  await cluster.kubectl(['create', 'namespace', 'web'])
  t.match(await helm('install', access, values), /STATUS: deployed[^]*publish 2 directories/)
  const path = ['-o', 'jsonpath={.spec.template.spec.containers[0].volumeMounts[*].mountPath}']
  const mounts = await cluster.kubectl(['-n', 'holdfast', 'get', 'daemonset', 'holdfast', ...path])
  t.same(mounts.split(' '), ['/etc/holdfast', '/var/lib/holdfast', '/etc/kubernetes/node-certs', '/var/lib/web'])

  // A second release beside it: no object in common, and the end of one leaves the other whole.
  const edge = {
    configuration: {
      stateDirectory: '/var/lib/holdfast-edge',
      source: { namespace: 'web' },
      directories: [{ path: '/srv/edge/tls', contents: [{ secret: 'edge-tls' }] }],
      server: { address: '127.0.0.1:10809' },
    },
    parents: [{ name: 'edge', path: '/srv/edge' }],
  }
  t.match(await helm('install', access, edge, 'edge'), /STATUS: deployed[^]*daemonset\/edge-holdfast/)
  const kinds = 'daemonset,configmap,serviceaccount,role,rolebinding'
  const of = async (release: string): Promise<string[]> => {
    const selector = ['--selector', `app.kubernetes.io/instance=${release}`, '-o', 'name']
    return (await cluster.kubectl(['get', kinds, '--all-namespaces', ...selector])).trim().split('\n').sort()
  }
  const [first, second] = [await of('holdfast'), await of('edge')]
  t.equal(first.filter((name) => second.includes(name)).length, 0)
  for (const one of ['configmap/edge-holdfast', 'daemonset.apps/edge-holdfast']) t.ok(second.includes(one), one)
  const selectors = ['-n', 'holdfast', 'get', 'daemonset', '-o', 'jsonpath={.items[*].spec.selector.matchLabels}']
  t.match(await cluster.kubectl(selectors), /instance":"edge".*instance":"holdfast"/)
  await helm('uninstall', access, {}, 'edge')
  t.same(await of('holdfast'), first)
  t.same(await of('edge'), [''])
  await helm('uninstall', access)
  const wrong = { configuration: { ...values.configuration, colour: 'red' } }
  const refused = /'\/configuration': additional properties 'colour' not allowed/
  await t.rejects(helm('install', access, wrong), { message: refused })
})

for (const place of ['base', 'overlays/control-plane', 'static-pod', 'installer', 'init-container']) {
  await t.test(`the API server accepts the rendered ${place}`, async (t) => {
    const { text, objects } = await render(join(deploy, place))
    const output = await apply(text)
    for (const { kind, metadata } of objects) {
      t.match(output, new RegExp(`^${kind.toLowerCase()}\\S*/${metadata.name} serverside-applied$`, 'm'))
    }
  })
}

await t.test('the API server accepts the rendered overlay of docs/operations.md', async (t) => {
  const directory = mkdtempSync(join(workingDirectory, 'operator-'))
  cpSync(deploy, join(directory, 'deploy'), { recursive: true })
  mkdirSync(join(directory, 'my-cluster'))
  const files = yamlBlocks().filter(({ name }) => name.endsWith('.yaml'))
  t.same(
    files.map(({ name }) => name),
    ['kustomization.yaml', 'holdfast.yaml', 'daemonset.yaml'],
  )
  for (const { name, text } of files) writeFileSync(join(directory, 'my-cluster', name), text)
  const configuration = join(directory, 'my-cluster/holdfast.yaml')
  const rights = await holdfast(['rbac', '--config', configuration, '--name', 'holdfast-objects'])
  t.equal(rights.code, 0, rights.stderr)
  writeFileSync(join(directory, 'my-cluster/rights.yaml'), rights.stdout)
  const { text, objects } = await render(join(directory, 'my-cluster'))
  await apply(text)
  const roles = objects.filter(({ kind }) => kind === 'Role')
  t.same([...new Set(roles.map(({ metadata }) => metadata.name))], ['holdfast-objects'])
  t.match(text, 'image: registry.example.com/holdfast:0.2.0')
  t.match(text, 'mountPath: /var/lib/web')
})

await t.test('the API server accepts the rendered OpenShift overlay, but for its own kind of object', async (t) => {
  const { objects } = await render(join(deploy, 'overlays/openshift'))
  const ours = objects.filter(({ kind }) => kind !== 'SecurityContextConstraints')
  t.equal(ours.length, objects.length - 1)
  await apply(ours.map((one) => JSON.stringify(one)).join('\n---\n'))
})

await t.test('components add exactly what they name', async (t) => {
  const { objects, text } = await render(overlay({ components: ['other-owners', 'signals', 'metrics'] }))
  await apply(text)
  const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet')
  t.match(daemonSet, {
    spec: {
      template: {
        metadata: { annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '10808' } },
        spec: {
          hostPID: true,
          containers: [
            {
              args: ['agent', '--config=/etc/holdfast/holdfast.yaml', '--listen=$(HOST_IP):10808'],
              securityContext: {
                capabilities: { add: ['CHOWN', 'FOWNER', 'DAC_OVERRIDE', 'KILL'], drop: ['ALL'] },
              },
            },
          ],
        },
      },
    },
  })
  t.notMatch(text, /host: 127\.0\.0\.1$/m, 'probes ask the address that the agent listens on')
})

await t.test('the API server would accept the static pod’s manifest, too', async (t) => {
  const text = readFileSync(join(deploy, 'static-pod/holdfast-pod.yaml'), 'utf8')
  const args = ['create', '--dry-run=server', '--validate=strict', '--filename=-']
  t.match(await cluster.kubectl(args, text), /^pod\/holdfast created/)
})

await t.test('a changed configuration is another ConfigMap, so that the DaemonSet rolls', async (t) => {
  const names = async (directory: string): Promise<(string | undefined)[]> => {
    const { objects } = await render(directory)
    const mounted = /configMap:\s+name: (\S+)/.exec(stringify(objects.find(({ kind }) => kind === 'DaemonSet')))
    return [objects.find(({ kind }) => kind === 'ConfigMap')?.metadata.name, mounted?.[1]]
  }
  const [before, mountedBefore] = await names(overlay({}))
  const [after, mountedAfter] = await names(overlay({ configuration: 'another' }))
  t.match(before, /^holdfast-[a-z0-9]{10}$/)
  t.not(after, before)
  t.same([mountedBefore, mountedAfter], [before, after])
})

await t.test('the commands of docs/tutorial.md do what the page says, but for nginx and the agent', async (t) => {
  const page = readFileSync(join(project, 'docs/tutorial.md'), 'utf8')
  const directory = mkdtempSync(join(workingDirectory, 'tutorial-'))
  for (const name of ['nginx', 'bin']) mkdirSync(join(directory, name))
  const placed = (text: string): string =>
    text
      .replaceAll('/etc/rancher/k3s/k3s.yaml', cluster.adminKubeconfig)
      .replaceAll('/etc/nginx', join(directory, 'nginx'))
      .replaceAll('/etc/holdfast', directory)
  const [, configuration = ''] = /^```yaml\n# \/etc\/holdfast\/holdfast\.yaml\n([^]*?)^```$/m.exec(page) ?? []
  writeFileSync(
    join(directory, 'holdfast.yaml'),
    `${placed(configuration)}stateDirectory: ${join(directory, 'state')}\n`,
  )
  const program = (name: string, line: string) =>
    writeFileSync(join(directory, 'bin', name), `#!/bin/sh\nexec ${line} "$@"\n`, { mode: 0o755 })
  program('holdfast', `${process.execPath} ${executable}`)
  program('kubectl', await findProgram('kubectl'))
  const prompts = [...page.matchAll(/^# (.+)$/gm)].map(([, line = '']) => line)
  const commands = prompts.filter((line) =>
    /^(?:export|pair|kubectl|holdfast (?:check|sync)) /.test(line.replace('pair()', 'pair')),
  )
  t.equal(commands.length, 8, commands.join('\n'))
  const sync = commands.find((line) => line.startsWith('holdfast sync ')) ?? ''
  // What the agent does by itself after each of these.
  const script = commands.flatMap((line, index) => (index > 5 ? [line, `${sync} || true`] : [line])).map(placed)
  const options = {
    cwd: directory,
    env: { PATH: `${join(directory, 'bin')}:${process.env['PATH'] ?? ''}`, HOME: directory },
  }
  const { stdout } = await promisify(execFile)('bash', ['-euc', script.join('\n')], options)
  t.match(
    stdout,
    new RegExp(
      [
        'secret/web-tls created\\n',
        'this node is fit: 0 faults, ',
        '\\ncreated  \\S+/nginx/tls  sha256:',
        'secret/web-tls configured\\nreplaced  \\S+/nginx/tls  sha256:',
        'secret/web-tls configured\\nfailed  \\S+/nginx/tls  CertificateInvalid: ',
      ].join('[^]*'),
    ),
  )
})
