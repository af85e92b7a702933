/** The watch of a collection: versions that have expired, and objects that are deleted and made anew. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { Recorder, reference } from '../recorder.js'
import { json, refuse, startServer, type Reply } from '../../kubernetes/connection/api-server.js'
import { connectTo, serving } from '../../kubernetes/connection/connected.js'
import { Agent } from '../../../src/agent/agent.js'
import { isCurrent } from '../../../src/agent/directory-state.js'
import { noMetrics } from '../../../src/agent/report/report-metrics.js'
import { loadConfiguration } from '../../../src/config/parse.js'
import { silent } from '../../../src/log.js'
import type { SourceListener } from '../../../src/objects/types.js'
import { scratch } from '../../cli/holdfast.js'
import { until } from '../../until.js'
import { shortTiming } from './watching.js'

const one = reference('one')
const two = reference('two')

interface Item {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string }
}

const item = ({ name, namespace }: typeof one, version: number, uid = `uid-${name}`) => ({
  metadata: { name, namespace, uid, resourceVersion: String(version) },
  data: { a: Buffer.from(`${uid} ${version}`).toString('base64') },
})

/** Secrets by name, and what a request that is neither a watch nor a read by name is answered. */
async function watching(t: Test, secrets: Map<string, Item>, list: (query: URLSearchParams, reply: Reply) => void) {
  const streams: ServerResponse[] = []
  const asked = { lists: [] as URLSearchParams[], reads: [] as string[] }
  /** By name: answers a read in another way than with the Secret. */
  const answers = new Map<string, (reply: Reply) => void>()
  const server = await startServer({
    serving,
    handler: ({ path }, reply) => {
      const { pathname, searchParams: query } = new URL(path, 'https://server')
      const name = pathname.split('/').at(-1) ?? ''
      if (query.has('watch')) {
        const stream = reply as ServerResponse
        stream.writeHead(200, { 'content-type': 'application/json' })
        stream.flushHeaders()
        streams.push(stream)
      } else if (name === 'secrets') {
        asked.lists.push(query)
        list(query, reply)
      } else {
        asked.reads.push(name)
        const found = secrets.get(name)
        const answer = answers.get(name)
        if (answer) answer(reply)
        else if (found) json(reply, 200, { kind: 'Secret', ...found })
        else json(reply, 404, { kind: 'Status', code: 404, reason: 'NotFound', details: { name } })
      }
    },
  })
  t.teardown(() => server.close())
  const recorder = new Recorder()
  const client = await connectTo(t, server.url)
  const open = (listener: SourceListener) =>
    new KubernetesSource(client, listener, { timing: shortTiming, watch: 'namespaces' })
  const follow = (): void => {
    const source = open(recorder)
    t.teardown(() => source.close())
    source.follow([{ reference: one }, { reference: two }])
  }
  const send = (type: string, object: object): void => {
    streams.at(-1)?.write(`${JSON.stringify({ type, object })}\n`)
  }
  return { asked, answers, recorder, send, streams, open, follow }
}

const listOf = (items: Iterable<Item>, version: number, next?: string) => ({
  kind: 'List',
  metadata: { resourceVersion: String(version), ...(next !== undefined && { continue: next }) },
  items: [...items],
})

await t.test('a watch with an expired version lists anew at once, and reads only changed objects', async (t) => {
  const secrets = new Map([one, two].map((each) => [each.name, item(each, 10)]))
  const lists = [50, 90]
  const { asked, recorder, send, streams, follow } = await watching(t, secrets, (_, reply) => {
    json(reply, 200, listOf(secrets.values(), lists.shift() ?? 99))
  })
  follow()
  await recorder.until('the watch', () => streams.length === 1)
  t.match([recorder.last(one), recorder.last(two)], Array(2).fill({ observation: { state: 'present' } }))
  secrets.delete('two')
  send('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 50 (80)' })
  await recorder.untilState(two, 'absent')
  await recorder.until('the next watch', () => streams.length === 2)
  t.strictSame(recorder.restarts, ['expired'])
  t.equal(asked.lists.length, 2)
  t.strictSame(asked.reads.sort(), ['one', 'two'], 'what has not changed is not read again')
  t.equal(recorder.reported.length, 3, 'nothing else is reported')
})

await t.test('a list that expires between two pages says nothing of the objects that it has not shown', async (t) => {
  const secrets = new Map([one, two].map((each) => [each.name, item(each, 10)]))
  let expired = 0
  const { asked, recorder, streams, follow } = await watching(t, secrets, (query, reply) => {
    if (!query.has('continue')) json(reply, 200, listOf([item(one, 10)], 50, 'next'))
    else if (expired++ === 0) refuse(reply, 410, 'The provided continue parameter is too old')
    else json(reply, 200, listOf([item(two, 10)], 50))
  })
  follow()
  await recorder.until('the watch', () => streams.length === 1)
  t.strictSame(
    asked.lists.map((query) => query.get('continue')),
    [null, 'next', null, 'next'],
    'it starts from the beginning',
  )
  t.strictSame(recorder.restarts, ['expired'])
  t.match([recorder.last(one), recorder.last(two)], Array(2).fill({ observation: { state: 'present' } }))
  t.notOk(recorder.reported.some(({ observation: { state } }) => state === 'absent'))
})

