import { join } from 'node:path'
import t from 'tap'
import { applyOutcome } from '../../src/agent/reconcile.js'
import type { ConditionState } from '../../src/agent/conditions.js'
import { DirectoryState, DirectoryStates } from '../../src/agent/directory-state.js'
import type { Content } from '../../src/config/types.js'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { selectionReference, type ObjectReference, type ObservedState } from '../../src/objects/types.js'
import { directoryOf, secret, whole } from '../directories/objects.js'
import { scratch } from '../durable/scratch.js'
import { published } from './outcome-scene.js'

const early = new Date('2026-01-01T00:00:00Z')
const late = new Date('2026-01-02T00:00:00Z')

await t.test('the transition time changes with the status alone', async (t) => {
  const state = new DirectoryState(directoryOf([]))
  const judge = (condition: ConditionState, now: Date) => {
    state.happened({ kind: 'judged', type: 'Published', condition }, now)
    return state.facts.published
  }
  const first = judge({ status: 'False', reason: 'NoSpace', message: 'a' }, early)
  t.match(first, { type: 'Published', lastTransitionTime: early.toISOString() })
  t.equal(judge({ status: 'False', reason: 'NoSpace', message: 'a' }, late), first, 'nothing to write')
  const other = judge({ status: 'False', reason: 'Busy', message: 'b' }, late)
  t.match(other, { reason: 'Busy', message: 'b', lastTransitionTime: early.toISOString() })
  const now = judge({ status: 'True', reason: 'Published', message: '' }, late)
  t.equal(now?.lastTransitionTime, late.toISOString())
})

await t.test('a clock that goes back breaks nothing', async (t) => {
  const state = new DirectoryState(directoryOf([]))
  state.happened(
    { kind: 'judged', type: 'Fresh', condition: { status: 'True', reason: 'Published', message: '' } },
    late,
  )
  state.happened(
    { kind: 'judged', type: 'Fresh', condition: { status: 'False', reason: 'AccessDenied', message: '' } },
    new Date(0),
  )
  t.equal(state.facts.fresh?.lastTransitionTime, '1970-01-01T00:00:00.000Z')
})

await t.test('what an earlier run has left goes on: its transition times, and when it was confirmed', async (t) => {
  const state = new DirectoryState(directoryOf([]))
  const published = { type: 'Published', status: 'True', reason: 'Published', message: '' } as const
  const conditions = [{ ...published, lastTransitionTime: early.toISOString() }]
  state.happened({ kind: 'restored', status: { conditions, confirmedAt: early.toISOString() } })
  state.happened(
    { kind: 'judged', type: 'Published', condition: { status: 'True', reason: 'Published', message: 'again' } },
    late,
  )
  t.equal(state.facts.published?.lastTransitionTime, early.toISOString())
  t.equal(state.facts.fresh, undefined)
  t.strictSame(state.facts.confirmedAt, early)
  state.happened({ kind: 'restored', status: { conditions: [], confirmedAt: 'no date' } })
  t.equal(state.facts.confirmedAt, undefined)
})

await t.test(
  'a comparison dates no publication of this process anew, and one of another process by its record',
  async (t) => {
    const path = join(scratch(t), 'certs')
    const state = new DirectoryState(directoryOf([], { path }))
    const { digest, sequence } = await replaceDirectory(path, { files: { a: '1' } })
    await applyOutcome(state, { ...published, change: 'created', digest, sequence, objects: [] }, silent)
    const dated = state.facts.record?.publishedAt
    const first = await readPublication(path)
    t.notSame(first?.publishedAt, dated)
    state.happened({ kind: 'compared', publication: first })
    t.equal(state.facts.record?.publishedAt, dated)
    await replaceDirectory(path, { files: { a: '2' } })
    const other = await readPublication(path)
    state.happened({ kind: 'compared', publication: other })
    t.strictSame(state.facts.record?.publishedAt, other?.publishedAt)
    state.happened({ kind: 'compared', publication: undefined })
    t.match(state.facts, { record: undefined, unread: undefined })
  },
)

await t.test('who needs an object is found by its name, without a look at each directory', async (t) => {
  const states = new DirectoryStates()
  let looks = 0
  const counted = (names: string[], path: string) =>
    new Proxy(
      directoryOf(
        names.map((name) => whole(secret(name))),
        { path },
      ),
      {
        get(target, field) {
          if (field === 'contents') looks += 1
          return Reflect.get(target, field) as unknown
        },
      },
    )
  const needing = (name: string) => states.needing(secret(name), () => undefined).map(({ path }) => path)
  states.add(counted(['a'], '/srv/a'))
  states.add(counted(['b', 'both'], '/srv/b'))
  const state = states.add(counted(['c', 'both'], '/srv/c'))
  t.strictSame(needing('a'), ['/srv/a'])
  looks = 0
  t.strictSame(needing('both'), ['/srv/b', '/srv/c'])
  t.strictSame(needing('c'), ['/srv/c'])
  t.strictSame(needing('none'), [])
  t.equal(looks, 0)
  state.happened({ kind: 'configured', configuration: counted(['d'], '/srv/c') })
  t.strictSame([needing('c'), needing('d'), needing('both')], [[], ['/srv/c'], ['/srv/b']])
  state.happened({
    kind: 'configured',
    configuration: { ...directoryOf([whole(secret('d'))], { path: '/srv/c' }), follows: '/srv/d' },
  })
  t.strictSame(needing('d'), [], 'what follows another path gets its content from there')
  states.remove('/srv/b')
  t.strictSame(needing('both'), [])
})

await t.test('a directory with a selector needs its present matches, and the objects that it names', async (t) => {
  const states = new DirectoryStates()
  const reference = selectionReference('Secret', 'ns', 'app=web')
  const content = { ...whole(secret('named')), type: 'selector', reference, into: '{name}' } as unknown as Content
  states.add(directoryOf([content, whole(secret('named'))], { path: '/srv/a' }))
  let names: string[] = []
  const latest = ({ selector }: ObjectReference): ObservedState | undefined =>
    selector === undefined ? undefined : { state: 'selected', names }
  const needing = (one: ObjectReference) => states.needing(one, latest).map(({ path }) => path)
  t.strictSame([needing(reference), needing(secret('named')), needing(secret('x'))], [['/srv/a'], ['/srv/a'], []])
  names = ['named', 'x']
  t.strictSame([needing(secret('named')), needing(secret('x'))], [['/srv/a'], ['/srv/a']])
  names = []
  t.strictSame(needing(secret('x')), [])
})
