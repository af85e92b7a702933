/** Follows collections of an API server that breaks off, forgets, refuses and ends its watches. */
import t, { type Test } from 'tap'
import { follow, readPages } from '../../src/fleet/follow.js'
import { silent } from '../../src/log.js'
import { json, refuse } from '../kubernetes/connection/api-server.js'
import { start } from '../kubernetes/connection/connected.js'
import { until } from '../until.js'
import { FleetServer, nodesPath } from './fleet-server.js'

/** What the follower was handed, in its order. */
async function scene(t: Test) {
  const server = await FleetServer.start(t)
  const events: string[] = []
  const abort = new AbortController()
  const named = (object: unknown): string => (object as { metadata: { name: string } }).metadata.name
  const begin = (): Promise<never> =>
    follow(
      server.api,
      {
        put: (object) => void events.push(`+${named(object)}`),
        remove: (name) => void events.push(`-${name}`),
        complete: () => void events.push('complete'),
      },
      { path: nodesPath, signal: abort.signal, log: server.log },
    )
  t.teardown(() => abort.abort())
  const seen = async (...expected: string[]): Promise<void> => {
    await until(`${expected.length} events`, () => events.length >= expected.length)
    t.strictSame(events, expected)
  }
  return { server, abort, begin, seen }
}

await t.test('a stream that ends goes on after its last event, and hands none on twice', async (t) => {
  const { server, begin, seen } = await scene(t)
  server.putNode('n1')
  begin().catch(() => undefined)
  await seen('+n1', 'complete')
  await until('it watches', () => server.requests(nodesPath, 'watch').length === 1)
  server.putNode('n2')
  await seen('+n1', 'complete', '+n2')
  server.remove(nodesPath, 'n1')
  await seen('+n1', 'complete', '+n2', '-n1')
  server.endWatches(nodesPath)
  await until('it watches again', () => server.requests(nodesPath, 'watch').length === 2)
  server.putNode('n3')
  await seen('+n1', 'complete', '+n2', '-n1', '+n3')
  server.cut()
  await until('it watches again', () => server.requests(nodesPath, 'watch').length === 3)
  server.putNode('n4')
  await seen('+n1', 'complete', '+n2', '-n1', '+n3', '+n4')
  t.equal(server.requests(nodesPath, 'list').length, 1, 'no list was needed')
  const versions = server.requests(nodesPath, 'watch').map(({ searchParams }) => searchParams.get('resourceVersion'))
  t.strictSame(versions, ['1001', '1003', '1004'])
})

await t.test('a page of more values than holdfast reads at once is read in smaller ones', async (t) => {
  const { server, begin, seen } = await scene(t)
  // 480,000 values, in lists that are not wide by themselves.
  const lists = Array.from({ length: 5 }, () => new Array<number>(32_000).fill(0))
  for (const name of ['n1', 'n2', 'n3']) server.put(nodesPath, { metadata: { name }, status: lists })
  begin().catch(() => undefined)
  await seen('+n1', '+n2', '+n3', 'complete')
  const asked = server.requests(nodesPath, 'list').map(({ searchParams }) => searchParams.get('limit'))
  t.strictSame(asked, ['100', '25', '6', '1', '2'])
})

await t.test('a bookmark moves the place where a stream goes on', async (t) => {
  const { server, begin, seen } = await scene(t)
  begin().catch(() => undefined)
  await seen('complete')
  await until('it watches', () => server.requests(nodesPath, 'watch').length === 1)
  server.send(nodesPath, { type: 'BOOKMARK', object: { metadata: { resourceVersion: '5000' } } })
  server.endWatches(nodesPath)
  await until('it watches again', () => server.requests(nodesPath, 'watch').length === 2)
  t.equal(server.requests(nodesPath, 'watch')[1]?.searchParams.get('resourceVersion'), '5000')
})

