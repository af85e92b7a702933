/** A collection's reports of followed objects: their metadata, and reads by name that may fail or come late. */
import t, { type Test } from 'tap'
import { silent } from '../../../src/log.js'
import { CollectionSubject } from '../../../src/objects/kubernetes/collection-subject.js'
import { observeObject } from '../../../src/kubernetes/reads/observed-version.js'
import { StreamingLists } from '../../../src/objects/kubernetes/streaming-lists.js'
import { defaultTiming } from '../../../src/objects/kubernetes/timing.js'
import { ObjectEvents } from '../../../src/objects/kubernetes/watch-subject.js'
import { StoredObject } from '../../../src/objects/stored-object.js'
import { Recorder, reference } from '../recorder.js'
import { json, refuse, startServer, type Reply } from '../../kubernetes/connection/api-server.js'
import { connectTo, serving } from '../../kubernetes/connection/connected.js'

const one = reference('one')
const two = reference('two')

const object = ({ name, namespace }: typeof one, version: number, uid = `uid-${name}`) => ({
  metadata: { name, namespace, uid, resourceVersion: String(version) },
  data: { a: Buffer.from(`${uid} ${version}`).toString('base64') },
})

/** A server that lists `items`, and answers to GET by name as `get` says. */
async function scene(t: Test, items: readonly object[], get: (name: string, reply: Reply) => void) {
  const server = await startServer({
    serving,
    handler: ({ path }, reply) => {
      const name = new URL(path, 'https://server').pathname.split('/').at(-1) ?? ''
      if (name === 'secrets') json(reply, 200, { kind: 'List', metadata: { resourceVersion: '50' }, items })
      else get(name, reply)
    },
  })
  t.teardown(() => server.close())
  const recorder = new Recorder()
  const stored = new Map([one, two].map((each) => [each.name, new StoredObject(each, recorder)]))
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  const timing = { ...defaultTiming, denialGrace: 0 }
  const streamingLists = new StreamingLists(silent, 0)
  const context = { client: await connectTo(t, server.url), log: silent, random: Math.random, timing, streamingLists }
  const subject = new CollectionSubject(one, stored, context)
  const ask = () => ({ signal: abort.signal, timeout: 60_000 })
  const get1 = stored.get('one')
  if (get1 === undefined) throw new Error('unreachable')
  return { server, recorder, subject, ask, first: get1 }
}

const versionOf = ({ latest }: StoredObject) =>
  latest?.state === 'present' ? latest.object.resourceVersion : latest?.state

await t.test('a read that another one has overtaken is no rewound history', async (t) => {
  const answers = [object(one, 10), object(one, 11)]
  const { recorder, subject, ask, first } = await scene(t, [], (_, reply) => {
    const [answer = object(one, 11)] = answers.splice(0, 1)
    // Content that was loaded for a publication.
    if (answers.length === 1) first.offer(observeObject(one, object(one, 11)))
    json(reply, 200, answer)
  })
  first.offer(observeObject(one, object(one, 9)))
  await subject.events(ask).take('MODIFIED', object(one, 10))
  await recorder.until('it is read', () => !first.isBehind)
  t.equal(versionOf(first), '11')
  t.notOk(recorder.reported.some(({ rewound }) => rewound))

  const alone = new StoredObject(two, recorder)
  alone.offer(observeObject(two, object(two, 20)))
  const reads = [20, 21]
  const events = new ObjectEvents(alone, () => {
    const [version = 21] = reads.splice(0, 1)
    if (version === 20) alone.offer(observeObject(two, object(two, 21)))
    return Promise.resolve(observeObject(two, object(two, version)))
  })
  await events.take('MODIFIED', object(two, 10))
  t.equal(versionOf(alone), '21')
  t.notOk(recorder.reported.some(({ rewound }) => rewound))
})

await t.test('an unreadable object holds up no other, and the source retries it', async (t) => {
  let refused = true
  const { recorder, subject, ask } = await scene(t, [object(one, 10), object(two, 10)], (name, reply) => {
    if (refused && name === 'one') refuse(reply, 403, 'forbidden')
    else json(reply, 200, object(reference(name), 10))
  })
  t.equal(await subject.list(ask), '50')
  t.match(recorder.last(one)?.observation, { state: 'unknown', reason: 'AccessDenied' })
  t.match(recorder.last(two)?.observation, { state: 'present' })
  const events = subject.events(ask)
  await events.take('MODIFIED', object(one, 11))
  refused = false
  await recorder.untilState(one, 'present')
})

await t.test(
  'the source reads another object of the same version, and does not take it for the known one',
  async (t) => {
    const { recorder, subject, ask, first } = await scene(t, [object(one, 10, 'uid-new')], (name, reply) => {
      if (name === 'one') json(reply, 200, object(one, 10, 'uid-new'))
      else refuse(reply, 403, 'forbidden')
    })
    first.offer(observeObject(one, object(one, 10)))
    await subject.list(ask).catch(() => undefined)
    t.match(recorder.last(one), { rewound: true, observation: { object: { uid: 'uid-new' } } })
  },
)
