import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { run } from '../command.js'

const flags = [
  ...['rbac', 'install', '-v=2', '--revision=6', '--namespace=demo', '--pod=web-pod', '--configmaps=config'],
  ...['--secrets=b,a', '--optional-secrets=c', '--cert-dir=/certs', '--cert-secrets=serving', '--kubeconfig=/k'],
  ...['--resource-dir=/r', '--pod-manifest-dir=/m', '--timeout-duration=1m', '--pod-manifests-lock-file=/l'],
  ...['--context=c', '--log-level=debug', '--require-proven', '--check-host-paths', '--dry-run'],
]

await t.test("rbac install makes the Role of an installation's flags", async (t) => {
  const { code, stdout, stderr } = await run([...flags, '-o', 'json'])
  t.equal(code, 0, stderr)
  const { items } = JSON.parse(stdout) as { items: { kind: string; metadata: object; rules: object[] }[] }
  t.same(
    items.map(({ kind, metadata }) => [kind, metadata]),
    [
      ['Role', { namespace: 'demo', name: 'holdfast-installer' }],
      ['ClusterRole', { name: 'demo:holdfast-installer' }],
    ],
  )
  const names = (resource: string, resourceNames: string[]) => ({
    apiGroups: [''],
    resources: [resource],
    resourceNames,
    verbs: ['get'],
  })
  t.same(items[0]?.rules, [
    names('secrets', ['a-6', 'b-6', 'c-6', 'serving']),
    // Its manifest is in a ConfigMap that no flag names.
    names('configmaps', ['config-6', 'web-pod-6']),
    { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ])
  t.same(items[1]?.rules, [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }], 'any node')
})

await t.test('rbac install takes flags after the subcommand as its own, also those that rbac has too', async (t) => {
  const bound = await run([...flags, '--service-account=other/sa', '--name=n', '--node-name=n1'])
  t.equal(bound.code, 0, bound.stderr)
  const objects = parseAllDocuments(bound.stdout).map((document) => document.toJS() as object)
  const subjects = [{ kind: 'ServiceAccount', namespace: 'other', name: 'sa' }]
  t.match(objects, [
    { kind: 'Role', metadata: { namespace: 'demo', name: 'n' } },
    { kind: 'ClusterRole', rules: [{ resourceNames: ['n1'] }] },
    { kind: 'RoleBinding', subjects, roleRef: { kind: 'Role', name: 'n' } },
    { kind: 'ClusterRoleBinding', subjects, roleRef: { kind: 'ClusterRole', name: 'demo:n' } },
  ])
  for (const wrong of ['a/b/c', 'A', '/a', '']) {
    const refused = await run([...flags, `--service-account=${wrong}`])
    t.match(refused, { code: 2, stdout: '', stderr: /must be \[NAMESPACE\/\]NAME/ }, wrong)
  }
})

await t.test(
  "rbac monitor makes the Role of a monitor's flags: the mirror pod, and the status of its operator",
  async (t) => {
    const base = ['rbac', 'monitor', '--target-name=web', '--namespace=demo', '-o', 'json']
    const itemsOf = async (...more: string[]) => {
      const { code, stdout, stderr } = await run([...base, ...more])
      t.equal(code, 0, stderr)
      return (JSON.parse(stdout) as { items: { kind: string; rules: object[] }[] }).items
    }
    const pods = { apiGroups: [''], resources: ['pods'], verbs: ['get'] }
    const [alone, ...none] = await itemsOf()
    t.match(alone, { kind: 'Role', metadata: { namespace: 'demo', name: 'holdfast-monitor' } })
    t.same(alone?.rules, [pods], 'any node')
    t.same(none, [])
    const operator = '--operator-status=kubeapiservers.operator.openshift.io/cluster'
    const all = await itemsOf('--node-name=n1', operator, '--service-account=sa')
    const about = (resource: string, verb: string) => ({
      apiGroups: ['operator.openshift.io'],
      resources: [resource],
      resourceNames: ['cluster'],
      verbs: [verb],
    })
    t.same(
      all.map(({ kind, rules }) => [kind, rules]),
      [
        ['Role', [{ ...pods, resourceNames: ['web-n1'] }]],
        ['ClusterRole', [about('kubeapiservers', 'get'), about('kubeapiservers/status', 'patch')]],
        ['RoleBinding', undefined],
        ['ClusterRoleBinding', undefined],
      ],
    )
    t.match(await run(['rbac', 'monitor', '--namespace=demo']), { code: 2, stderr: /--target-name is missing/ })
  },
)

await t.test("rbac monitor prints the right by which the node's own kubelet answers", async (t) => {
  const base = ['rbac', 'monitor', '--target-name=web', '--namespace=demo', '--user=u', '-o', 'json']
  for (const resource of ['nodes/pods', 'nodes/proxy']) {
    const { stdout } = await run([...base, '--node-name=n1', `--kubelet-access=${resource}`])
    const { items } = JSON.parse(stdout) as { items: object[] }
    const rule = { apiGroups: [''], resources: [resource], resourceNames: ['n1'], verbs: ['get'] }
    const name = 'demo:holdfast-monitor'
    t.match(items[1], { kind: 'ClusterRole', metadata: { name } })
    t.same((items[1] as { rules: unknown }).rules, [rule])
    t.match(items[3], { kind: 'ClusterRoleBinding', subjects: [{ kind: 'User', name: 'u' }], roleRef: { name } })
  }
  t.match(await run([...base, '--kubelet-access=pods']), { code: 2, stderr: /nodes\/pods, nodes\/proxy/ })
})

await t.test('rbac binds users and groups by their names, with a service account or without', async (t) => {
  const apiGroup = 'rbac.authorization.k8s.io'
  const people = ['--user=system:node:n1', '--user=a, b', '--group=system:masters']
  const named = [
    { kind: 'User', apiGroup, name: 'system:node:n1' },
    { kind: 'User', apiGroup, name: 'a, b' },
    { kind: 'Group', apiGroup, name: 'system:masters' },
  ]
  const subjectsOf = async (...args: string[]) => {
    const { code, stdout, stderr } = await run([...args, '-o', 'json'])
    t.equal(code, 0, stderr)
    const { items } = JSON.parse(stdout) as { items: { kind: string; subjects?: object[] }[] }
    return items.filter(({ kind }) => kind.endsWith('Binding')).map(({ subjects }) => subjects)
  }
  t.same(await subjectsOf(...flags, ...people), [named, named])
  const account = { kind: 'ServiceAccount', namespace: 'demo', name: 'sa' }
  const monitor = ['rbac', 'monitor', '--target-name=web', '--namespace=demo']
  t.same(await subjectsOf(...monitor, ...people, '--service-account=sa'), [[account, ...named]])
  t.match(await run([...monitor, '--user=']), { code: 2, stderr: /--user.*empty/ })
})
