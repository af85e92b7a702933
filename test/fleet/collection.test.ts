/** Follows collections of an API server that breaks off, forgets, refuses and ends its watches. */
import t, { type Test } from 'tap'
import { FleetCollection, followAll } from '../../src/fleet/collection.js'
import type { ApiClient } from '../../src/kubernetes/connection/client.js'
import { metadataName } from '../../src/kubernetes/reads/observed-version.js'
import { silent } from '../../src/log.js'
import { json, refuse } from '../kubernetes/connection/api-server.js'
import { start } from '../kubernetes/connection/connected.js'
import { until } from '../until.js'
import { FleetServer, nodesPath } from './fleet-server.js'

const nodes = (api: ApiClient, changed: () => void = () => undefined): FleetCollection<string> =>
  new FleetCollection(api, {
    target: { resource: 'nodes', namespace: undefined, name: undefined, advice: { 403: 'needs list and watch' } },
    path: nodesPath,
    read: metadataName,
    changed,
  })

async function scene(t: Test) {
  const server = await FleetServer.start(t)
  const abort = new AbortController()
  const collection = nodes(server.api)
  const begin = (): Promise<void> => followAll(server.api, [collection], abort.signal, server.log)
  t.teardown(() => abort.abort())
  /** Waits until it is read, and these are its objects. */
  const has = (...names: string[]): Promise<unknown> =>
    until(
      `it has ${names.join(', ')}`,
      () => collection.isWhole && [...collection.items.keys()].sort().join() === names.join(),
    )
  const watches = (count: number): Promise<unknown> =>
    until(`${count} watches`, () => server.requests(nodesPath, 'watch').length === count)
  return { server, abort, begin, has, watches }
}

await t.test('a stream that ends goes on after its last event; one that breaks means a new list', async (t) => {
  const { server, begin, has, watches } = await scene(t)
  server.putNode('n1')
  begin().catch(() => undefined)
  await has('n1')
  await watches(1)
  server.putNode('n2')
  await has('n1', 'n2')
  server.remove(nodesPath, 'n1')
  await has('n2')
  server.endWatches(nodesPath)
  await watches(2)
  server.putNode('n3')
  await has('n2', 'n3')
  t.equal(server.requests(nodesPath, 'list').length, 1, 'no list was needed')
  server.cut()
  await watches(3)
  server.putNode('n4')
  await has('n2', 'n3', 'n4')
  t.equal(server.requests(nodesPath, 'list').length, 2, 'the server may have come back from a backup')
  const versions = server.requests(nodesPath, 'watch').map(({ searchParams }) => searchParams.get('resourceVersion'))
  t.strictSame(versions, ['1001', '1003', '1004'])
})

await t.test('a page of more values than holdfast reads at once is read in smaller ones', async (t) => {
  const { server, begin, has } = await scene(t)
  // 480,000 values, in lists that are not wide by themselves.
  const lists = Array.from({ length: 5 }, () => new Array<number>(32_000).fill(0))
  for (const name of ['n1', 'n2', 'n3']) server.put(nodesPath, { metadata: { name }, status: lists })
  begin().catch(() => undefined)
  await has('n1', 'n2', 'n3')
  const asked = server.requests(nodesPath, 'list').map(({ searchParams }) => searchParams.get('limit'))
  t.strictSame(asked, ['100', '25', '6', '1', '2'])
})

await t.test('a bookmark moves the place where a stream goes on', async (t) => {
  const { server, begin, has, watches } = await scene(t)
  begin().catch(() => undefined)
  await has()
  await watches(1)
  server.send(nodesPath, { type: 'BOOKMARK', object: { metadata: { resourceVersion: '5000' } } })
  server.endWatches(nodesPath)
  await watches(2)
  t.equal(server.requests(nodesPath, 'watch')[1]?.searchParams.get('resourceVersion'), '5000')
})