await t.test('an object that is deleted and made anew is another one, in either order of the events', async (t) => {
  const secrets = new Map([one, two].map((each) => [each.name, item(each, 10)]))
  const { recorder, send, streams, follow } = await watching(t, secrets, (_, reply) => {
    json(reply, 200, listOf(secrets.values(), 50))
  })
  follow()
  await recorder.until('the watch', () => streams.length === 1)
  const uidOf = (name: typeof one) => {
    const last = recorder.last(name)?.observation
    return last?.state === 'present' ? last.object.uid : last?.state
  }
  secrets.delete('one')
  send('DELETED', item(one, 60))
  await recorder.untilState(one, 'absent')
  secrets.set('one', item(one, 61, 'uid-anew'))
  send('ADDED', item(one, 61, 'uid-anew'))
  await recorder.untilState(one, 'present', 'uid-anew 61')

  // Both happen before the first event is heard: a read by name meets the new one.
  secrets.set('two', item(two, 71, 'uid-anew'))
  send('MODIFIED', item(two, 65))
  await recorder.untilState(two, 'present', 'uid-anew 71')
  send('DELETED', item(two, 70))
  send('ADDED', item(two, 71, 'uid-anew'))
  send('MODIFIED', item(one, 80, 'uid-anew'))
  secrets.set('one', item(one, 80, 'uid-anew'))
  await recorder.untilState(one, 'present', 'uid-anew 80')
  t.equal(uidOf(two), 'uid-anew')
  t.notOk(
    recorder.reported.some(({ object, observation }) => object.endsWith('two') && observation.state === 'absent'),
    'it was never away for whoever had read the new one',
  )
  t.notOk(recorder.reported.some(({ rewound }) => rewound))
  t.strictSame(recorder.restarts, [])
})

const bookmark = (version: number) => ({ kind: 'Secret', metadata: { resourceVersion: String(version) } })

await t.test('an object that cannot be read keeps neither the watch nor the others', async (t) => {
  const secrets = new Map([one, two].map((each) => [each.name, item(each, 10)]))
  const { answers, recorder, send, streams, follow } = await watching(t, secrets, (_, reply) => {
    json(reply, 200, listOf(secrets.values(), 50))
  })
  answers.set('one', (reply) => refuse(reply, 500, 'unable to transform key'))
  follow()
  await recorder.until('the watch', () => streams.length === 1)
  t.match(recorder.last(one)?.observation, { state: 'unknown', message: /HTTP 500/ })
  secrets.set('two', item(two, 60))
  send('MODIFIED', item(one, 59))
  send('MODIFIED', item(two, 60))
  await recorder.untilState(two, 'present', 'uid-two 60')
  answers.clear()
  await recorder.untilState(one, 'present', 'uid-one 10')
  t.strictSame(recorder.restarts, [])
})

await t.test('a directory is not fresh while a version that an event has told is not read yet', async (t) => {
  const secrets = new Map([one, two].map((each) => [each.name, item(each, 10)]))
  const { answers, send, streams, open } = await watching(t, secrets, (_, reply) => {
    json(reply, 200, listOf(secrets.values(), 50))
  })
  const root = scratch(t)
  const file = join(root, 'holdfast.yaml')
  const directories = [one, two].map(({ name }) => ({ path: name, contents: [{ secret: name }] }))
  const source = { namespace: one.namespace, kubernetes: { watch: 'namespaces' } }
  const document = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', stateDirectory: 'state' }
  writeFileSync(file, JSON.stringify({ ...document, source, directories }))
  const agent = new Agent(await loadConfiguration(file), {
    log: silent,
    metrics: noMetrics,
    openSource: (_, listener) => Promise.resolve(open(listener)),
    node: 'node',
    version: '1.2.3',
    identity: () => 'agent',
    moved: () => undefined,
    changed: () => undefined,
  })
  t.teardown(() => agent.stop())
  await agent.start()
  const facts = (name: string) => agent.states.byPath(join(root, name))?.facts
  const fresh = (name: string) => facts(name)?.fresh
  const current = (name: string) => isCurrent({ published: undefined, behind: undefined, ...facts(name) })
  await until('both are fresh', () => ['one', 'two'].every((name) => fresh(name)?.status === 'True'))
  const held: Reply[] = []
  answers.set('one', (reply) => void held.push(reply))
  for (const each of [one, two]) {
    secrets.set(each.name, item(each, 60))
    send('MODIFIED', item(each, 60))
  }
  send('BOOKMARK', bookmark(70))
  await until('one is not fresh', () => fresh('one')?.status === 'False')
  t.match(fresh('one'), { reason: 'NotConfirmed', message: /a newer version of Secret kube-system\/one, which is not/ })
  t.equal(current('one'), false)
  await until('two is published meanwhile', () => readFileSync(join(root, 'two', 'a'), 'utf8') === 'uid-two 60')
  await until('two is fresh', () => fresh('two')?.status === 'True' && current('two'))
  t.equal(streams.length, 1)
  const [reply] = held
  if (reply) json(reply, 200, { kind: 'Secret', ...secrets.get('one') })
  await until('one is fresh again', () => fresh('one')?.status === 'True' && current('one'))
  t.equal(readFileSync(join(root, 'one', 'a'), 'utf8'), 'uid-one 60')
})
