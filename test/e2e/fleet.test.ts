/** Reports of nodes and `holdfast fleet` on a real API server: three agents, the policy's refusals, and each sentence of "exit 0 is a proof". */
import { EventEmitter } from 'node:events'
import { readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { main } from '../../src/cli/main.js'
import { testIo } from '../cli/in-process.js'
import { Disk, missingForDisk } from '../disk/disk.js'
import { deploy, documents } from '../deploy/manifests.js'
import { ApiClient, type ApiObject } from './api-client.js'
import { Cluster } from './cluster.js'
import { Node } from './node.js'
import { grant, granted } from './rights.js'
import { until } from './until.js'

t.setTimeout(400_000)

/** An agent sends a change within half a minute, at random; with this much more for a slow machine, in milliseconds. */
const reported = { within: 90_000 }
const bootID = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
const names = ['n1', 'n2', 'n3'] as const

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const { admin } = cluster.api
await cluster.kubectl(['apply', '-k', join(deploy, 'fleet')])
await cluster.kubectl(['wait', '--for=condition=established', '--timeout=60s', 'crd/nodepublications.holdfast.dev'])

interface Report extends ApiObject {
  readonly status?: {
    readonly summary: Record<string, number>
    readonly directories: readonly { path: string; state: string; objects: readonly ApiObject['metadata'][] }[]
  }
}

const reports = '/apis/holdfast.dev/v1alpha1/nodepublications'

async function createNode(name: string, boot = bootID): Promise<ApiObject> {
  const node = await admin.demand('POST', '/api/v1/nodes', {
    metadata: { name, labels: { 'kubernetes.io/os': 'linux' } },
  })
  await setBoot(name, boot)
  return node
}

const setBoot = (name: string, boot: string): Promise<unknown> =>
  admin.demand(
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
    { 'content-type': 'application/merge-patch+json' },
  )

// A report says that the file system of the tests' directory proves nothing, if it does not: without a disk, wait never ends with 0.
const missing = await missingForDisk(['ext4'])
const disk = missing.length === 0 ? await Disk.create() : undefined
t.teardown(() => disk?.destroy())
await disk?.format('ext4')
await disk?.mount()
const proven: { readonly skip?: string } = missing.length === 0 ? {} : { skip: `needs root, and ${missing.join(', ')}` }

const namespace = await cluster.namespace()
await namespace.createAccount('agent', { secrets: ['ca'] })
await namespace.putSecret('ca', { 'ca.crt': 'first' })
const nodes = new Map<string, ApiObject>()
const agents = new Map<string, Node>()
for (const name of names) nodes.set(name, await createNode(name))
const token = (name: string): Promise<string> => namespace.token('agent', nodes.get(name), 'Node')
for (const name of names) {
  const kubeconfig = namespace.kubeconfig({ token: await token(name) })
  const node = await Node.create(t, namespace, {
    report: true,
    kubeconfig,
    allowed: { secrets: ['ca'] },
    directories: [{ path: 'certs', contents: [{ secret: 'ca' }] }],
    environment: { NODE_NAME: name },
    // As in a pod: what one mounts there, no other one has.
    ...(proven.skip === undefined && { prefix: ['unshare', '--mount'] }),
    ...(disk && { place: disk.mountPoint }),
  })
  agents.set(name, node)
}
const first = agents.get('n1')
if (!first) throw new Error('there is no agent')
const printed = (await first.agent.run('rbac', '--service-account', `${namespace.name}/agent`)).stdout
await grant(cluster, printed, namespace.name, 'agent')
for (const node of agents.values()) node.agent.start()

const fleet = (...args: string[]) => first.agent.runPlain('fleet', ...args, '--kubeconfig', cluster.adminKubeconfig)
const object = ['--secret', `${namespace.name}/ca`]
const wait = (...args: string[]) => fleet('wait', ...object, ...args)
const put = (value: string): Promise<ApiObject> => namespace.putSecret('ca', { 'ca.crt': value })
const signal = (name: string, word: NodeJS.Signals): void =>
  void process.kill(agents.get(name)?.agent.pid ?? Number.NaN, word)

await t.test('each agent reports its node, and kubectl shows how the directories stand', async (t) => {
  const status = (name: string) => async () => {
    const answer = await admin.call('GET', `${reports}/${name}`)
    return answer.status === 200 && ((answer.body as Report).status ?? false)
  }
  for (const name of names) {
    const found = await until(`${name} has a report`, status(name), reported)
    t.match(found, { summary: { directories: 1, current: 1, waiting: 0, held: 0, failed: 0 } })
    t.match(found.directories, [{ state: 'Current', objects: [{ namespace: namespace.name, name: 'ca' }] }])
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

await t.test('the policy lets an agent write the status of its own node alone', async (t) => {
  const port = Number(new URL(cluster.api.url).port)
  const client = new ApiClient(port, cluster.api.authority.certificate)
  const as = async (bearer: string, method: string, path: string, body: object) => {
    const headers = {
      authorization: `Bearer ${bearer}`,
      'content-type': method === 'POST' ? 'application/json' : 'application/merge-patch+json',
    }
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
  const merge = { 'content-type': 'application/merge-patch+json' }
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

await t.test(
  'an agent that has not published the newest version keeps wait from 0, over a restart of the API server',
  proven,
  async (t) => {
    signal('n3', 'SIGSTOP')
    await put('third')
    const early = await wait('--timeout', '3s')
    t.equal(early.code, 1)
    t.match(early.stdout, /missing:\n(.*\n)*n3 +Older +\S+certs: it has version \d+\n/)
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
      const { code, stdout } = await wait('--timeout', '2s')
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
    const other = await fleet('wait', '--secret', `${namespace.name}/nobody`, '--timeout', '2s')
    t.match(other, { code: 1, stdout: /n1 +NotConfigured/ })
  },
)

await t.test('a held directory and a Secret that was replaced keep wait from 0', async (t) => {
  const directory = agents.get('n2')?.path('certs') ?? ''
  const held = await first.agent.runPlain('hold', directory, '--for', '1h')
  t.equal(held.code, 0, held.stderr)
  await put('fourth')
  await until('n2 is held', async () => /n2 +Held/.test((await wait('--timeout', '1s')).stdout), reported)
  const waiting = wait('--timeout', '100s')
  await until('wait watches', async () => (await fleet('status')).code === 0)
  await admin.demand('DELETE', `/api/v1/namespaces/${namespace.name}/secrets/ca`)
  const { code, stdout } = await waiting
  t.equal(code, 1)
  t.match(stdout, /was deleted or replaced|does not exist/)
})
