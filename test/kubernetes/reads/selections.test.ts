/** A collection's reports of selections: the matching names, and of the objects only those. */
import t, { type Test } from 'tap'
import { silent } from '../../../src/log.js'
import { CollectionSubject } from '../../../src/objects/kubernetes/collection-subject.js'
import { observeObject } from '../../../src/kubernetes/reads/observed-version.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { StreamingLists } from '../../../src/objects/kubernetes/streaming-lists.js'
import { defaultTiming } from '../../../src/objects/kubernetes/timing.js'
import { StoredObject } from '../../../src/objects/stored-object.js'
import { selectionReference, type ObjectReference, type ObservedState } from '../../../src/objects/types.js'
import { Recorder, reference } from '../../objects/recorder.js'
import { beginWatch, json, refuse, startServer, type Reply } from '../connection/api-server.js'
import { connectTo, serving } from '../connection/connected.js'

const web = { app: 'web' }
const selection = selectionReference('Secret', 'kube-system', 'app=web')

const object = (name: string, version: number, labels?: object) => ({
  metadata: { name, namespace: 'kube-system', uid: `uid-${name}`, resourceVersion: String(version), labels },
  data: { a: Buffer.from(String(version)).toString('base64') },
})

/** Follows what a selection matches as it is reported, as a source does. */
class Follower extends Recorder {
  readonly followed = new Map<string, StoredObject>()
  readonly #matching = new Map<string, readonly string[]>()
  subject: CollectionSubject | undefined

  follow(reference: ObjectReference): StoredObject {
    const stored = new StoredObject(reference, this)
    this.followed.set(reference.name, stored)
    return stored
  }

