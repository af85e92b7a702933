/** `source.kubernetes.watch: namespaces`: one watch for each namespace and kind, against the real API server. */
import t from 'tap'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import { Node } from './node.js'
import { until } from '../until.js'

/** More than a page of a list holds. */
const others = 520

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

await t.test('two watches serve all objects of a namespace, beside any number of others', async (t) => {
  const namespace = await cluster.namespace()
  const names = Array.from({ length: 5 }, (_, index) => `secret-${index}`)
  const rest = Array.from({ length: others }, (_, index) => `another-${index}`)
  for (const name of [...names, ...rest]) await namespace.putSecret(name, { version: '1' })
  await namespace.putConfigMap('bundle', { ca: '1' })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: names, configMaps: ['bundle'] },
    watch: 'namespaces',
    directories: [
      {
        path: 'all',
        contents: [...names.map((secret) => ({ secret, into: secret, optional: true })), { configMap: 'bundle' }],
      },
    ],
  })
  const { agent } = node
  const onDisk = (expected: object): Promise<unknown> =>
    until(JSON.stringify(expected), () => {
      const found = readTree(node.path('all')) ?? {}
      return JSON.stringify(Object.entries(found).sort()) === JSON.stringify(Object.entries(expected).sort())
    })
  const all: Record<string, string> = { ca: '1', ...Object.fromEntries(names.map((name) => [`${name}/version`, '1'])) }

  const { conditions } = await agent.condition(node.path('all'), 'Published', 'False', 'AccessDenied')
  t.match(conditions[0]?.message, /secrets of case-1: list failed with HTTP 403.*allows the verbs get, list and watch/)
  t.match(conditions[0]?.message, /with source.kubernetes.watch: objects, names are enough/)
  t.equal(await agent.metric('holdfast_watches_open'), 0, 'what its names would allow is no way out')
  await namespace.allow('agent', { all: true })
  await onDisk(all)
  await agent.ready()
  await until('two watches are open', async () => (await agent.metric('holdfast_watches_open')) === 2)

  const reads = (): Promise<number> => agent.metric('holdfast_api_requests_total', { verb: 'get' })
  const before = await reads()
  t.equal(before, names.length + 1, 'what is not followed is not read')
  await namespace.putSecret('another-1', { version: '2' })
  await namespace.putSecret('secret-1', { version: '2' })
  await onDisk({ ...all, 'secret-1/version': '2' })
  t.equal(await reads(), before + 1)

  await cluster.api.kill()
  await cluster.api.start()
  await namespace.deleteSecret('secret-1')
  await namespace.putSecret('secret-1', { version: '3' })
  await namespace.putConfigMap('bundle', { ca: '2' })
  await onDisk({ ...all, ca: '2', 'secret-1/version': '3' })
  await agent.condition(node.path('all'), 'Fresh', 'True')
  await namespace.deleteSecret('secret-2')
  const cause = `Secret ${namespace.name}/secret-2`
  const pass = await until('a pass because of the deletion', () =>
    agent.logged('Unchanged').find(({ causes }) => (causes as string[]).includes(cause)),
  )
  t.match(pass, { causes: [cause], outcome: 'unchanged' })
  t.strictSame(readTree(node.path('all')), { ...all, ca: '2', 'secret-1/version': '3' }, 'onMissing: keep')
  await agent.condition(node.path('all'), 'Fresh', 'True')
})

await t.test('the directory of a selector follows labels and objects that come and go', async (t) => {
  const namespace = await cluster.namespace()
  const web = { app: 'web' }
  await namespace.putSecret('a', { v: '1' }, web)
  await namespace.putSecret('b', { v: '1' }, web)
  await namespace.putSecret('other', { v: '1' }, { app: 'db' })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a', 'b', 'other'] },
    watch: 'namespaces',
    directories: [{ path: 'web', contents: [{ secrets: { selector: 'app in (web)', into: 'tls/{name}' } }] }],
  })
  const { agent } = node
  const path = node.path('web')
  const swaps = () =>
    agent.log().filter(({ reason, outcome }) => reason === 'Published' && outcome !== 'unchanged').length
  const onDisk = (expected: object): Promise<unknown> =>
    until(JSON.stringify(expected), () => JSON.stringify(readTree(path)) === JSON.stringify(expected))

  const { conditions } = await agent.condition(path, 'Published', 'False', 'AccessDenied')
  t.match(conditions[0]?.message, /Secret case-2\/\(app in \(web\)\): secrets of case-2: list failed with HTTP 403/)
  await namespace.allow('agent', { all: true })
  await onDisk({ 'tls/a/v': '1', 'tls/b/v': '1' })
  await agent.ready()
  await until('one watch is open', async () => (await agent.metric('holdfast_watches_open')) === 1)
  const lists = () => agent.metric('holdfast_api_requests_total', { verb: 'list' })
  const before = await lists()

  const other = await namespace.patchSecret('other', { metadata: { labels: web } })
  await onDisk({ 'tls/a/v': '1', 'tls/b/v': '1', 'tls/other/v': '1' })
  // The label goes, and the content changes with it.
  await namespace.putSecret('a', { v: 'not to be seen' })
  await onDisk({ 'tls/b/v': '1', 'tls/other/v': '1' })
  await namespace.deleteSecret('b')
  await onDisk({ 'tls/other/v': '1' })
  const again = await namespace.putSecret('b', { v: '2' }, web)
  await onDisk({ 'tls/b/v': '2', 'tls/other/v': '1' })
  await until('five swaps are logged', () => swaps() >= 5)
  t.equal(await lists(), before, 'the watch brings it all')
  const { objects } = await agent.condition(path, 'Fresh', 'True', undefined, { objects: [again, other] })
  t.strictSame(
    objects.map(({ name }) => name),
    ['b', 'other'],
  )

  // Objects that came and went while no agent, or no server, ran.
  await agent.kill()
  await namespace.deleteSecret('b')
  await namespace.putSecret('c', { v: '3' }, web)
  agent.start()
  await onDisk({ 'tls/c/v': '3', 'tls/other/v': '1' })
  await cluster.api.kill()
  await cluster.api.start()
  await namespace.patchSecret('other', { metadata: { labels: { app: null } } })
  await onDisk({ 'tls/c/v': '3' })
  await namespace.deleteSecret('c')
  await agent.condition(path, 'Published', 'False', 'ObjectMissing')
  t.equal(swaps(), 7, 'one for each change')
  t.strictSame(readTree(path), { 'tls/c/v': '3' }, 'nothing matches: what is published stays')
})
