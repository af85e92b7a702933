/** What the chart makes of values, by helm alone: wrong ones are refused with their place, before any server sees them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { dashboard, rulesFile } from '../deploy/monitoring.js'
import { deploy } from '../deploy/manifests.js'
import { helm, objectsOf, type ApiObject } from './chart.js'

const rendered = async (values: object, release?: string): Promise<ApiObject[]> =>
  objectsOf(await helm('template', [], values, release))

const node = { name: 'node-certs', path: '/etc/kubernetes/node-certs' }
const at = (path: string, more: object = {}) => ({
  configuration: { directories: [{ path, contents: [{ secret: 'x' }], ...more }] },
})

/** Unknown fields, at each depth that a reader may type one. */
const unknown: readonly [values: object, place: string, field: string][] = [
  [{ image: { pulPolicy: 'Always' } }, 'image', 'pulPolicy'],
  [{ tolerations: [{ operater: 'Exists' }] }, 'tolerations/0', 'operater'],
  [{ resources: { limits: { memroy: '1Gi' } } }, 'resources/limits', 'memroy'],
  [{ imagePullSecrets: [{ nmae: 'x' }] }, 'imagePullSecrets/0', 'nmae'],
  [{ env: [{ name: 'A', valeu: 'x' }] }, 'env/0', 'valeu'],
  [{ updateStrategy: { rollingUpdate: { maxSurge: 1 } } }, 'updateStrategy/rollingUpdate', 'maxSurge'],
  [{ serviceAccount: { nmae: 'x' } }, 'serviceAccount', 'nmae'],
  [{ affinity: { nodeAfinity: {} } }, 'affinity', 'nodeAfinity'],
]

const mistakes: readonly { readonly of: string; readonly values: object; readonly says: RegExp }[] = [
  {
    of: 'a target without a parent',
    values: { ...at('/var/lib/web/tls'), parents: [node] },
    says: /configuration\.directories\[0\]\.path "\/var\/lib\/web\/tls": no entry of parents is above it; add \{ name: web, path: \/var\/lib\/web \}/,
  },
  {
    of: 'an old path without a parent',
    values: { ...at('/etc/kubernetes/node-certs/a', { movedFrom: '/srv/old' }), parents: [node] },
    says: /configuration\.directories\[0\]\.movedFrom "\/srv\/old": no entry of parents is above it/,
  },
  {
    of: 'a relative target',
    values: { ...at('node/tls'), parents: [node] },
    says: /configuration\.directories\[0\]\.path "node\/tls": must be absolute/,
  },
  {
    of: 'the root as a parent',
    values: { ...at('/srv/a'), parents: [{ name: 'all', path: '/' }] },
    says: /parents\[0\]\.path "\/": is the whole node/,
  },
  {
    of: 'a parent that is a target',
    values: { ...at('/srv/a'), parents: [{ name: 'a', path: '/srv/a' }] },
    says: /configuration\.directories\[0\]\.path "\/srv\/a": parents\[0\] mounts "\/srv\/a", which is at or below it; mount \/srv:/,
  },
  {
    of: 'a mount below a target',
    values: {
      ...at('/srv/a'),
      parents: [{ name: 'srv', path: '/srv' }],
      readOnly: [{ name: 'b', path: '/srv/a/b' }],
    },
    says: /configuration\.directories\[0\]\.path "\/srv\/a": readOnly\[0\] mounts "\/srv\/a\/b", which is at or below it; mount \/srv:/,
  },
  {
    of: 'a target on a mount that is read-only',
    values: {
      ...at('/srv/ro/a'),
      parents: [{ name: 'srv', path: '/srv' }],
      readOnly: [{ name: 'ro', path: '/srv/ro' }],
    },
    says: /configuration\.directories\[0\]\.path "\/srv\/ro\/a": lies on the mount readOnly\[0\]/,
  },
  {
    of: 'a parent within a parent',
    values: {
      ...at('/srv/a/b'),
      parents: [
        { name: 'srv', path: '/srv' },
        { name: 'a', path: '/srv/a' },
      ],
    },
    says: /parents\[1\]\.path "\/srv\/a": overlaps parents\[0\]\.path "\/srv"/,
  },
  {
    of: 'a parent at the agent’s state',
    values: { ...at('/var/lib/holdfast/a'), parents: [{ name: 'x', path: '/var/lib/holdfast' }] },
    says: /parents\[0\]\.path "\/var\/lib\/holdfast": is mounted already, as the volume state/,
  },
  {
    of: 'one path twice',
    values: { ...at('/srv/a'), parents: [{ name: 'srv', path: '/srv' }], readOnly: [{ name: 'again', path: '/srv' }] },
    says: /readOnly\[0\]\.path "\/srv": is mounted already, as the volume srv/,
  },
  {
    of: 'the name of the chart’s volume',
    values: { ...at('/srv/a'), parents: [{ name: 'state', path: '/srv' }] },
    says: /parents\[0\]\.name "state": is a volume of the chart/,
  },
  {
    of: 'one name twice',
    values: { ...at('/srv/a'), parents: [{ name: 'x', path: '/srv' }], readOnly: [{ name: 'x', path: '/run/y' }] },
    says: /readOnly\[0\]\.name "x": is the name of another volume/,
  },
  {
    of: '.. in a parent',
    values: { ...at('/srv/a'), parents: [{ name: 'x', path: '/var/../srv' }] },
    says: /parents\[0\]\.path "\/var\/\.\.\/srv": write it as "\/srv"/,
  },
  {
    of: 'a kubeconfig that no mount has',
    values: {
      configuration: { source: { kubernetes: { kubeconfig: '/etc/kubernetes/holdfast/kubeconfig' } } },
    },
    says: /configuration\.source\.kubernetes\.kubeconfig "\/etc\/kubernetes\/holdfast\/kubeconfig": no entry of readOnly or parents has it/,
  },
  {
    of: 'a PodMonitor of a loopback address',
    values: { podMonitor: { enabled: true } },
    says: /podMonitor\.enabled needs metrics: true/,
  },
  {
    of: 'an account of another name that nothing makes',
    values: { serviceAccount: { create: false } },
    says: /serviceAccount\.name is needed where serviceAccount\.create is false/,
  },
  ...unknown.map(([values, place, field]) => ({
    of: `${place}: ${field}`,
    values,
    says: new RegExp(`'/${place}'[^\\n]*'${field}'`),
  })),
]