  override observed(reference: ObjectReference, state: ObservedState, details: { rewound: boolean }): void {
    super.observed(reference, state, details)
    if (state.state !== 'selected') return
    this.#matching.set(reference.name, state.names)
    const matching = new Set([...this.#matching.values()].flat())
    for (const [name, stored] of this.followed) {
      if (stored.reference.selector !== undefined || matching.has(name)) continue
      stored.forget()
      this.followed.delete(name)
    }
    for (const name of matching) {
      if (this.followed.has(name)) continue
      const stored = this.follow({ kind: 'Secret', namespace: 'kube-system', name })
      if (this.subject?.takes(stored) !== true) throw new Error(`${name}: nobody reads it`)
    }
  }

  get names(): readonly string[] | undefined {
    const last = this.last(selection)?.observation
    return last?.state === 'selected' ? last.names : undefined
  }
}

/** A server that lists `items`, and answers to GET by name as `get` says. */
async function scene(
  t: Test,
  items: readonly object[],
  get: (name: string, reply: Reply) => void,
  published: readonly ObjectReference[] = [],
) {
  const asked: string[] = []
  const server = await startServer({
    serving,
    handler: ({ path }, reply) => {
      const { pathname, searchParams } = new URL(path, 'https://server')
      const name = pathname.split('/').at(-1) ?? ''
      asked.push(name)
      const metadata = { resourceVersion: '50' }
      // By name there is nothing that a GET has not found.
      if (searchParams.has('fieldSelector')) json(reply, 200, { kind: 'List', metadata, items: [] })
      else if (name === 'secrets') json(reply, 200, { kind: 'List', metadata, items })
      else get(name, reply)
    },
  })
  t.teardown(() => server.close())
  const follower = new Follower()
  follower.follow(selection)
  for (const one of published) follower.follow(one)
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  const timing = { ...defaultTiming, denialGrace: 0 }
  const streamingLists = new StreamingLists(silent, 0)
  const context = { client: await connectTo(t, server.url), log: silent, random: Math.random, timing, streamingLists }
  follower.subject = new CollectionSubject(selection, follower.followed, context)
  const ask = () => ({ signal: abort.signal, timeout: 60_000 })
  return { follower, subject: follower.subject, ask, asked }
}

await t.test('a list tells which names match, and the subject reads only these', async (t) => {
  const items = [object('b', 10, web), object('other', 11, { app: 'db' }), object('a', 12, web), object('bare', 13)]
  const { follower, subject, ask, asked } = await scene(t, items, (name, reply) =>
    json(reply, 200, object(name, 14, web)),
  )
  t.equal(await subject.list(ask), '50')
  t.strictSame(follower.names, ['a', 'b'])
  t.strictSame([...asked].sort(), ['a', 'b', 'secrets'])
  t.match(follower.last(reference('a')), { observation: { state: 'present' } })
  t.ok(follower.heartbeats.includes('Secret kube-system/(app=web)'))
  t.equal(subject.takes(new StoredObject(reference('late'), follower)), false, 'what no selection has just reported')
})

await t.test('an event changes the matches before the subject reads the object', async (t) => {
  let newest = 12
  const { follower, subject, ask, asked } = await scene(
    t,
    [object('a', 10, web), object('b', 11, web)],
    (name, reply) => json(reply, 200, object(name, newest, web)),
  )
  await subject.list(ask)
  const events = subject.events(ask)
  asked.length = 0
  await events.take('MODIFIED', object('a', 30))
  t.strictSame(follower.names, ['b'])
  await events.take('MODIFIED', object('other', 31))
  await events.take('DELETED', object('b', 32, web))
  t.strictSame(follower.names, [])
  t.strictSame(asked, [], 'what has left, or never came, is not read')
  t.notOk(follower.reported.some(({ observation }) => observation.state === 'absent'))
  newest = 40
  await events.take('MODIFIED', object('a', 33, web))
  await events.take('ADDED', object('c', 34, web))
  t.strictSame(follower.names, ['a', 'c'])
  await follower.until('they are read', () => asked.length === 2)
  t.strictSame(asked, ['a', 'c'])
  const reports = follower.reported.length
  await events.take('MODIFIED', object('other', 41, { app: 'db' }))
  t.equal(follower.reported.length, reports)
})

await t.test('a fresh read settles a list or an event that is older than the known version', async (t) => {
  const published = [reference('a'), reference('b'), reference('c')]
  // A read by name answers with the newest version.
  const { follower, subject, ask } = await scene(
    t,
    [object('a', 40), object('b', 41, web)],
    (name, reply) => {
      if (name === 'c') json(reply, 404, { kind: 'Status', reason: 'NotFound', details: { name } })
      else json(reply, 200, object(name, 100, name === 'a' ? web : undefined))
    },
    published,
  )
  for (const stored of follower.followed.values()) stored.published({ uid: '', resourceVersion: '100' })
  await subject.list(ask)
  t.strictSame(follower.names, ['a'], 'a has its label again, b has lost it, c is gone')
  t.match(follower.last(reference('c')), { observation: { state: 'absent' }, rewound: true })
  t.match(follower.last(reference('a')), { observation: { state: 'present' }, rewound: false })

  await subject.events(ask).take('MODIFIED', object('a', 90))
  await follower.until('it is read', () => follower.followed.get('a')?.isBehind === false)
  t.strictSame(follower.names, ['a'])
})

await t.test('an object that exists by name, but is refused, keeps the collection unknown', async (t) => {
  const { follower, subject, ask } = await scene(t, [], (_, reply) => refuse(reply, 403, 'forbidden'), [reference('a')])
  follower.followed.get('a')?.offer(observeObject(reference('a'), object('a', 100)))
  await t.rejects(subject.list(ask), { message: /HTTP 403/ })
  t.equal(follower.names, undefined)
})

await t.test(
  'an object that a read by name finds without its label is not reported, after a list or an event',
  async (t) => {
    let newest = object('a', 14)
    const items = [object('a', 10, web)]
    const { follower, subject, ask } = await scene(t, items, (_, reply) => json(reply, 200, newest))
    const versions = () =>
      follower.reported.map(({ observation }) => observation.state === 'present' && observation.object.resourceVersion)
    await subject.list(ask)
    t.strictSame(follower.names, [], 'it was listed with its label')
    const events = subject.events(ask)
    const take = async (event: object): Promise<void> => {
      await events.take('MODIFIED', event)
      await follower.until('it is read', () => [...follower.followed.values()].every(({ isBehind }) => !isBehind))
    }
    newest = object('a', 20, web)
    await take(newest)
    t.strictSame(follower.names, ['a'])
    newest = object('a', 31)
    await take(object('a', 30, web))
    t.strictSame(follower.names, [], 'the event had its label')
    await take(object('a', 25, web))
    t.strictSame(follower.names, [], 'an event that comes once more')

    newest = object('a', 60, web)
    await take(newest)
    newest = object('a', 61)
    items[0] = object('a', 40, web)
    await subject.list(ask)
    t.strictSame(follower.names, [], 'a list that lags')
    t.strictSame(versions().filter(Boolean), ['20', '60'])
  },
)

await t.test('an object that a read by name finds under another selector is read for that one', async (t) => {
  const db = { app: 'db' }
  const other = selectionReference('Secret', 'kube-system', 'app=db')
  const { follower, subject, ask } = await scene(
    t,
    [object('a', 10, web)],
    (_, reply) => json(reply, 200, object('a', 14, db)),
    [other],
  )
  await subject.list(ask)
  t.match(follower.last(other), { observation: { state: 'selected', names: ['a'] } })
  t.strictSame(follower.names, [])
  t.match(follower.last(reference('a')), { observation: { state: 'present', object: { resourceVersion: '14' } } })
})

await t.test('a second read of dropped content brings no object back that has lost its label', async (t) => {
  let labels: object | undefined = web
  let version = 10
  const server = await startServer({
    serving,
    handler: ({ path }, reply) => {
      const { pathname, searchParams } = new URL(path, 'https://server')
      const now = object('a', version, labels)
      if (searchParams.has('watch')) beginWatch(reply)
      else if (pathname.endsWith('/a')) json(reply, 200, now)
      else json(reply, 200, { kind: 'List', metadata: { resourceVersion: '50' }, items: [now] })
    },
  })
  t.teardown(() => server.close())
  class Following extends Recorder {
    override observed(reference: ObjectReference, state: ObservedState, details: { rewound: boolean }): void {
      super.observed(reference, state, details)
      if (state.state !== 'selected') return
      source.follow([selection, ...state.names.map((name) => ({ ...a, name }))].map((one) => ({ reference: one })))
    }
  }
  const a = reference('a')
  const recorder = new Following()
  const client = await connectTo(t, server.url)
  // No content stays in memory.
  const source = new KubernetesSource(client, recorder, { watch: 'namespaces', contentBudget: 0 })
  t.teardown(() => source.close())
  source.follow([{ reference: selection }])
  await recorder.until('it is read', () => source.latest(a)?.state === 'unloaded')
  const { signal } = new AbortController()
  t.match(await source.load(a, signal), { state: 'present' })
  labels = undefined
  version = 60
  t.equal(await source.load(a, signal), undefined)
  t.strictSame(source.latest(selection), { state: 'selected', names: [] })
})

await t.test('an older version that a selector matches again is a rewound history', async (t) => {
  let version = 100
  const server = await startServer({
    serving,
    handler: ({ path }, reply) => {
      const { pathname, searchParams } = new URL(path, 'https://server')
      const now = object('a', version, web)
      if (searchParams.has('watch')) beginWatch(reply)
      else if (pathname.endsWith('/a')) json(reply, 200, now)
      else json(reply, 200, { kind: 'List', metadata: { resourceVersion: `${version}` }, items: [now] })
    },
  })
  t.teardown(() => server.close())
  const a = reference('a')
  const recorder = new Recorder()
  const source = new KubernetesSource(await connectTo(t, server.url), recorder, { watch: 'namespaces' })
  t.teardown(() => source.close())
  for (const [newest, rewound] of [
    [100, false],
    [120, false],
    [50, true],
  ] as const) {
    version = newest
    source.follow([{ reference: selection }, { reference: a }])
    const state = () => recorder.last(a)?.observation
    await recorder.until('it is read', () => {
      const now = state()
      return now?.state === 'present' && now.object.resourceVersion === `${newest}`
    })
    t.match(recorder.last(a), { rewound }, `version ${newest}`)
    // It loses its label.
    source.follow([{ reference: selection }])
  }
})
