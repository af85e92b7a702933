/** What a pass knows of selections that change while it goes on, and which earlier contents stay meanwhile. */
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { objectName } from '../../src/message-text.js'
import { historyFor, PassObjects, renderFrom, isNewer } from '../../src/agent/desired-content.js'
import type { SelectedContent } from '../../src/config/types.js'
import type { Rendering } from '../../src/directories/types.js'
import {
  selectionReference,
  type LoadedState,
  type ObjectReference,
  type ObservedState,
} from '../../src/objects/types.js'
import { replaceDirectory } from '../../src/durable/index.js'
import { directoryOf, present, secret, whole } from '../directories/objects.js'
import { scratch } from '../durable/scratch.js'

/** What ends the pin of a directory that was rolled back. */

const away: ObservedState = { state: 'unknown', reason: 'SourceUnavailable', message: 'connection refused' }
const names = (...matching: string[]): ObservedState => ({ state: 'selected', names: matching })

function select(selector: string, more: Partial<SelectedContent> = {}): SelectedContent {
  const reference = selectionReference('Secret', 'ns', selector)
  return {
    type: 'selector',
    place: 'contents[0]',
    reference,
    into: '{name}',
    optional: false,
    items: undefined,
    ...more,
  }
}

/** Answers the states that the test sets, and reads every Secret. */
class Told {
  readonly states = new Map<string, ObservedState>()
  /** Called when a Secret is read. */
  reads: () => void = () => {}
  readonly latest = (reference: ObjectReference) => this.states.get(objectName(reference))

  say(reference: ObjectReference, state: ObservedState): void {
    this.states.set(objectName(reference), state)
  }

  load(reference: ObjectReference): Promise<LoadedState> {
    this.reads()
    return Promise.resolve(present(reference, { k: reference.name })[1])
  }
}

function shown(rendering: Rendering): unknown {
  return rendering.ready ? Object.keys(rendering.files) : rendering.findings.map(({ message }) => message)
}

const unanswered = ['Secret ns/(app): connection refused']

await t.test('a selection that turns unknown during a pass may match any object', async (t) => {
  for (const optional of [true, false]) {
    const content = select('app', { optional })
    const [first, second] = [directoryOf([content], { path: '/a' }), directoryOf([content], { path: '/b' })]
    const source = new Told()
    const objects = new PassObjects(source, new AbortController().signal)
    source.say(content.reference, names('a'))
    t.strictSame(shown(await renderFrom(first, objects)), ['a/k'])
    source.say(content.reference, away)
    t.strictSame(shown(await renderFrom(second, objects)), unanswered, 'another directory')
    t.strictSame(shown(await renderFrom(first, objects)), unanswered, 'the same once more')
    source.say(content.reference, names('a', 'b'))
    t.strictSame(shown(await renderFrom(second, objects)), ['a/k', 'b/k'])
  }
})

await t.test('a selection that becomes known after its expansion does not count as empty', async (t) => {
  const content = select('app', { optional: true })
  const directory = directoryOf([whole(secret('first')), content])
  const source = new Told()
  source.say(content.reference, away)
  source.reads = () => source.say(content.reference, names('a'))
  const objects = new PassObjects(source, new AbortController().signal)
  t.strictSame(shown(await renderFrom(directory, objects)), unanswered)
  t.strictSame(shown(await renderFrom(directory, objects)), ['k', 'a/k'])
})

await t.test('earlier contents stay while one of the selections of their kind and namespace is unknown', async (t) => {
  const [web, db, other] = [
    select('app=web'),
    select('app=db'),
    select('app=web', { reference: selectionReference('Secret', 'other', 'app=web') }),
  ]
  const directory = directoryOf([web, db, other])
  const source = new Told()
  source.say(web.reference, names('a'))
  source.say(other.reference, names('c'))
  const made = { ...secret('z'), uid: 'u', resourceVersion: '1', paths: [] }
  const staying = () => {
    const { mayStay } = historyFor(directory, source.latest)
    const named = ['ns/a', 'ns/b', 'ns/z', 'other/c', 'other/z', 'third/z'].filter((one) => {
      const [namespace = '', name = ''] = one.split('/')
      return mayStay?.({ ...made, namespace, name })
    })
    t.ok(mayStay?.({ ...made, kind: 'ConfigMap' }), 'of another kind')
    return named.join(' ')
  }
  t.equal(staying(), 'ns/a ns/b ns/z other/c third/z', 'not reported yet')
  source.say(db.reference, away)
  t.equal(staying(), 'ns/a ns/b ns/z other/c third/z')
  source.say(db.reference, names('b'))
  t.equal(staying(), 'ns/a ns/b other/c third/z')
})

