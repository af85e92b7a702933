/** The record of a publication, by the present content and the request. */
import t from 'tap'
import { goneFrom, newBody } from '../../../src/durable/publish/new-record.js'
import type { History, Pin, Relocation } from '../../../src/durable/types.js'
import { objectOf } from '../history-scene.js'
import { parent, target, within } from '../judge-rows.js'
import { drifted, found, treeOf, valueOf } from '../judgements.js'

const now = 1000
const place = { within, parent, target }
const history: History = { keep: 1, maxAge: null, generations: [] }

type Asked = Partial<Parameters<typeof newBody>[0]>

/** As its line says it: without what is undefined. */
const bodyOf = (asked: Asked): ReturnType<typeof newBody> => {
  const body = newBody({
    name: 'certs',
    kind: 'exchange',
    boot: 'b',
    now,
    found: undefined,
    desired: treeOf('a'),
    options: {},
    place,
    staging: undefined,
    attributes: null,
    retired: [],
    history: undefined,
    ...asked,
  })
  return Object.fromEntries(Object.entries(body).filter(([, said]) => said !== undefined)) as unknown as typeof body
}

void t.test('a first record names its content, and no field that the request lacks', async (t) => {
  const first = {
    name: 'certs',
    kind: 'exchange',
    boot: 'b',
    before: null,
    after: 'a',
    owned: false,
    publishedAt: now,
    objects: [],
    hooks: [],
    entries: [],
    attributes: null,
    place,
  }
  t.strictSame(bodyOf({}), first)
  t.strictSame(bodyOf({ options: { attributes: 'set', movedFrom: null, movedTo: null } }), first)
})

void t.test('a record says all that was asked for, and carries on what a later version has said', async (t) => {
  const staging = { name: 's', staged: '1', old: '2' }
  const retired = [{ name: 'r', inode: '3', until: 2000, entries: [] }]
  const objects = [objectOf('web')]
  const options = { objects, hooks: ['reload'], publisher: 'agent', attributes: 'keep' } as const
  const was = found({ unknown: { later: 'said' } })
  const said = bodyOf({
    found: was,
    desired: treeOf('c'),
    options: { ...options, hooks: ['reload'] },
    staging,
    retired,
  })
  t.match(said, { later: 'said', before: 'a', after: 'c', owned: true, objects, hooks: ['reload'], staging, retired })
  t.match(said, { publisher: 'agent', keepsAttributes: true })
  t.equal(bodyOf({ found: found({}, { recorded: false }) }).owned, false, "what was there was somebody else's")
})

void t.test('a hold in force stays where the request keeps it, and not where it is to be released', async (t) => {
  const hold = { reason: 'INC-7', since: 1, until: null }
  const holdAfter = (options: NonNullable<Asked['options']>, until: number | null = null) =>
    bodyOf({ found: found({ hold: { ...hold, until } }), options }).hold
  t.same(holdAfter({ held: 'keep' }), hold)
  t.equal(holdAfter({ held: 'release' }), undefined)
  t.equal(holdAfter({ held: 'keep' }, now - 1), undefined, 'it has ended by itself')
  t.equal(holdAfter({}), undefined)
  t.equal(holdAfter({ held: 'refuse' }), undefined)
})

void t.test('where earlier contents stay, a record says why this one was published', async (t) => {
  const why = (asked: Asked) => valueOf(() => bodyOf({ history, ...asked }).why)
  const pin = { reason: '', until: 'released' } as const
  t.equal(why({}), undefined, 'a first one')
  t.equal(why({ found: found({ why: 'adopted' }), desired: treeOf('c') }), undefined, 'a new one')
  t.equal(why({ found: found({ why: 'adopted' }) }), 'adopted', 'one that is only published again')
  t.notOk('why' in bodyOf({ history, found: found() }), 'nothing, where nothing was said')
  t.equal(why({ found: found(), desired: treeOf('c'), options: { pin } }), 'rolledBack')
  t.equal(why({ found: drifted() }), 'driftRepaired')
  t.equal(bodyOf({ found: drifted() }).why, undefined, 'nobody asks where none stay')
  t.equal(why({ found: drifted(), desired: treeOf('c') }), undefined, 'a new one takes the place of what drifted')
  t.equal(why({ found: drifted({ committed: false }) }), undefined, 'it may never have been there')
  t.equal(why({ found: drifted({ removing: { since: 0 } }) }), undefined, 'it was being removed')
  t.equal(why({ found: found({}, { tree: treeOf('older') }) }), undefined, 'what is there is known, and another one')
})