await t.test('helm template refuses wrong values, and names their place', async (t) => {
  for (const { of, values, says } of mistakes) await t.rejects(rendered(values), { message: says }, of)
})

await t.test('two parents of one beginning, the old path and the files of hooks are no mistake', async (t) => {
  const values = {
    ...at('/srv/a/x/', { movedFrom: '/srv/ab/x' }),
    parents: [
      { name: 'a', path: '/srv/a' },
      { name: 'ab', path: '/srv/ab' },
    ],
    readOnly: [{ name: 'run', path: '/run/nginx' }],
  }
  t.ok((await rendered(values)).some(({ kind }) => kind === 'DaemonSet'))
})

const named = (objects: readonly ApiObject[], kind: string): ApiObject | undefined =>
  objects.find((object) => object.kind === kind)

await t.test('each value of the pod reaches the DaemonSet', async (t) => {
  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] }] }],
      },
    },
  }
  const values = {
    image: { repository: 'r/holdfast', pullPolicy: 'Never' },
    podAnnotations: { 'example.com/a': 'b' },
    podLabels: { team: 'edge' },
    affinity,
    nodeSelector: { disk: 'ssd' },
    priorityClassName: 'system-cluster-critical',
    updateStrategy: { type: 'OnDelete' },
    serviceAccount: { name: 'other', annotations: { 'example.com/role': 'x' } },
    nameOverride: 'files',
    resources: { requests: { 'ephemeral-storage': '64Mi' } },
    metrics: true,
  }
  const objects = await rendered(values, 'edge')
  t.match(named(objects, 'DaemonSet'), {
    metadata: { name: 'edge-files', labels: { 'app.kubernetes.io/version': /^\d/, 'helm.sh/chart': /^holdfast-/ } },
    spec: {
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: { 'app.kubernetes.io/name': 'files', 'app.kubernetes.io/instance': 'edge' } },
      template: {
        metadata: { labels: { team: 'edge' }, annotations: { 'example.com/a': 'b' } },
        spec: {
          affinity,
          nodeSelector: { disk: 'ssd', 'kubernetes.io/os': 'linux' },
          priorityClassName: 'system-cluster-critical',
          serviceAccountName: 'other',
          containers: [
            {
              image: /^r\/holdfast:/,
              imagePullPolicy: 'Never',
              resources: { requests: { cpu: '10m', 'ephemeral-storage': '64Mi' } },
            },
          ],
        },
      },
    },
  })
  t.match(named(objects, 'ServiceAccount'), {
    metadata: { name: 'other', annotations: { 'example.com/role': 'x' } },
  })
  t.match(named(objects, 'RoleBinding'), { subjects: [{ name: 'other' }], metadata: { name: 'holdfast:edge-files' } })
  const own = await rendered({ serviceAccount: { create: false, name: 'theirs' }, fullnameOverride: 'short' })
  t.equal(named(own, 'ServiceAccount'), undefined)
  t.match(named(own, 'DaemonSet'), { metadata: { name: 'short' } })
})