await t.test(
  'earlier contents go with their objects, and with the end of an object whose name another one has',
  (t) => {
    const source = new Told()
    const reference = secret('a')
    const directory = directoryOf([whole(reference)])
    const made = { ...reference, uid: 'u', resourceVersion: '1', paths: [] }
    const stays = (more: object = {}) => historyFor(directory, source.latest).mayStay?.({ ...made, ...more })
    t.ok(stays(), 'not reported yet')
    source.say(reference, away)
    t.ok(stays())
    source.say(reference, { state: 'absent' })
    t.notOk(stays())
    for (const more of [{ kind: 'ConfigMap' }, { namespace: 'other' }, { name: 'b' }]) t.ok(stays(more), 'another one')
    const there = (uid: string) => source.say(...present(reference, {}, { uid }))
    there('u')
    t.ok(stays())
    t.notOk(stays({ others: ['another'] }), 'one of its files is of another one')
    t.ok(stays({ uid: '', others: [''] }), 'no uid tells nothing')
    there('another')
    t.notOk(stays(), 'another object has its name')
    there('')
    t.ok(stays(), 'nor on the other side')
    t.end()
  },
)

await t.test(
  'a directory beyond its limits is invalid, and no object is read after the one that passes them',
  async (t) => {
    const contents = ['a', 'b', 'c'].map((name) => whole(secret(name), { into: name }))
    const limits = (more: object) => directoryOf(contents, { limits: { ...directoryOf([]).limits, ...more } })
    const rendered = async (directory: ReturnType<typeof limits>, ...keys: number[]) => {
      const read: string[] = []
      const load = (reference: ObjectReference) => {
        read.push(reference.name)
        const count = keys[read.length - 1] ?? 0
        const data = Object.fromEntries(Array.from({ length: count }, (_, key) => [`k${key}`, '']))
        return Promise.resolve(present(reference, data)[1])
      }
      const objects = new PassObjects({ latest: () => undefined, load }, new AbortController().signal)
      const rendering = await renderFrom(directory, objects)
      return [
        rendering.ready || rendering.findings.map(({ reason, message }) => `${reason}: ${message}`),
        read.join(''),
      ]
    }
    const full = 'with it, the directory would hold more than 6 files, its limits.files'
    const wide = 'it has 5 keys; limits.keys of the directory is 4'
    const large = 'with it, the objects of the directory take more than limits.bytes, 1024 bytes'
    t.strictSame(await rendered(limits({ files: 6 }), 2, 2, 2), [true, 'abc'])
    t.strictSame(await rendered(limits({ files: 6 }), 2, 5, 2), [[`ObjectInvalid: Secret ns/b: ${full}`], 'abc'])
    t.strictSame(await rendered(limits({ keys: 4 }), 4, 5, 1), [[`ObjectInvalid: Secret ns/b: ${wide}`], 'abc'])
    t.strictSame(await rendered(limits({ bytes: 1024 }), 2, 2, 2), [[`ObjectInvalid: Secret ns/b: ${large}`], 'ab'])
    t.strictSame(await rendered(limits({ bytes: 1024 }), 1, 1, 1), [true, 'abc'])
  },
)

await t.test('what an object that is gone has published stays, whatever its files are called', async (t) => {
  const target = join(scratch(t), 'certs')
  const content = { ['__proto__']: 'p', constructor: 'c', k: '1' }
  const files = Object.fromEntries(Object.entries(content))
  const object = { ...secret('a'), uid: 'u', resourceVersion: '7', paths: Object.keys(files) }
  await replaceDirectory(target, { files, objects: [object] })
  const directory = directoryOf([whole(secret('a'), { optional: true })], { path: target })
  const load = (): Promise<LoadedState> => Promise.resolve({ state: 'absent' })
  const kept = async (): Promise<unknown> =>
    shown(await renderFrom(directory, new PassObjects({ latest: () => undefined, load }, new AbortController().signal)))
  t.strictSame(await kept(), ['__proto__', 'constructor', 'k'])
  // One that cannot be read must not take the others with it.
  rmSync(join(target, 'constructor'))
  symlinkSync('k', join(target, 'constructor'))
  t.strictSame(await kept(), ['__proto__', 'k'])
})

const object = (resourceVersion: string, { uid = 'u', name = 'web' } = {}) => ({
  kind: 'Secret',
  namespace: 'demo',
  name,
  uid,
  resourceVersion,
  paths: [],
})
const pin = { reason: '', since: 0, until: 'newer', digest: 'sha256:' } as const
const from = (...objects: ReturnType<typeof object>[]) => ({ ...pin, from: objects })
const nothing = () => undefined

await t.test('a newer version, another object by its name, none, or one more', async (t) => {
  t.equal(isNewer([object('10')], from(object('10')), nothing), false, 'the same')
  t.equal(isNewer([object('9')], from(object('10')), nothing), false, 'an older one, of a list that lags')
  t.equal(isNewer([object('11')], from(object('10')), nothing), true)
  t.equal(isNewer([object('9', { uid: 'v' })], from(object('10')), nothing), true)
  t.equal(isNewer([], from(object('10')), nothing), true)
  t.equal(isNewer([object('10'), object('1', { name: 'more' })], from(object('10')), nothing), true)
  t.equal(
    isNewer([object('10')], from(object('10')), () => ({ state: 'absent' })),
    true,
    'kept, though it is gone',
  )
})

await t.test('versions of files have no order: another one is newer', async (t) => {
  t.equal(isNewer([object('file:1')], from(object('file:1')), nothing), false)
  t.equal(isNewer([object('file:0')], from(object('file:1')), nothing), true)
})
