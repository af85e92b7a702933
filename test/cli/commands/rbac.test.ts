/** `holdfast rbac --config FILE`: the Roles and bindings that it prints. test/e2e/events.test.ts applies them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { holdfast, scratch, type Ended } from '../holdfast.js'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

interface Item {
  readonly apiVersion: string
  readonly kind: 'Role' | 'RoleBinding' | 'ServiceAccount'
  readonly metadata: { readonly namespace: string; readonly name: string }
  readonly rules?: readonly Rule[]
  readonly subjects?: readonly object[]
  readonly roleRef?: object
}

const root = scratch(t)
const contents = [
  { secret: 'serving' },
  { secret: 'serving', into: 'again' },
  { configMap: 'web/bundle', into: 'ca', optional: true },
  {
    combine: 'a.pem',
    from: [
      { secret: 'serving', key: 'tls.key' },
      { secret: 'chain', key: 'ca' },
    ],
  },
]

function configuration(name: string, source: object, more: readonly object[] = []): string {
  const file = join(root, `${name}.yaml`)
  const directories = [
    { path: join(root, 'one'), contents: [...contents, ...more] },
    { path: join(root, 'two'), contents: [{ secret: 'other-ns/serving' }] },
  ]
  const head = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration' }
  writeFileSync(file, JSON.stringify({ ...head, source, directories }))
  return file
}

const nowhere = { kubeconfig: join(root, 'no.kubeconfig') }
const good = configuration('good', { namespace: 'kube-system', kubernetes: nowhere })
const unnamed = configuration('unnamed', { kubernetes: nowhere })
const pod = configuration('pod', { kubernetes: {} })
const files = configuration('files', { namespace: 'x', files: { path: join(root, 'objects') } })

const rbac = (...args: string[]): Promise<Ended> => holdfast(['rbac', ...args])

async function items(...args: string[]): Promise<Item[]> {
  const { code, stdout, stderr } = await rbac(...args, '-o', 'json')
  t.equal(code, 0, stderr)
  const list = JSON.parse(stdout) as { kind: string; items: Item[] }
  t.equal(list.kind, 'List')
  return list.items
}

const core = (resource: string, ...resourceNames: string[]): Rule => ({
  apiGroups: [''],
  resources: [resource],
  resourceNames,
  verbs: ['get', 'list', 'watch'],
})
const events: Rule = { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] }

await t.test('rbac prints one Role for each namespace, with each name once, and nothing more', async (t) => {
  const roles = (await items('--config', good)).filter(({ kind }) => kind === 'Role')
  t.strictSame(
    roles.map(({ metadata, rules }) => [metadata.namespace, rules]),
    [
      ['default', [events]],
      ['kube-system', [core('secrets', 'chain', 'serving'), events]],
      ['other-ns', [core('secrets', 'serving'), events]],
      ['web', [core('configmaps', 'bundle'), events]],
    ],
  )
})

await t.test(
  'rbac --node-group binds the identities of one group of nodes, with names that no other group has',
  async (t) => {
    const [account, ...others] = await items('--config', good, '--node-group', 'edge')
    t.match(account, { kind: 'ServiceAccount', metadata: { namespace: 'holdfast', name: 'holdfast-edge' } })
    t.ok(others.length > 0 && others.every(({ metadata }) => metadata.name === 'holdfast:edge'))
    const bindings = others.filter(({ kind }) => kind === 'RoleBinding')
    t.equal(bindings.length, 4)
    const subjects = [
      { kind: 'ServiceAccount', namespace: 'holdfast', name: 'holdfast-edge' },
      { kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'holdfast:edge' },
    ]
    for (const binding of bindings) t.strictSame(binding.subjects, subjects)
    const usual = (await items('--config', good)).filter(({ kind }) => kind === 'Role')
    const rules = (list: readonly Item[]) => list.map((item) => item.rules)
    t.strictSame(rules(others.filter(({ kind }) => kind === 'Role')), rules(usual), 'the same rights, and none more')
    for (const [name, problem] of [
      ['nodes', /holdfast:nodes is the group of the nodes of all groups/],
      ['a:b', /not a name of lower-case letters/],
    ] as const) {
      t.match(await rbac('--config', good, '--node-group', name), { code: 2, stderr: problem })
    }
    const both = await rbac('--config', good, '--node-group', 'edge', '--user', 'x')
    t.match(both, { code: 2, stderr: /--node-group names its subjects/ })
  },
)

await t.test(
  'rbac names all Secrets and ConfigMaps of the namespaces for watch: namespaces, in so many words',
  async (t) => {
    const file = configuration('wide', { namespace: 'kube-system', kubernetes: { ...nowhere, watch: 'namespaces' } })
    const roles = (await items('--config', file)).filter(({ kind }) => kind === 'Role')
    const all = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get', 'list', 'watch'] })
    t.strictSame(
      roles.map(({ rules }) => rules),
      [[events], [all('secrets'), events], [all('secrets'), events], [all('configmaps'), events]],
    )
    t.match((await rbac('--config', file)).stdout, /takes get, list and watch of all Secrets and ConfigMaps/)
  },
)

await t.test("rbac names all objects of a selector's kind, and who may add files by it", async (t) => {
  const wide = { namespace: 'kube-system', kubernetes: { ...nowhere, watch: 'namespaces' } }
  const more = [{ configMaps: { selector: 'app=web, tier', namespace: 'sites' } }]
  const file = configuration('selected', wide, more)
  const role = (await items('--config', file)).find(
    ({ kind, metadata }) => kind === 'Role' && metadata.namespace === 'sites',
  )
  const verbs = ['get', 'list', 'watch']
  t.strictSame(role?.rules, [{ apiGroups: [''], resources: ['configmaps'], verbs }, events])
  const { stdout } = await rbac('--config', file)
  t.match(
    stdout,
    /names\. A selector needs that\.\n# Whoever may set labels on ConfigMaps of sites adds files by app=web, tier \(dir/,
  )
  const narrow = configuration('narrow', { kubernetes: nowhere }, more)
  t.match(await rbac('--config', narrow), {
    code: 2,
    stderr: /configMaps: a selector needs .*: set source.kubernetes.watch/,
  })
})

await t.test('rbac --report prints what it prints for report: true, before the configuration has that', async (t) => {
  const document = JSON.parse(readFileSync(good, 'utf8')) as object
  const file = join(root, 'reporting.yaml')
  writeFileSync(file, JSON.stringify({ ...document, report: true }))
  const reporting = await items('--config', file)
  t.ok(reporting.some(({ rules = [] }) => rules.some(({ resources }) => resources.includes('nodepublications/status'))))
  t.strictSame(await items('--config', good, '--report'), reporting)
  t.strictSame(await items('--config', file, '--report'), reporting)
  t.notSame(await items('--config', good), reporting)
  t.match(await rbac('--config', files, '--report'), { code: 0, stdout: /needs no rights/ })
})

await t.test('rbac binds each Role to the service account', async (t) => {
  for (const [flags, subject] of [
    [[], { namespace: 'holdfast', name: 'holdfast' }],
    [['--service-account', 'agent'], { namespace: 'holdfast', name: 'agent' }],
    [['--service-account', 'nodes/agent'], { namespace: 'nodes', name: 'agent' }],
  ] as const) {
    const all = await items('--config', good, ...flags)
    const name = `${subject.namespace}:${subject.name}`
    t.ok(all.every(({ metadata }) => metadata.name === name))
    const bindings = all.filter(({ kind }) => kind === 'RoleBinding')
    t.strictSame(
      bindings.map(({ metadata }) => metadata.namespace),
      ['default', 'kube-system', 'other-ns', 'web'],
    )
    for (const { subjects, roleRef } of bindings) {
      t.strictSame(subjects, [{ kind: 'ServiceAccount', ...subject }])
      t.strictSame(roleRef, { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name })
    }
  }
  const named = await items('--config', good, '--name', 'mine')
  t.ok(named.length > 1)
  t.ok(named.every(({ metadata }) => metadata.name === 'mine'))
})

await t.test('rbac prints the same document as YAML and as JSON', async (t) => {
  const { code, stdout } = await rbac('--config', good)
  t.equal(code, 0)
  const documents = parseAllDocuments(stdout)
  if (!Array.isArray(documents)) throw new Error('no documents')
  t.strictSame(
    documents.map((document) => document.toJS() as unknown),
    await items('--config', good),
  )
})

await t.test('rbac takes a missing namespace from the flag or the pod, and fails without either', async (t) => {
  const namespaces = (all: readonly Item[]) => [...new Set(all.map(({ metadata }) => metadata.namespace))]
  t.ok(namespaces(await items('--config', unnamed, '-n', 'given')).includes('given'))
  t.ok(namespaces(await items('--config', pod, '--service-account', 'nodes/agent')).includes('nodes'))
  const refused = await rbac('--config', unnamed)
  t.equal(refused.code, 2)
  t.match(refused.stderr, /has no namespace.*set source\.namespace/)
  t.equal(refused.stdout, '')
})

await t.test('rbac prints no rights for the source files', async (t) => {
  t.strictSame(await items('--config', files), [])
  const { code, stdout } = await rbac('--config', files)
  t.equal(code, 0)
  t.match(stdout, /^# .*and needs no rights\.\n$/)
})

await t.test('rbac refuses wrong usage', async (t) => {
  const broken: [string[], RegExp][] = [
    [[], /--config FILE is missing/],
    [['--config', good, '--service-account', 'a/b/c'], /must be \[NAMESPACE\/\]NAME/],
    [['--config', good, '--service-account', 'No_Name'], /must be \[NAMESPACE\/\]NAME/],
    [['--config', good, '--name', 'No_Name'], /name that Kubernetes allows/],
    [['--config', good, '-o', 'text'], /Allowed choices are yaml, json/],
  ]
  for (const [args, message] of broken) {
    const { code, stderr, stdout } = await rbac(...args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, message)
    t.equal(stdout, '')
  }
})

await t.test('rbac leaves flags behind "install" to the subcommand', async (t) => {
  const { code, stdout, stderr } = await rbac(
    ...['install', '--revision=6', '--namespace=kube-system', '--pod=web', '--configmaps=web', '--secrets=tls'],
    ...['--resource-dir=/r', '--pod-manifest-dir=/m', '--service-account=installer', '--name=mine', '-o', 'json'],
  )
  t.equal(code, 0, stderr)
  const { items } = JSON.parse(stdout) as { items: Item[] }
  t.match(items[0], { kind: 'Role', metadata: { namespace: 'kube-system', name: 'mine' } })
})
