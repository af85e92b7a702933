/**
 * Reports of nodes and `holdfast fleet` on a real API server: agents in mount namespaces of their own, the policy's refusals, each sentence of
 * "exit 0 is a proof", and two clusters that share a node.
 */
import { EventEmitter } from 'node:events'
import { mkdtempSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { main } from '../../src/cli/main.js'
import { obstacles, type Obstacle } from '../../src/fleet/judge.js'
import { reportOf, type SnapshotDirectory } from '../../src/fleet/report-status.js'
import { managerOf, type ReportedDirectory, type ReportedObject, type ReportStatus } from '../../src/fleet/types.js'
import type { WaitResult } from '../../src/fleet/wait.js'
import { testIo } from '../cli/in-process.js'
import { Disk, missingForDisk } from '../disk/disk.js'
import { deploy, documents } from '../deploy/manifests.js'
import type { Ended } from './agent.js'
import { ApiClient, type ApiObject } from './api-client.js'
import { Cluster } from './cluster.js'
import { workingDirectory } from './guard.js'
import type { Namespace } from './namespace.js'
import { Node, type Directory } from './node.js'
import { grant, granted } from './rights.js'
import { until } from '../until.js'

/** An agent sends a change within half a minute, at random; with this much more for a slow machine, in milliseconds. */
const reported = { within: 90_000 }
const bootID = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
const names = ['n1', 'n2', 'n3'] as const

// Two clusters whose agents share a node.
const [cluster, second] = await Promise.all([Cluster.start(), Cluster.start()])
t.teardown(() => Promise.all([cluster.stop(), second.stop()]))
const { admin } = cluster.api
for (const one of [cluster, second]) {
  await one.kubectl(['apply', '-k', join(deploy, 'fleet')])
  await one.kubectl(['wait', '--for=condition=established', '--timeout=60s', 'crd/nodepublications.holdfast.dev'])
}

interface Report extends ApiObject {
  readonly status?: ReportStatus
}

const reports = '/apis/holdfast.dev/v1alpha1/nodepublications'
const merge = { 'content-type': 'application/merge-patch+json' }

interface NodeOf {
  readonly boot?: string
  readonly labels?: Record<string, string>
  readonly of?: Cluster
}

async function createNode(name: string, { boot = bootID, labels, of = cluster }: NodeOf = {}): Promise<ApiObject> {
  const all = { 'kubernetes.io/hostname': name, ...(labels ?? { 'kubernetes.io/os': 'linux' }) }
  const node = await of.api.admin.demand('POST', '/api/v1/nodes', { metadata: { name, labels: all } })
  await setBoot(name, boot, of)
  return node
}

const setBoot = (name: string, boot: string, of = cluster): Promise<unknown> =>
  of.api.admin.demand(
    'PATCH',
    `/api/v1/nodes/${name}/status`,
    {
      status: {
        nodeInfo: {
          bootID: boot,
          ...Object.fromEntries(
            [
              'architecture',
              'containerRuntimeVersion',
              'kernelVersion',
              'kubeProxyVersion',
              'kubeletVersion',
              'machineID',
              'operatingSystem',
              'osImage',
              'systemUUID',
            ].map((field) => [field, 'x']),
          ),
        },
      },
    },
    merge,
  )

// A report says that the file system of the tests' directory proves nothing, if it does not: without a disk, wait never ends with 0.
const missing = await missingForDisk(['ext4'])
const disk = missing.length === 0 ? await Disk.create() : undefined
t.teardown(() => disk?.destroy())
await disk?.format('ext4')
await disk?.mount()
const proven: { readonly skip?: string } = missing.length === 0 ? {} : { skip: `needs root, and ${missing.join(', ')}` }

/** A directory that the agents of both clusters have. */
const shared = join(mkdtempSync(join(disk?.mountPoint ?? workingDirectory, 'shared-')), 'certs')
/** Of memory, in the mount namespace of n3 alone: nothing there is proven. */
const volatile = mkdtempSync(join(disk?.mountPoint ?? workingDirectory, 'volatile-'))
const secrets = ['ca', 'invalid', 'hooked', 'volatile', 'replaced', 'shared']

async function account(of: Cluster, content: string): Promise<Namespace> {
  const namespace = await of.namespace()
  await namespace.createAccount('agent', { secrets })
  for (const name of secrets) await namespace.putSecret(name, { 'ca.crt': content, 'tls.crt': 'no certificate' })
  return namespace
}

const namespace = await account(cluster, 'first')
const nodes = new Map<string, ApiObject>()
const token = (name: string): Promise<string> => namespace.token('agent', nodes.get(name), 'Node')

/** As in a pod: what one mounts there, no other one has. */
const namespaced = ['unshare', '--mount']
const withMemory = [...namespaced, 'sh', '-c', `mount -t tmpfs none ${volatile} && exec "$@"`, 'sh']

async function createAgent(
  to: Namespace,
  of: ApiObject,
  directories: readonly Directory[],
  prefix = namespaced,
): Promise<Node> {
  return Node.create(t, to, {
    report: true,
    kubeconfig: to.kubeconfig({ token: await to.token('agent', of, 'Node') }),
    allowed: { secrets },
    directories,
    environment: { NODE_NAME: of.metadata.name },
    ...(disk && { prefix, place: disk.mountPoint }),
  })
}

const certs: Directory = { path: 'certs', contents: [{ secret: 'ca' }] }
/** Of n3 alone: each keeps wait from 0 for a Secret that no other node has. */
const troubled: readonly Directory[] = [
  { path: 'invalid', contents: [{ secret: 'invalid' }], validate: ['certificates'] },
  { path: 'hooked', contents: [{ secret: 'hooked' }], afterPublish: [{ exec: ['/bin/false'] }] },
  { path: join(volatile, 'certs'), contents: [{ secret: 'volatile' }] },
  { path: 'replaced', contents: [{ secret: 'replaced' }] },
  { path: shared, contents: [{ secret: 'shared' }] },
]
const agents = new Map<string, Node>()
for (const name of names) {
  const node = await createNode(name)
  nodes.set(name, node)
  const [more, prefix] = name === 'n3' ? [troubled, withMemory] : [[], namespaced]
  agents.set(name, await createAgent(namespace, node, [certs, ...more], prefix))
}
const [first, , third] = [...agents.values()]
if (!first || !third) throw new Error('there is no agent')

/** A report that is left from an earlier Node of this name, and the Node that was made anew. */
const again = await createNode('again', { labels: { pool: 'again' } })
const left = await admin.demand('POST', reports, reportWith('again', 'an-earlier-uid'))
const leftStatus = { ...emptyReport('an-earlier-uid'), agentID: 'an-earlier-agent' }
await admin.demand('PATCH', `${reports}/again/status`, { status: leftStatus }, merge)
const reinstalled = await createAgent(namespace, again, [certs])

const printed = (await first.agent.run('rbac', '--service-account', `${namespace.name}/agent`)).stdout
await grant(cluster, printed, namespace.name, 'agent')
for (const node of [...agents.values(), reinstalled]) node.agent.start()

const fleetOf =
  (of: Cluster) =>
  (...args: string[]) =>
    first.agent.runPlain('fleet', ...args, '--kubeconfig', of.adminKubeconfig)
const fleet = fleetOf(cluster)
const elsewhere = await account(second, 'elsewhere')
const guest: { agent?: Node } = {}

/** undefined: the node has not reported it. */
async function directoryOf(node: string, path: string, of = cluster) {
  const { body } = await of.api.admin.call('GET', `${reports}/${node}`)
  return (body as Report).status?.directories.find((each) => each.path === path)
}
const object = ['--secret', `${namespace.name}/ca`]
const wait = (...args: string[]) => fleet('wait', ...object, ...args)
/** What a wait prints at its end in time, however slow this machine is to answer. */
const answered = (...args: string[]): Promise<Ended> =>
  until('the API server has answered in time', async () => {
    const ended = await fleet(...args, '--timeout', '2s')
    return !/the API server has not answered|"isAnswered": false/.test(ended.stdout) && ended
  })
const put = (value: string): Promise<ApiObject> => namespace.putSecret('ca', { 'ca.crt': value })
const signal = (name: string, word: NodeJS.Signals): void =>
  void process.kill(agents.get(name)?.agent.pid ?? Number.NaN, word)

await t.test('each agent reports its node, and kubectl shows how the directories stand', async (t) => {
  const status = (name: string) => async () => {
    const answer = await admin.call('GET', `${reports}/${name}`)
    const { status } = answer.body as Report
    // An agent that is slow to publish may report before it has.
    return answer.status === 200 && status?.directories[0]?.state === 'Current' && status
  }
  for (const name of names) {
    const found = await until(`${name} has a report`, status(name), reported)
    if (name !== 'n3') t.match(found, { summary: { directories: 1, current: 1, waiting: 0, held: 0, failed: 0 } })
    t.match(found.directories[0], { state: 'Current', objects: [{ namespace: namespace.name, name: 'ca' }] })
    t.notMatch(JSON.stringify(found), /digest|first/)
  }
  const shown = await cluster.kubectl(['get', 'npub'])
  t.match(shown, /^NAME +DIRECTORIES +CURRENT +WAITING +HELD +FAILED +EXPIRES +AGE\n/)
  t.match(shown, /^n1 +1 +1 +0 +0 +0 /m)
  const [node] = nodes.values()
  const owner = ((await admin.call('GET', `${reports}/n1`)).body as { metadata: object }).metadata
  t.match(owner, { ownerReferences: [{ kind: 'Node', name: 'n1', uid: node?.metadata.uid }] })
})

await t.test('each agent is in a mount namespace of its own', proven, async (t) => {
  const pids = ['self', ...[...agents.values()].map(({ agent }) => String(agent.pid))]
  t.equal(new Set(pids.map((pid) => readlinkSync(`/proc/${pid}/ns/mnt`))).size, 1 + names.length)
})

await t.test('the report of an earlier Node of that name stays, and the agent says how to remove it', async (t) => {
  t.match(await answered('wait', ...object, '--nodes', 'pool=again'), {
    code: 1,
    stdout: /again +OtherNode +the report is of an earlier Node/,
  })
  const [line] = await until(
    'the agent warns',
    () => {
      const lines = reinstalled.agent.logged('ReportRefused')
      return lines.length > 0 && lines
    },
    reported,
  )
  t.match(line?.msg, /is not owned by this Node .* kubectl delete npub again, then run holdfast reload/)
  const found = (await admin.demand('GET', `${reports}/again`)) as Report
  t.strictSame(found.status, leftStatus)
  t.equal(found.metadata.uid, left.metadata.uid)
  await admin.demand('DELETE', `${reports}/again`)
  t.match(await reinstalled.agent.run('reload'), { code: 0 })
})

await t.test('an agent of a second cluster takes a directory over', async (t) => {
  await until('n3 has it', async () => (await directoryOf('n3', shared))?.state === 'Current', reported)
  const node = await createNode('n3', { of: second })
  guest.agent = await createAgent(elsewhere, node, [{ path: shared, contents: [{ secret: 'shared' }] }])
  const rights = await guest.agent.agent.run('rbac', '--service-account', `${elsewhere.name}/agent`)
  await grant(second, rights.stdout, elsewhere.name, 'agent')
  guest.agent.agent.start()
  const told = await until('the earlier agent lets it be', () => third.agent.logged('TargetForeign').at(-1))
  t.match(JSON.stringify(told), shared)
})

await t.test('the policy lets an agent write the status of its own node alone', async (t) => {
  const port = Number(new URL(cluster.api.url).port)
  const client = new ApiClient(port, cluster.api.authority.certificate)
  const as = async (bearer: string, method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${bearer}`, ...(method === 'PATCH' && merge) }
    const { status, body: answer } = await client.call(method, path, body, headers)
    return { status, message: (answer as { message?: string }).message ?? '' }
  }
  const change = { status: { agentVersion: 'another' } }
  const own = await token('n1')
  t.match(await as(own, 'PATCH', `${reports}/n1/status`, change), { status: 200 })
  t.match(await as(own, 'PATCH', `${reports}/n2/status`, change), {
    status: 403,
    message: /the agent of node n1 may not write the report of node n2/,
  })
  t.match(await as(await namespace.token('agent'), 'PATCH', `${reports}/n1/status`, change), {
    status: 403,
    message: /bound to no node/,
  })
  t.match(await as(own, 'PATCH', `${reports}/n1`, { metadata: { labels: { a: 'b' } } }), { status: 403 })
  const other = { apiVersion: 'v1', kind: 'Node', name: 'n2', uid: nodes.get('n2')?.metadata.uid }
  const made = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'NodePublication',
    metadata: { name: 'n1', ownerReferences: [other] },
  }
  await admin.demand('DELETE', `${reports}/n1`)
  t.match(await as(own, 'POST', reports, made), { status: 403, message: /owned by its Node/ })
  // A service account of kube-system is no controller that writes any object.
  const stranger = 'system:serviceaccount:kube-system:stranger'
  const theirs = await first.agent.run('rbac', '--user', stranger, '--name', 'stranger')
  await cluster.kubectl(['apply', '-f', '-'], theirs.stdout)
  await granted(admin, stranger, [{ apiGroups: ['holdfast.dev'], resources: ['nodepublications'], verbs: ['create'] }])
  const groups = 'system:serviceaccounts:kube-system'
  const impersonating = {
    'impersonate-user': stranger,
    'impersonate-group': groups,
    'content-type': 'application/json',
  }
  t.match(await admin.call('POST', reports, made, impersonating), {
    status: 403,
    body: { message: /bound to no node/ },
  })
  const node = await admin.demand('POST', '/api/v1/nodes', { metadata: { name: 'n5' } })
  const printed = await first.agent.run('rbac', '--user', 'holdfast:node:n5', '--name', 'node-5')
  await cluster.kubectl(['apply', '-f', '-'], printed.stdout)
  const rule = { apiGroups: ['holdfast.dev'], resources: ['nodepublications'], verbs: ['create'] }
  await granted(admin, 'holdfast:node:n5', [rule])
  const user = new ApiClient(
    port,
    cluster.api.authority.certificate,
    await cluster.api.authority.client('holdfast:node:n5', 'holdfast:nodes'),
  )
  const owner = { ...other, name: 'n5', uid: node.metadata.uid }
  const own5 = { ...made, metadata: { name: 'n5', ownerReferences: [owner] } }
  t.match(await user.call('POST', reports, { ...own5, metadata: { ...own5.metadata, name: 'n1' } }), { status: 403 })
  t.match(await user.call('POST', reports, own5), { status: 201 })
  await admin.demand('DELETE', `${reports}/n5`)
})

await t.test('each rule of the policy refuses a user whom RBAC would let write any report', async (t) => {
  const rights = ['--verb=*', '--resource=nodepublications.holdfast.dev,nodepublications.holdfast.dev/status']
  await cluster.kubectl(['create', 'clusterrole', 'any-report', ...rights])
  const groups = ['--group=holdfast:nodes', '--group=others']
  await cluster.kubectl(['create', 'clusterrolebinding', 'any-report', '--clusterrole=any-report', ...groups])
  const { name, uid } = (await createNode('refused', { labels: {} })).metadata
  const user = { 'impersonate-user': `holdfast:node:${name}`, 'impersonate-group': 'holdfast:nodes' }
  const [owned, status] = [reportWith(name, uid), emptyReport(uid)]
  await until('it may create its report', async () => (await admin.call('POST', reports, owned, user)).status === 201)
  const of = (key: string, value: string) => ({ [`impersonate-extra-authentication.kubernetes.io%2f${key}`]: value })
  const bound = { ...user, 'impersonate-group': 'others', ...of('node-name', name), ...of('node-uid', uid) }
  const patch = (as: object, body: object, path = `${reports}/${name}/status`) =>
    admin.call('PATCH', path, body, { ...merge, ...as })
  const create = (as: Record<string, string>, body: object) => admin.call('POST', reports, body, as)
  for (const as of [user, bound]) t.match(await patch(as, { status }), { status: 200 })
  await admin.demand('DELETE', `${reports}/${name}`)
  t.match(await create(bound, owned), { status: 201 })
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid }
  const refused: readonly (readonly [RegExp, Awaited<ReturnType<typeof create>>])[] = [
    [/bound to no node/, await patch({ ...user, 'impersonate-group': 'others' }, { status })],
    [/bound to no node/, await patch({ ...user, 'impersonate-user': 'holdfast:nodes' }, { status })],
    [/may not write the report of node n3/, await patch(user, { status }, `${reports}/n3/status`)],
    [/may not write the report of node n2/, await patch(bound, { status }, `${reports}/n2/status`)],
    [/may not write the report of node n1/, await create(bound, reportWith('n1', uid))],
    [/owned by its Node, and by nothing else/, await create(bound, reportWith(name, uid, { ownerReferences: [] }))],
    [
      /owned by its Node, and/,
      await create(user, reportWith(name, uid, { ownerReferences: [owner, { ...owner, name: 'n1' }] })),
    ],
    [
      /owned by its Node, and/,
      await create(user, reportWith(name, uid, { ownerReferences: [{ ...owner, kind: 'Pod' }] })),
    ],
    [/owned by its Node, and by nothing else/, await create(bound, reportWith(name, 'another-uid'))],
    [/writes the status of its report alone/, await create(bound, reportWith(name, uid, { finalizers: ['a.b/c'] }))],
    [
      /writes the status of its report alone/,
      await patch(user, { metadata: { labels: { a: 'b' } } }, `${reports}/${name}`),
    ],
    [/status.nodeUID is of another Node/, await patch(bound, { status: emptyReport('another-uid') })],
  ]
  for (const [message, answer] of refused) t.match(answer, { status: 403, body: { message } }, String(message))
  await admin.demand('DELETE', `${reports}/${name}`)
})

interface Definition {
  readonly spec: {
    versions: {
      readonly name: string
      readonly schema: {
        readonly openAPIV3Schema: { properties: { status: { properties: Record<string, object> } } }
      }
    }[]
  }
}

await t.test('a definition may have one more version, which is stored, and one more field', async (t) => {
  const definition = documents('fleet/definition.yaml')[0] as unknown as Definition
  const [version] = definition.spec.versions
  if (!version) throw new Error('the definition has no version')
  version.schema.openAPIV3Schema.properties.status.properties['added'] = { type: 'string' }
  const versions = [
    { ...version, storage: false },
    { ...version, name: 'v1beta1', storage: true },
  ]
  await cluster.kubectl(['apply', '-f', '-'], JSON.stringify({ ...definition, spec: { ...definition.spec, versions } }))
  const path = `${reports.replace('v1alpha1', 'v1beta1')}/n2/status`
  const added = await until('n2 has the new field', async () => {
    const answer = await admin.call('PATCH', path, { status: { added: 'by a newer agent' } }, merge)
    return answer.status === 200 && 'added' in ((answer.body as Report).status ?? {})
  })
  t.ok(added)
})

await t.test('a deleted report comes again, and a field that the agent does not know stays', async (t) => {
  const { resourceVersion } = (await put('second')).metadata
  for (const name of ['n1', 'n2']) {
    const found = await until(
      `${name} reports the second version`,
      async () => {
        const { status } = (await admin.call('GET', `${reports}/${name}`)).body as Report
        return status?.directories[0]?.objects[0]?.resourceVersion === resourceVersion && status
      },
      reported,
    )
    if (name === 'n2') t.match(found, { added: 'by a newer agent' })
  }
})

await t.test('wait ends with 0 once each node has reported this version', proven, async (t) => {
  const { code, stdout, stderr } = await wait('--timeout', '120s')
  t.equal(code, 0, stderr)
  t.match(
    stdout,
    /^all 3 nodes have Secret .*\/ca in version \d+ or newer: durable, with hooks run \(nodes of kubernetes.io\/os=linux\)\n$/,
  )
  const status = await fleet('status', ...object)
  t.equal(status.code, 0, status.stderr)
  t.match(status.stdout, /^3 nodes, 3 report\n3 directories: 3 current, 0 waiting, 0 held, 0 failed\n/)
})

/** As a node that has the object reports it, but for what the obstacle's name says. undefined: there is no report. */
const against: Record<Obstacle, (status: ReportStatus) => ReportStatus | undefined> = {
  NoReport: () => undefined,
  OtherNode: (status) => ({ ...status, nodeUID: 'another' }),
  OtherBoot: (status) => ({ ...status, bootID: 'another' }),
  // See `makeOld`.
  Silent: (status) => status,
  NotConfigured: (status) => withObject(status, { name: 'another' }),
  OtherObject: (status) => withObject(status, { uid: 'another', resourceVersion: '9'.repeat(12) }),
  Older: (status) => withObject(status, { resourceVersion: '1' }),
  Failed: (status) => withDirectory(status, { state: 'Failed', reason: 'DurabilityUnknown' }),
  Unproven: (status) => withDirectory(status, { unproven: true }),
  Held: (status) => withDirectory(status, { state: 'Held', reason: 'Held' }),
  HooksPending: (status) => withDirectory(status, { hooksPending: ['reload'] }),
  Truncated: threeHundred,
}

await t.test('each sentence of "exit 0 is a proof" has a report that makes it false', async (t) => {
  const { status } = (await admin.demand('GET', `${reports}/n1`)) as Report
  if (!status) throw new Error('n1 has no report')
  const good = withDirectory(status, { unproven: undefined })
  const rows = await Promise.all(
    ([...obstacles, 'none'] as const).map(async (obstacle) => {
      const node = await createNode(`row-${obstacle.toLowerCase()}`, { labels: { pool: 'table' } })
      return { obstacle, node, own: { ...good, nodeUID: node.metadata.uid } }
    }),
  )
  for (const { obstacle, node, own } of rows) {
    const changed = obstacle === 'none' ? own : against[obstacle](own)
    if (changed) t.equal(await putReport(node, changed), 200, obstacle)
  }
  await makeOld('row-silent')
  const table = ['--nodes', 'pool=table', '-o', 'json']
  const early = await answered('wait', ...object, ...table)
  t.equal(early.code, 1, early.stderr)
  const { nodes: found } = JSON.parse(early.stdout) as WaitResult
  t.strictSame(
    Object.fromEntries(found.map((each) => [each.node, each.obstacle])),
    Object.fromEntries(
      rows.map(({ obstacle, node }) => [node.metadata.name, obstacle === 'none' ? undefined : obstacle]),
    ),
  )
  // Each is mended, by clocks of nodes that are hours ahead or behind.
  const clocks = [-2, 2].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString())
  for (const [index, { node, own }] of rows.entries()) {
    t.equal(await putReport(node, { ...own, observedAt: clocks[index % 2] ?? '' }), 200)
  }
  const last = await wait(...table, '--timeout', '60s')
  t.equal(last.code, 0, last.stdout)
})

await t.test('a directory of n3 that is refused, waits for a hook, or proves nothing keeps wait from 0', async (t) => {
  const path = (directory: string): string => third.path(directory)
  const expected: readonly (readonly [string, string, Partial<ReportedDirectory>, RegExp])[] = [
    ['invalid', path('invalid'), { state: 'Failed' }, /n3 +Failed +\S+invalid: CertificateInvalid, /],
    ['hooked', path('hooked'), { state: 'Waiting' }, /n3 +HooksPending +\S+hooked: hooks have not run: exec/],
    ['shared', shared, { state: 'Failed' }, /n3 +Failed +\S+certs: TargetForeign, another agent /],
  ]
  const unproven = [
    ['volatile', join(volatile, 'certs'), { unproven: true }, /n3 +Unproven +\S+certs: its file system proves no/],
  ] as const
  for (const [secret, directory, reports, pattern] of [...expected, ...(disk ? unproven : [])]) {
    await until(
      `${secret} is reported`,
      async () => {
        const found = await directoryOf('n3', directory)
        return Object.entries(reports).every(([field, value]) => found?.[field as keyof ReportedDirectory] === value)
      },
      reported,
    )
    const of = ['--secret', `${namespace.name}/${secret}`, '--nodes', 'kubernetes.io/hostname=n3']
    t.match(await answered('wait', ...of), { code: 1, stdout: pattern })
  }
})

await t.test('the second cluster has the directory, and the first one says who took it', proven, async (t) => {
  const of = ['--secret', `${elsewhere.name}/shared`]
  t.match(await fleetOf(second)('wait', ...of, '--timeout', '90s'), { code: 0, stdout: /^all 1 nodes have / })
  t.match(await directoryOf('n3', shared, second), { state: 'Current', objects: [{ namespace: elsewhere.name }] })
  t.match(await directoryOf('n3', shared), { state: 'Failed', reason: 'TargetForeign' })
  t.equal(guest.agent?.agent.logged('TargetForeign').length, 0, 'content was not overwritten in turns')
})

await t.test('a Node that was made anew has its report once the earlier one is removed', proven, async (t) => {
  t.match(await wait('--nodes', 'pool=again', '--timeout', '90s'), { code: 0 })
})

await t.test(
  'an agent that has not published the newest version keeps wait from 0, over a restart of the API server',
  proven,
  async (t) => {
    signal('n3', 'SIGSTOP')
    await put('third')
    const early = await answered('wait', ...object)
    t.equal(early.code, 1)
    t.match(early.stdout, /missing:\n(.*\n)*n3 +Older +\S+certs: it has version \d+\n/)
    await namespace.deleteSecret('replaced')
    await namespace.putSecret('replaced', { a: 'b' })
    const replaced = await answered('wait', '--secret', `${namespace.name}/replaced`)
    t.match(replaced, { code: 1, stdout: /n3 +OtherObject +\S+replaced: it has an earlier object of this name/ })
    const waiting = wait('--timeout', '200s')
    await cluster.api.kill()
    await cluster.api.start()
    signal('n3', 'SIGCONT')
    const { code, stdout, stderr } = await waiting
    t.equal(code, 0, `${stdout}${stderr}`)
  },
)

await t.test('status --watch shows a node that comes, and SIGINT ends it', async (t) => {
  const events = new EventEmitter()
  const { io, written } = testIo({ events })
  const end = main(['fleet', 'status', '--watch', '--kubeconfig', cluster.adminKubeconfig], io)
  await until('the first text', () => /^3 nodes, 3 report\n/.test(written.stdout))
  await createNode('n4')
  await until('the node is in a further text', () =>
    /\n\n4 nodes, 3 report\n[^]*\nn4 +- +NoReport /.test(written.stdout),
  )
  events.emit('SIGINT', 'SIGINT')
  t.equal(await end, 130)
  t.equal(written.stderr, '')
})

await t.test(
  'a node without a report, one that has started anew, and one that lacks the object keep wait from 0',
  proven,
  async (t) => {
    const missing = async (pattern: RegExp): Promise<void> => {
      const { code, stdout } = await answered('wait', ...object)
      t.equal(code, 1)
      t.match(stdout, pattern)
    }
    await missing(/n4 +NoReport/)
    const those = await wait('--timeout', '20s', '--reported-only')
    t.match(those, { code: 0, stdout: /^all 3 nodes .*without those that have no report/ })
    await admin.demand('DELETE', '/api/v1/nodes/n4')
    await setBoot('n2', 'another boot')
    await missing(/n2 +OtherBoot/)
    await setBoot('n2', bootID)
    t.match(await wait('--timeout', '20s'), { code: 0 })
    t.match(await wait('--timeout', '20s', '--nodes', 'pool=none'), { code: 1, stdout: /^no node to wait for/ })
    await namespace.putSecret('nobody', { a: 'b' })
    const other = await answered('wait', '--secret', `${namespace.name}/nobody`)
    t.match(other, { code: 1, stdout: /n1 +NotConfigured/ })
  },
)

await t.test('a held directory and a Secret that was replaced keep wait from 0', async (t) => {
  const directory = agents.get('n2')?.path('certs') ?? ''
  const held = await first.agent.runPlain('hold', directory, '--for', '1h')
  t.equal(held.code, 0, held.stderr)
  await put('fourth')
  await until('n2 is held', async () => /n2 +Held/.test((await answered('wait', ...object)).stdout), reported)
  const waiting = wait('--timeout', '100s')
  await until('wait watches', async () => (await fleet('status')).code === 0)
  await admin.demand('DELETE', `/api/v1/namespaces/${namespace.name}/secrets/ca`)
  const { code, stdout } = await waiting
  t.equal(code, 1)
  t.match(stdout, /was deleted or replaced|does not exist/)
})

/** What an agent of this Node creates. */
function reportWith(name: string, uid: string, more: object = {}): object {
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name, uid }]
  return { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodePublication', metadata: { name, ownerReferences, ...more } }
}

function emptyReport(nodeUID: string): ReportStatus {
  const snapshot = { agentVersion: '0', configuration: 'none', directories: [] }
  return reportOf(snapshot, { nodeUID, bootID, agentID: 'an-agent' }, new Date())
}

/** Writes a report as its node's own user does, under the policy. @returns the last answer's status */
async function putReport(node: ApiObject | undefined, status: ReportStatus): Promise<number> {
  const { name = '', uid = '' } = node?.metadata ?? {}
  const own = { 'impersonate-user': `holdfast:node:${name}`, 'impersonate-group': 'holdfast:nodes' }
  const created = await admin.call('POST', reports, reportWith(name, uid), own)
  if (created.status !== 201 && created.status !== 409) return created.status
  const apply = { ...own, 'content-type': 'application/apply-patch+yaml' }
  const path = `${reports}/${name}/status?fieldManager=${managerOf(status.agentID)}&force=true`
  const { apiVersion, kind } = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodePublication' }
  return (await admin.call('PATCH', path, { apiVersion, kind, metadata: { name }, status }, apply)).status
}

/** As if the API server had taken the report two hours ago. */
async function makeOld(name: string): Promise<void> {
  const report = (await admin.demand('GET', `${reports}/${name}`)) as unknown as {
    metadata: { managedFields: { time: string }[]; labels?: object }
  }
  // A change of times alone would be no change for the API server.
  report.metadata.labels = { age: 'old' }
  const time = new Date(Date.now() - 2 * 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z')
  for (const entry of report.metadata.managedFields) entry.time = time
  // A request for the subresource may not write managedFields.
  await admin.demand('PUT', `${reports}/${name}`, report)
}

function withDirectory(status: ReportStatus, change: Partial<Record<keyof ReportedDirectory, unknown>>): ReportStatus {
  return { ...status, directories: status.directories.map((each) => ({ ...each, ...change }) as ReportedDirectory) }
}

function withObject(status: ReportStatus, change: Partial<ReportedObject>): ReportStatus {
  return withDirectory(status, { objects: status.directories[0]?.objects.map((each) => ({ ...each, ...change })) })
}

/** As the agent of 300 directories of many objects reports them: too much to name each object. */
function threeHundred({
  nodeUID,
  bootID,
  agentID,
  agentVersion,
  configuration,
  directories,
}: ReportStatus): ReportStatus {
  const [one] = directories
  if (!one) throw new Error('there is no directory')
  const objects = Array.from({ length: 10 }, (_, index) => ({ ...one.objects[0], name: `other-${index}` }))
  const many = Array.from({ length: 300 }, (_, index) => ({
    ...one,
    path: `/etc/certs-${index}`,
    objects,
    confirmed: true,
  }))
  const snapshot = { agentVersion, configuration, directories: many as SnapshotDirectory[] }
  return reportOf(snapshot, { nodeUID, bootID, agentID }, new Date())
}
