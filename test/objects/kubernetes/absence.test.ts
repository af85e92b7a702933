/** Absence needs the API server's own proof, and a version that is no number is a version all the same. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { selectionReference } from '../../../src/objects/types.js'
import { json, startServer, type Reply } from '../../kubernetes/connection/api-server.js'
import { connectTo, serving } from '../../kubernetes/connection/connected.js'
import { contentOf, Recorder, reference } from '../recorder.js'
import { shortTiming, startWatching } from './watching.js'

const cert = reference('serving-cert')

const notFound = (reply: Reply, details?: object): true => {
  json(reply, 404, { kind: 'Status', code: 404, reason: 'NotFound', ...(details && { details }) })
  return true
}

const unproven: Readonly<Record<string, { list: object; details?: object }>> = {
  'an empty list without a resourceVersion': { list: { items: null }, details: { name: 'serving-cert' } },
  // Older than the known version, so that only a GET decides.
  'a 404 without details': { list: { metadata: { resourceVersion: '900' }, items: [] } },
  'a 404 about another object': {
    list: { metadata: { resourceVersion: '900' }, items: [] },
    details: { name: 'another' },
  },
}

for (const [what, { list, details }] of Object.entries(unproven)) {
  await t.test(`${what} removes nothing`, async (t) => {
    const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
      c.streaming = 'refused'
      c.put('serving-cert', 'one')
    })
    source.follow([{ reference: cert }])
    await recorder.until('watched', () => contentOf(source.latest(cert)) === 'one' && cluster.watching === 1)
    cluster.intercept = ({ verb }, reply) => {
      if (verb === 'watch') return false
      if (verb === 'get') return notFound(reply, details)
      json(reply, 200, list)
      return true
    }
    cluster.cut()
    await recorder.until('several tries', () => cluster.requests.filter(({ verb }) => verb === 'list').length >= 4)
    t.strictSame(
      recorder.reported.map(({ observation }) => observation.state),
      ['present'],
    )
    t.ok(recorder.restarts.includes('protocol'), recorder.restarts.join())
    cluster.intercept = () => false
    cluster.delete('serving-cert')
    await recorder.untilState(cert, 'absent')
  })
}

await t.test('a page without a resourceVersion says nothing of what a selector matches', async (t) => {
  let proxied = false
  let lists = 0
  const streams: ServerResponse[] = []
  const object = {
    metadata: { name: 'one', namespace: 'kube-system', uid: 'u', resourceVersion: '10', labels: { app: 'web' } },
  }
  const server = await startServer({
    serving,
    handler: ({ path }, reply) => {
      const { pathname, searchParams: query } = new URL(path, 'https://server')
      if (query.has('watch')) {
        const stream = reply as ServerResponse
        stream.writeHead(200, { 'content-type': 'application/json' })
        stream.flushHeaders()
        streams.push(stream)
      } else if (pathname.endsWith('/one')) {
        if (proxied) notFound(reply)
        else json(reply, 200, object)
      } else if (proxied) {
        lists++
        json(reply, 200, { items: null })
      } else json(reply, 200, { metadata: { resourceVersion: '50' }, items: [object] })
    },
  })
  t.teardown(() => server.close())
  const recorder = new Recorder()
  const source = new KubernetesSource(await connectTo(t, server.url), recorder, {
    timing: shortTiming,
    watch: 'namespaces',
  })
  t.teardown(() => source.close())
  const selection = selectionReference('Secret', 'kube-system', 'app=web')
  source.follow([{ reference: selection }, { reference: reference('one') }])
  await recorder.until('the watch', () => streams.length === 1)
  t.match(recorder.last(selection)?.observation, { state: 'selected', names: ['one'] })
  proxied = true
  server.cut()
  await recorder.until('several lists', () => lists >= 3)
  t.match(recorder.last(selection)?.observation, { state: 'selected', names: ['one'] })
  t.equal(recorder.last(reference('one'))?.observation.state, 'present')
})

await t.test('each change counts where versions are no numbers', async (t) => {
  // Of one second: whenever the server ends such a watch, its time is over.
  const { cluster, recorder, source } = await startWatching(t, { watchSeconds: [1, 1] }, (c) => {
    c.obeysTimeouts = false
    c.put('serving-cert', 'zero')
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'zero')
  for (const content of ['one', 'two', 'three']) {
    cluster.put('serving-cert', content, { resourceVersion: `opaque-${content}` })
    await recorder.untilState(cert, 'present', content)
  }
  t.notOk(recorder.reported.some(({ rewound }) => rewound))
  cluster.endWatches('serving-cert')
  await recorder.until('resumed', () => cluster.requests.filter(({ verb }) => verb === 'watch').length === 2)
  t.equal(cluster.requests.at(-1)?.query.get('resourceVersion'), 'opaque-three', 'resumed after the last of them')
})