for (const how of ['an event', 'an answer'] as const) {
  await t.test(
    `a version that the server has forgotten, by ${how}, means a new list, whose gaps are gone objects`,
    async (t) => {
      const { server, begin, has, watches } = await scene(t)
      server.putNode('n1')
      server.putNode('n2')
      begin().catch(() => undefined)
      await has('n1', 'n2')
      await watches(1)
      server.holdUp(nodesPath)
      server.remove(nodesPath, 'n1')
      if (how === 'an answer') server.refuseOnce(nodesPath, 'watch', 410)
      else server.send(nodesPath, { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old' } })
      server.goOn(nodesPath)
      await has('n2')
      // The end of the stream before, without an event, may count as a break, and mean one list more.
      t.ok(server.requests(nodesPath, 'list').length >= 2)
    },
  )
}

await t.test('objects of a list that breaks off are gone once a whole list lacks them', async (t) => {
  const { server, begin, has } = await scene(t)
  server.pageSize = 1
  server.putNode('n1')
  server.putNode('n2')
  server.answer = (_, reply, url) => {
    if (url.searchParams.get('continue') === null) return false
    server.answer = () => false
    server.remove(nodesPath, 'n1')
    return refuse(reply, 410, 'the continue token is too old')
  }
  begin().catch(() => undefined)
  t.ok(await has('n2'))
})

await t.test('watches that end at once, and bring nothing, are not opened again at once', async (t) => {
  const { server, begin } = await scene(t)
  server.answer = (_, reply, url) => {
    if (url.searchParams.get('watch') !== '1') return false
    reply.writeHead(200, { 'content-type': 'application/json' })
    reply.end()
    return true
  }
  const began = performance.now()
  begin().catch(() => undefined)
  const watches = 4
  await until(`${watches} watches`, () => server.requests(nodesPath, 'watch').length >= watches)
  // At least half of 200, 400 and 800 ms lie between them.
  t.ok(performance.now() - began >= 700, 'the pauses grow')
  t.matchOnly(server.warnings, [/is read again: .*ended the watch after/])
})

await t.test('the refusal of a request without a credential advises no right', async (t) => {
  const { api } = await start(t, { handler: (_, reply) => void refuse(reply, 403, 'no') }, {})
  const following = followAll(api, [nodes(api)], new AbortController().signal, silent)
  await t.rejects(following, { message: /HTTP 403 .*: no credential was sent: give the user .*plugin$/ })
})

await t.test('a refusal ends it before the first whole list, and is tried again after it', async (t) => {
  const first = await scene(t)
  first.server.refuseOnce(nodesPath, 'list', 403)
  await t.rejects(first.begin(), { message: 'nodes: list failed with HTTP 403 (refused): needs list and watch' })
  const later = await scene(t)
  later.server.refuseOnce(nodesPath, 'watch', 403)
  later.begin().catch(() => undefined)
  await later.has()
  await later.watches(2)
  t.matchOnly(later.server.warnings, [/is read again: .*HTTP 403/])
  t.equal(later.server.requests(nodesPath, 'list').length, 2, 'a user who may not watch has a look at each list')
})

await t.test('a server that is away or answers nonsense is asked again, with one warning', async (t) => {
  const { server, begin, has, watches } = await scene(t)
  for (const code of [500, 429, 401]) server.refuseOnce(nodesPath, 'list', code)
  begin().catch(() => undefined)
  await has()
  await watches(1)
  t.equal(server.warnings.length, 1)
  server.send(nodesPath, 'no event')
  server.endWatches(nodesPath)
  server.putNode('n1')
  await has('n1')
})

await t.test('streams that break together are one warning', async (t) => {
  const server = await FleetServer.start(t)
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  const open = (count: number): Promise<unknown> =>
    until(`${count} watches`, () => server.requests(nodesPath, 'watch').length === count)
  followAll(server.api, [nodes(server.api), nodes(server.api)], abort.signal, server.log).catch(() => undefined)
  await open(2)
  for (const count of [4, 6]) {
    server.cut()
    await open(count)
  }
  t.equal(server.warnings.length, 1, server.warnings.join())
})

await t.test('a list reads each page, and refuses what is no list of an API server', async (t) => {
  const server = await FleetServer.start(t)
  server.pageSize = 2
  for (const name of ['n1', 'n2', 'n3', 'n4', 'n5']) server.putNode(name)
  const { signal } = new AbortController()
  const collection = nodes(server.api)
  await collection.read(signal)
  t.equal(collection.items.size, 5)
  t.strictSame(
    server.requests(nodesPath).map(({ searchParams }) => searchParams.get('continue')),
    [null, '2', '4'],
  )
  server.answer = (_, reply) => {
    json(reply, 200, { kind: 'Status', items: 'x' })
    return true
  }
  await t.rejects(collection.read(signal), { message: /answer is not a list/ })
})

await t.test('an abort ends it during a list, a watch and a pause', async (t) => {
  for (const when of ['list', 'watch', 'pause'] as const) {
    const { server, begin, abort } = await scene(t)
    server.answer = (_, reply, url) => {
      const isWatch = url.searchParams.get('watch') === '1'
      if (when === 'pause') return refuse(reply, 500, 'away')
      return when === 'list' && !isWatch
    }
    const following = begin()
    await until(
      `it is in its ${when}`,
      () => server.requests(nodesPath, when === 'watch' ? 'watch' : 'list').length > 0,
    )
    abort.abort()
    await t.resolves(following, when)
  }
})
