/** The agent's events in the cluster, with no more rights than `holdfast rbac` prints. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Cluster } from './cluster.js'
import { readPublished } from './disk.js'
import type { Namespace } from './namespace.js'
import { Node, type Directory } from './node.js'
import { connections } from './process-figures.js'
import { grant } from './rights.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const canary = 'CANARY-e4c1'
let nodes = 0

interface Event {
  readonly type: string
  readonly reason: string
  readonly action: string
  readonly note: string
  readonly eventTime: string
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly reportingController: string
  readonly reportingInstance: string
  readonly regarding: {
    readonly kind: string
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
  }
  readonly series?: { readonly count: number; readonly lastObservedTime: string }
}

async function events(namespace = ''): Promise<Event[]> {
  const place = namespace === '' ? '' : `/namespaces/${namespace}`
  const list = await cluster.api.admin.demand('GET', `/apis/events.k8s.io/v1${place}/events`)
  return (list as unknown as { items: Event[] }).items
}

/** Waits for an event about an object of this name. */
function event(reason: string, name: string, found: (event: Event) => boolean = () => true): Promise<Event> {
  return until(`an event ${reason} about ${name}`, async () =>
    (await events()).find((each) => each.reason === reason && each.regarding.name === name && found(each)),
  )
}

interface Site {
  readonly node: Node
  /** The output of `holdfast rbac`. */
  readonly roles: string
  /** The Node's name. */
  readonly name: string
}

/** A Node of the cluster, and an agent on it that is allowed what `holdfast rbac` prints, and nothing else. */
async function site(
  t: Test,
  namespace: Namespace,
  directories: readonly Directory[],
  { rights = true } = {},
): Promise<Site> {
  const name = `node-${++nodes}.example`
  await cluster.api.admin.demand('POST', '/api/v1/nodes', { metadata: { name } })
  await namespace.createAccount('node-agent', {})
  const kubeconfig = namespace.kubeconfig({ token: await namespace.token('node-agent') })
  const environment = { NODE_NAME: name }
  const node = await Node.create(t, namespace, { directories, allowed: {}, kubeconfig, environment })
  const roles = await node.agent.run('rbac', '--service-account', `${namespace.name}/node-agent`)
  t.equal(roles.code, 0, roles.stderr)
  if (rights) await grant(cluster, roles.stdout, namespace.name, 'node-agent')
  return { node, name, roles: roles.stdout }
}

await t.test(
  'the agent reports publications on the Node and on the objects, with just the rights of rbac',
  async (t) => {
    const namespace = await cluster.namespace()
    const elsewhere = await cluster.namespace()
    const secret = await namespace.putSecret('serving', { key: canary })
    const bundle = await elsewhere.putConfigMap('bundle', { 'ca.crt': 'x' })
    await namespace.putSecret('other', { key: canary })
    const contents = [{ secret: 'serving' }, { configMap: `${elsewhere.name}/bundle`, into: 'ca' }]
    const { node, name, roles } = await site(t, namespace, [{ path: 'certs', contents }])
    const { agent } = node
    const target = node.path('certs')

    const account = `--as=system:serviceaccount:${namespace.name}:node-agent`
    const may = async (...args: string[]): Promise<string> =>
      (await cluster.kubectl(['auth', 'can-i', account, ...args]).catch(() => 'no')).trim()
    const mayWatch = () => may('-n', namespace.name, 'watch', 'secret/serving')
    t.equal(await mayWatch(), 'yes')
    t.equal(await may('-n', namespace.name, 'get', 'secret/other'), 'no')
    t.equal(await may('-n', namespace.name, 'list', 'secrets'), 'no')
    t.equal(await may('-n', namespace.name, 'update', 'secret/serving'), 'no')
    t.equal(await may('-n', elsewhere.name, 'get', 'configmap/bundle'), 'yes')
    t.equal(await may('-n', 'kube-system', 'create', 'events.events.k8s.io'), 'no')
    t.equal(await may('get', 'nodes'), 'no')

    agent.start()
    await agent.ready()
    const onNode = await event('Published', name)
    t.match(onNode, {
      metadata: { namespace: 'default' },
      type: 'Normal',
      action: 'Publish',
      note: new RegExp(`^${target} is created, (and durable|but durability)`),
      reportingController: 'holdfast.dev/agent',
      reportingInstance: name,
      regarding: { kind: 'Node', uid: name },
    })
    const onSecret = await event('Published', 'serving')
    t.match(onSecret, {
      metadata: { namespace: namespace.name },
      regarding: { kind: 'Secret', uid: secret.metadata.uid },
      note: `resourceVersion ${secret.metadata.resourceVersion} is published to ${target} on node ${name}`,
    })
    t.match(await event('Published', 'bundle'), {
      metadata: { namespace: elsewhere.name },
      regarding: { kind: 'ConfigMap', uid: bundle.metadata.uid },
    })

    const updated = await namespace.putSecret('serving', { key: `${canary} again` })
    await event('Published', 'serving', ({ note }) => note.includes(updated.metadata.resourceVersion))
    t.equal((await events(elsewhere.name)).length, 1, 'an object that did not change gets no event')

    t.match(await cluster.kubectl(['describe', 'node', name]), /Published .*holdfast\.dev\/agent .* is created/)
    t.match(
      await cluster.kubectl(['describe', 'configmap', '-n', elsewhere.name, 'bundle']),
      new RegExp(`Published .* on node ${name}`),
    )
    t.match(
      await cluster.kubectl(['events', '-n', namespace.name, '--for', 'secret/serving']),
      /Normal +Published +Secret\/serving/,
    )
    const all = ['get', 'events', '-A', '--field-selector', 'reportingComponent=holdfast.dev/agent']
    t.match(await cluster.kubectl(all), /Published/)
    t.equal(connections(agent.pid, cluster.api.port), 1, 'over the connection of the watches')
    t.equal(await agent.stop(), 0)

    await cluster.kubectl(['delete', '-f', '-'], roles)
    await until('all of it is taken away again', async () => (await mayWatch()) === 'no')
  },
)