await t.test('alerts, dashboard and scrape come with the chart, each behind its value', async (t) => {
  const kinds = ['PodMonitor', 'PrometheusRule']
  const plain = await rendered({})
  t.notOk(plain.some(({ kind }) => kinds.includes(kind)))
  t.equal(plain.filter(({ kind }) => kind === 'ConfigMap').length, 1)
  const objects = await rendered({
    metrics: true,
    podMonitor: { enabled: true, interval: '30s', labels: { release: 'prometheus' } },
    prometheusRule: { enabled: true, labels: { release: 'prometheus' }, runbookUrl: 'https://wiki.example.com/' },
    dashboard: { enabled: true },
  })
  const { spec } = named(objects, 'DaemonSet') as unknown as {
    spec: { selector: object; template: { spec: { containers: { ports: { name: string }[] }[] } } }
  }
  const monitor = named(objects, 'PodMonitor')
  t.match(monitor, {
    apiVersion: 'monitoring.coreos.com/v1',
    metadata: { labels: { release: 'prometheus' } },
    spec: { podMetricsEndpoints: [{ port: spec.template.spec.containers[0]?.ports[0]?.name, interval: '30s' }] },
  })
  t.same((monitor?.['spec'] as { selector: object }).selector, spec.selector, 'it selects the pods of this release')
  const rules = named(objects, 'PrometheusRule')
  t.match(rules, { apiVersion: 'monitoring.coreos.com/v1', metadata: { labels: { release: 'prometheus' } } })
  const alerts = readFileSync(rulesFile, 'utf8').replaceAll('runbook_url: ', '$&https://wiki.example.com/')
  t.same(rules?.['spec'], parse(alerts))
  const board = objects.find(({ metadata }) => metadata.name === 'holdfast-dashboard') as unknown as {
    data: Record<string, string>
    metadata: { labels: object }
  }
  t.match(board.metadata.labels, { grafana_dashboard: '1' })
  t.same(JSON.parse(board.data['holdfast.json'] ?? ''), dashboard)
})

await t.test('the schema knows each field, at every depth', async (t) => {
  const file = join(deploy, 'helm/holdfast/values.schema.json')
  const open: string[] = []
  const look = (schema: unknown, place: string): void => {
    if (typeof schema !== 'object' || schema === null) return
    const { type, additionalProperties: others } = schema as { type?: unknown; additionalProperties?: unknown }
    const refuses = others === false || (typeof others === 'object' && others !== null && 'type' in others)
    if (type === 'object' && !refuses) open.push(place)
    for (const [name, inner] of Object.entries(schema)) look(inner, `${place}/${name}`)
  }
  look(JSON.parse(readFileSync(file, 'utf8')), '')
  t.same(open, ['/properties/global'], 'helm gives a chart the values of all charts there')
})
