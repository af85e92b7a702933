/** `source.kubernetes.watch: namespaces`: one watch for each namespace and kind, against the real API server. */
import t from 'tap'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import { Node } from './node.js'
import { until } from './until.js'

t.setTimeout(180_000)

/** More than a page of a list holds. */
const others = 520

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

await t.test('two watches for all objects of a namespace, whatever else is there', async (t) => {
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
  t.equal(await agent.metric('holdfast_watches_open'), 2)

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
  const unchanged = (): number => agent.logged('Unchanged').length
  const passes = unchanged()
  await namespace.deleteSecret('secret-2')
  const pass = await until('a pass because of the deletion', () =>
    unchanged() > passes ? agent.logged('Unchanged').at(-1) : undefined,
  )
  t.match(pass, { causes: [`Secret ${namespace.name}/secret-2`], outcome: 'unchanged' })
  t.strictSame(readTree(node.path('all')), { ...all, ca: '2', 'secret-1/version': '3' }, 'onMissing: keep')
  await agent.condition(node.path('all'), 'Fresh', 'True')
})