void t.test('a pin keeps what the first rollback went back from, and goes with new content', async (t) => {
  const objects = [objectOf('new')]
  const pin = { reason: 'INC-9', until: 'released' } as const
  const earlier: Pin = { reason: 'INC-1', until: 5000, since: 1, from: [objectOf('first')], digest: 'first' }
  const pinOf = (asked: Asked) => bodyOf({ history, ...asked }).pin
  const asked = { ...pin, since: now, from: objects, digest: 'a' }
  t.strictSame(pinOf({ found: found({ objects }), desired: treeOf('c'), options: { pin } }), asked)
  t.strictSame(pinOf({ found: drifted({ objects }), desired: treeOf('c'), options: { pin } }), asked, 'beside drift')
  t.strictSame(pinOf({ options: { pin } }), { ...asked, from: [], digest: '' }, 'where nothing was')
  const pinned = found({ objects, pin: earlier })
  const again = { ...asked, from: earlier.from, digest: 'first' }
  t.strictSame(pinOf({ found: pinned, desired: treeOf('c'), options: { pin } }), again)
  const late = found({ objects, pin: { ...earlier, until: now } })
  t.strictSame(pinOf({ found: late, desired: treeOf('c'), options: { pin } }), asked, 'one that is over counts no more')
  const supersedes = () => false
  t.strictSame(
    pinOf({ found: pinned, options: { supersedes } }),
    earlier,
    'the same content, by whoever publishes by himself',
  )
  t.equal(pinOf({ found: pinned }), undefined, 'the same content, by a call of its own')
  t.equal(pinOf({ found: pinned, desired: treeOf('c'), options: { supersedes } }), undefined, 'new content')
  t.equal(pinOf({ found: late, options: { supersedes } }), undefined)
})

void t.test(
  'a rollback goes back from the objects of a pin, of the content, or of the newest one with objects',
  async (t) => {
    const from = (asked: Parameters<typeof goneFrom>[0]): unknown => valueOf(() => goneFrom(asked, now))
    const generation = (name: string, objects: string[]) => ({
      name,
      sequence: 1,
      digest: name,
      publishedAt: 0,
      replacedAt: 0,
      why: 'published' as const,
      objects: objects.map(objectOf),
    })
    const past = {
      ...history,
      generations: [generation('2', []), generation('1', ['old']), generation('0', ['older'])],
    }
    const pin: Pin = { reason: '', until: 'newer', since: 1, from: [objectOf('first')], digest: 'first' }
    const objects = [objectOf('new')]
    t.strictSame(from({ objects, history: past, pin }), pin.from)
    t.strictSame(from({ objects, history: past, pin: { ...pin, until: now } }), objects)
    t.strictSame(from({ objects: [], history: past }), [objectOf('old')])
    t.strictSame(from({ objects: [] }), [])
    t.strictSame(from(undefined), [])
  },
)

void t.test('a relocation goes on from its recorded state; another one begins', async (t) => {
  const relocation: Relocation = { from: '/etc/old', as: 'removed', state: 'both', since: 1 }
  const movedTo = '/etc/new'
  const moves = (options: NonNullable<Asked['options']>, was = found({ relocation, movedTo })) => {
    const of = (field: 'relocation' | 'movedTo') => valueOf(() => bodyOf({ found: was, options })[field])
    return [of('relocation'), of('movedTo')]
  }
  t.strictSame(moves({}), [relocation, movedTo], 'nobody speaks of it')
  t.strictSame(moves({}, drifted({ relocation, movedTo })), [relocation, movedTo], 'beside drift')
  t.strictSame(moves({ movedFrom: '/etc/old', movedTo }), [relocation, movedTo])
  const begun = { from: '/etc/other', as: 'removed', state: 'staged', since: now }
  t.strictSame(moves({ movedFrom: '/etc/other', movedTo: '/etc/newer' }), [begun, '/etc/newer'])
  t.strictSame(moves({ movedFrom: '/etc/other' }, found()), [begun, undefined])
  t.strictSame(moves({ movedFrom: null, movedTo: null }), [undefined, undefined])
  t.strictSame(moves({}, found()), [undefined, undefined])
})