await t.test(
  'the agent reports errors where they are, counts repeated ones, and puts content into no event',
  async (t) => {
    const namespace = await cluster.namespace()
    await namespace.putSecret('broken', { 'tls.crt': canary, 'tls.key': canary })
    await namespace.putSecret('good', { key: canary })
    const { node, name } = await site(t, namespace, [
      { path: 'broken', contents: [{ secret: 'broken' }], validate: ['certificates'] },
      { path: 'missing', contents: [{ secret: 'absent' }] },
      {
        path: 'hooked',
        contents: [{ secret: 'good' }],
        afterPublish: [{ exec: ['/bin/false'], retries: 0 }],
      },
    ])
    const { agent } = node
    agent.start()
    const invalid = await event('CertificateInvalid', 'broken', ({ note }) => note.includes('tls.crt'))
    t.match(invalid, { type: 'Warning', metadata: { namespace: namespace.name } })
    t.match(await event('CertificateInvalid', name), { metadata: { namespace: 'default' }, type: 'Warning' })
    const missing = await event('ObjectMissing', 'absent')
    t.equal(missing.regarding.uid, undefined)
    const counted = await event('HookFailed', name, ({ series }) => (series?.count ?? 0) >= 3)
    t.ok((counted.series?.lastObservedTime ?? '') > counted.eventTime)
    const hooks = (await events('default')).filter(
      ({ reason, regarding }) => reason === 'HookFailed' && regarding.name === name,
    )
    t.equal(hooks.length, 1, 'one event for all of its failures')

    const target = node.path('hooked')
    writeFileSync(join(target, 'key'), 'somebody else')
    process.kill(agent.pid, 'SIGHUP')
    t.match(await event('DriftRepaired', name), { type: 'Normal', note: /key has other content/ })

    await agent.stop()
    const everything = JSON.stringify(await events())
    for (const secret of [canary, Buffer.from(canary).toString('base64').slice(0, -2)]) {
      t.notOk(everything.includes(secret))
    }
    t.notMatch(everything, /sha256/, 'no digest of content')
    t.strictSame(
      (await events()).filter(({ reason }) => reason === 'Unchanged' || reason === 'Busy'),
      [],
    )
  },
)

await t.test('the agent goes on without the right to make events', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  const directories = [{ path: 'certs', contents: [{ secret: 'a' }] }]
  const { node } = await site(t, namespace, directories, { rights: false })
  await namespace.allow('node-agent', { secrets: ['a'] })
  const { agent } = node
  agent.start()
  await agent.ready()
  const denied = () => agent.log().filter(({ msg }) => msg.startsWith('no right to create events in namespace'))
  await until('it is reported, once for each namespace', () => denied().length === 2, { within: 60_000 })
  const update = await namespace.putSecret('a', { key: '2' })
  await agent.condition(node.path('certs'), 'Fresh', 'True', undefined, { objects: [update] })
  t.equal(readPublished(node.path('certs'), 'key'), '2')
  t.equal(denied().length, 2)
  t.strictSame(await events(namespace.name), [])
  t.equal(connections(agent.pid, cluster.api.port), 1)
})
