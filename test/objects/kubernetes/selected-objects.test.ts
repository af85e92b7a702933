/** The source reads a selector's matches together: in one stream, or in pages where the API server refuses that. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { selectionReference, type ObjectReference, type ObservedState } from '../../../src/objects/types.js'
import { json, refuse, startServer, type Reply } from '../../kubernetes/connection/api-server.js'
import { connectTo, serving } from '../../kubernetes/connection/connected.js'
import { contentOf, Recorder, reference } from '../recorder.js'
import { shortTiming } from './watching.js'

const count = 300
const selection = selectionReference('ConfigMap', 'kube-system', 'app in (web)')
const names = Array.from({ length: count }, (_, index) => `web-${String(index).padStart(3, '0')}`)

const object = (name: string, version = 10) => ({
  metadata: {
    name,
    namespace: 'kube-system',
    uid: `uid-${name}`,
    resourceVersion: String(version),
    labels: { app: 'web' },
  },
  data: { a: `${name} ${version}` },
})

/** Follows what the selection matches, as the agent does. */
class Follower extends Recorder {
  source: KubernetesSource | undefined

  override observed(reference: ObjectReference, state: ObservedState, details: { rewound: boolean }): void {
    super.observed(reference, state, details)
    if (state.state !== 'selected') return
    const matching = state.names.map((name) => ({
      reference: { kind: 'ConfigMap', namespace: 'kube-system', name } as const,
    }))
    this.source?.follow([{ reference: selection }, ...matching])
  }
}

interface Asked {
  readonly verb: 'get' | 'list' | 'page' | 'stream' | 'watch'
  readonly query: URLSearchParams
}

type Override = (asked: Asked, reply: Reply) => boolean

/** A server of 300 ConfigMaps with the label, and as many without it. */
async function watching(t: Test, override: Override = () => false, timing = {}) {
  const asked: Asked[] = []
  let largest = 0
  const server = await startServer({
    serving,
    handler: ({ path, headers }, reply) => {
      const { pathname, searchParams: query } = new URL(path, 'https://server')
      const name = pathname.split('/').at(-1) ?? ''
      const isMetadata = String(headers['accept']).includes('PartialObjectMetadata')
      const isStream = query.has('sendInitialEvents')
      const whole = isMetadata ? 'list' : 'page'
      const verb = isStream ? 'stream' : query.has('watch') ? 'watch' : name === 'configmaps' ? whole : 'get'
      asked.push({ verb, query })
      if (override({ verb, query }, reply)) return
      if (verb === 'get') json(reply, 200, object(name))
      else if (verb === 'list') {
        const others = names.map((each) => ({ metadata: { ...object(`db-${each}`).metadata, labels: { app: 'db' } } }))
        const items = [...names.map((each) => ({ metadata: object(each).metadata })), ...others]
        json(reply, 200, { metadata: { resourceVersion: '50' }, items })
      } else if (verb === 'page') {
        const start = Number(query.get('continue') ?? '0')
        const limit = Number(query.get('limit'))
        largest = Math.max(largest, limit)
        const next = start + limit < count ? String(start + limit) : ''
        const items = names.slice(start, start + limit).map((each) => object(each))
        json(reply, 200, { metadata: { resourceVersion: '50', continue: next }, items })
      } else {
        const stream = reply as ServerResponse
        stream.writeHead(200, { 'content-type': 'application/json' })
        stream.flushHeaders()
        if (verb === 'watch') return
        for (const each of names) stream.write(`${JSON.stringify({ type: 'ADDED', object: object(each) })}\n`)
        const metadata = { resourceVersion: '50', annotations: { 'k8s.io/initial-events-end': 'true' } }
        stream.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`)
      }
    },
  })
  t.teardown(() => server.close())
  const recorder = new Follower()
  const client = await connectTo(t, server.url)
  const source = new KubernetesSource(client, recorder, { timing: { ...shortTiming, ...timing }, watch: 'namespaces' })
  recorder.source = source
  t.teardown(() => source.close())
  source.follow([{ reference: selection }])
  const version = (name: string) => contentOf(source.latest(reference(name, 'ConfigMap')))
  await recorder.until('all are read', () => names.every((name) => version(name) !== undefined))
  await recorder.until('the watch', () => asked.some(({ verb }) => verb === 'watch'))
  const times = (verb: Asked['verb']): number => asked.filter((each) => each.verb === verb).length
  return { asked, server, recorder, source, times, largest: () => largest }
}

await t.test('in one stream', async (t) => {
  const { asked, recorder, times } = await watching(t)
  t.equal(times('get'), 0)
  t.equal(times('page'), 0)
  const streams = asked.filter(({ verb }) => verb === 'stream')
  t.strictSame(
    streams.map(({ query }) => [query.get('labelSelector'), query.get('resourceVersion')]),
    [['app in (web)', null]],
    'consistent: it accepts no cache',
  )
  t.strictSame(recorder.restarts, [])
})

await t.test('in pages that grow, where the API server refuses streaming lists', async (t) => {
  const { times, largest, recorder, server } = await watching(
    t,
    ({ verb }, reply) => verb === 'stream' && refuse(reply, 422, 'sendInitialEvents: Forbidden'),
  )
  t.equal(times('get'), 0)
  t.ok(times('page') <= 12, `${times('page')} pages`)
  t.ok(largest() <= 64, 'a page of the largest objects is no more than an answer may be')
  const pages = times('page')
  server.cut()
  await recorder.until('listed again', () => times('list') === 2 && times('watch') === 2)
  t.equal(times('page'), pages, 'what is known is not read again')
  t.equal(times('stream'), 1, 'nor is a stream asked for')
})

await t.test('in pages, where initial events never end', async (t) => {
  const silent: Override = ({ verb }, reply) => {
    if (verb !== 'stream') return false
    ;(reply as ServerResponse).writeHead(200).flushHeaders()
    return true
  }
  const { times } = await watching(t, silent, { initialEventsTimeout: 200 })
  t.equal(times('get'), 0)
  t.ok(times('page') > 0)
})

await t.test('a stream that ends before its bookmark leaves the rest to pages', async (t) => {
  const half: Override = ({ verb }, reply) => {
    if (verb !== 'stream') return false
    const stream = reply as ServerResponse
    stream.writeHead(200)
    const lines = names
      .slice(0, count / 2)
      .map((name) => `${JSON.stringify({ type: 'ADDED', object: object(name) })}\n`)
    stream.end(lines.join(''))
    return true
  }
  const { times } = await watching(t, half)
  t.equal(times('get'), 0)
  t.ok(times('page') > 0)
})

await t.test('a page that has expired leaves the rest to reads by name', async (t) => {
  const { times } = await watching(t, ({ verb, query }, reply) => {
    if (verb === 'stream') return refuse(reply, 422, 'sendInitialEvents: Forbidden')
    return verb === 'page' && query.has('continue') && refuse(reply, 410, 'The provided continue parameter is too old')
  })
  t.equal(times('page'), 2)
  t.ok(times('get') > 0 && times('get') < count, `${times('get')} reads`)
})