for (const how of ['an event', 'an answer'] as const) {
  await t.test(
    `a version that the server has forgotten, by ${how}, means a new list, whose gaps are gone objects`,
    async (t) => {
      const { server, begin, seen } = await scene(t)
      server.putNode('n1')
      server.putNode('n2')
      begin().catch(() => undefined)
      await seen('+n1', '+n2', 'complete')
      await until('it watches', () => server.requests(nodesPath, 'watch').length === 1)
      server.holdUp(nodesPath)
      server.remove(nodesPath, 'n1')
      if (how === 'an answer') server.refuseOnce(nodesPath, 'watch', 410)
      else server.send(nodesPath, { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old' } })
      server.goOn(nodesPath)
      await seen('+n1', '+n2', 'complete', '+n2', '-n1', 'complete')
      t.equal(server.requests(nodesPath, 'list').length, 2)
    },
  )
}

await t.test('objects of a list that breaks off are gone once a whole list lacks them', async (t) => {
  const { server, begin, seen } = await scene(t)
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
  await seen('+n1', '+n2', '-n1', 'complete')
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
  t.strictSame(server.warnings, [], 'nothing has failed')
})

await t.test('the refusal of a request without a credential advises no right', async (t) => {
  const { api } = await start(t, { handler: (_, reply) => void refuse(reply, 403, 'no') }, {})
  const followed = { put() {}, remove() {}, complete: () => Promise.resolve() }
  const following = follow(api, followed, { path: nodesPath, signal: new AbortController().signal, log: silent })
  await t.rejects(following, { message: /HTTP 403: .*\(no credential was sent: give the user [^)]*\)$/ })
})

await t.test('a refusal ends it before the first whole list, and is tried again after it', async (t) => {
  const first = await scene(t)
  first.server.refuseOnce(nodesPath, 'list', 403)
  await t.rejects(first.begin(), { message: /list \/api\/v1\/nodes: HTTP 403: refused .*needs list and watch/ })
  const later = await scene(t)
  later.server.refuseOnce(nodesPath, 'watch', 403)
  later.begin().catch(() => undefined)
  await later.seen('complete')
  await until('it watches', () => later.server.requests(nodesPath, 'watch').length === 2)
  t.match(later.server.warnings, [/is read again: .*HTTP 403/])
  t.equal(later.server.requests(nodesPath, 'list').length, 2, 'a user who may not watch has a look at each list')
})

await t.test('a server that is away or answers nonsense is asked again, with one warning', async (t) => {
  const { server, begin, seen } = await scene(t)
  for (const code of [500, 429, 401]) server.refuseOnce(nodesPath, 'list', code)
  begin().catch(() => undefined)
  await seen('complete')
  await until('it watches', () => server.requests(nodesPath, 'watch').length === 1)
  t.equal(server.warnings.length, 1)
  server.send(nodesPath, 'no event')
  server.endWatches(nodesPath)
  server.putNode('n1')
  await seen('complete', '+n1')
})

await t.test('a list reads each page, and refuses what is no list of an API server', async (t) => {
  const server = await FleetServer.start(t)
  server.pageSize = 2
  for (const name of ['n1', 'n2', 'n3', 'n4', 'n5']) server.putNode(name)
  const names: unknown[] = []
  const { signal } = new AbortController()
  await readPages(server.api, { path: nodesPath, signal }, (object) => names.push(object))
  t.equal(names.length, 5)
  t.strictSame(
    server.requests(nodesPath).map(({ searchParams }) => searchParams.get('continue')),
    [null, '2', '4'],
  )
  server.answer = (_, reply) => {
    json(reply, 200, { kind: 'Status', items: 'x' })
    return true
  }
  await t.rejects(
    readPages(server.api, { path: nodesPath, signal }, () => undefined),
    { message: /no list of an API server/ },
  )
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
    abort.abort(new Error('over'))
    await t.rejects(following, { message: 'over' }, when)
  }
})
