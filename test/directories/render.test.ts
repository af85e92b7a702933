import t from 'tap'
import { render } from '../../src/directories/render.js'
import type { KeptObject, Rendering } from '../../src/directories/types.js'
import type { Content, DirectoryConfiguration, SelectedContent } from '../../src/config/types.js'
import {
  selectionReference,
  type LoadedState,
  type ObjectReference,
  type SelectedState,
} from '../../src/objects/types.js'
import { absent, combine, configMap, directoryOf, keptOf, lookup, present, secret, unknown, whole } from './objects.js'

type Latest = readonly (readonly [ObjectReference, LoadedState | SelectedState])[]
type Kept = readonly (readonly [ObjectReference, KeptObject])[]

function rendered(
  contents: readonly Content[],
  latest: Latest,
  kept: Kept = [],
  more: Partial<DirectoryConfiguration> = {},
): Promise<Rendering> {
  return render(directoryOf(contents, more), lookup(latest), lookup(kept))
}

/** Files as text, or the findings as `reason: message`. */
function shown(rendering: Rendering): unknown {
  if (!rendering.ready) return rendering.findings.map(({ reason, message }) => `${reason}: ${message}`)
  return Object.fromEntries(
    Object.entries(rendering.files).map(([path, { content }]) => [path, Buffer.from(content).toString()]),
  )
}

function recordedBy(rendering: Rendering): unknown {
  return rendering.ready
    ? rendering.objects.map(({ name, resourceVersion, paths, combined }) => [name, resourceVersion, paths, combined])
    : rendering.findings
}

const a = secret('a')
const b = configMap('b')
const both = [present(a, { k: '1', l: '2' }), present(b, { m: '3' })]

await t.test('render writes every key, or items, with their modes', async (t) => {
  const rendering = await rendered(
    [whole(a, { into: 'x/y' }), whole(b, { items: [{ key: 'm', path: 'z/m.txt', mode: 0o644 }] })],
    both,
  )
  t.same(shown(rendering), { 'x/y/k': '1', 'x/y/l': '2', 'z/m.txt': '3' })
  t.ok(rendering.ready && rendering.files['z/m.txt']?.mode === 0o644)
  t.ok(rendering.ready && rendering.files['x/y/k']?.mode === undefined)
  t.same(recordedBy(rendering), [
    ['a', '7', ['x/y/k', 'x/y/l'], undefined],
    ['b', '7', ['z/m.txt'], undefined],
  ])
})

await t.test('render drops a selected object after its deletion, and keeps an unreadable one', async (t) => {
  const reference = selectionReference('Secret', 'ns', 'app=web')
  const selection: SelectedContent = {
    type: 'selector',
    place: 'contents[0]',
    reference,
    into: '{name}',
    optional: false,
    items: undefined,
  }
  const names = (...matching: string[]) => [reference, { state: 'selected', names: matching }] as const
  const member = whole(a, { into: 'a', selected: true })
  const kept = [keptOf(a, { 'a/k': '0' })]
  t.same(shown(await rendered([selection, member], [names('a'), present(a, { k: '1' })])), { 'a/k': '1' })
  const beside = whole(b, { into: 'b', selected: true })
  const two = [names('a', 'b'), absent(a), present(b, { k: '2' })]
  t.same(shown(await rendered([selection, member, beside], two, kept)), { 'b/k': '2' }, 'onMissing: keep or not')
  const leaving = present(a, { k: '1' }, { terminating: true })
  t.same(shown(await rendered([selection, member], [names('a'), leaving], kept)), { 'a/k': '0' })
  const denied = 'AccessDenied: Secret ns/a: 403 Forbidden'
  t.same(shown(await rendered([selection, member], [names('a'), unknown(a)], kept)), [denied])

  const none = 'no Secret in namespace ns matches app=web: create one, set its label, or make contents[0] optional'
  t.same(shown(await rendered([selection], [names()])), [`ObjectMissing: ${none}`])
  t.same(
    shown(await rendered([selection, member], [names('a'), absent(a)], kept)),
    [`ObjectMissing: ${none}`],
    'a late list',
  )
  t.same(
    shown(await rendered([selection, member], [names('a'), leaving])),
    [`ObjectMissing: ${none}`],
    'never published',
  )
  const moved = { ...member, into: 'x/a' }
  const gone =
    'ObjectMissing: Secret ns/a is being deleted, and nothing that is asked for in contents[0] is published of it: create it again'
  t.same(shown(await rendered([selection, moved], [names('a'), leaving], kept)), [gone], 'published elsewhere')
  const items = ['k', 'l'].map((key) => ({ key, path: key, mode: undefined }))
  t.same(
    shown(await rendered([selection, { ...member, items }], [names('a'), leaving], kept)),
    [gone],
    'one item of two',
  )
  const optional = { ...selection, optional: true }
  t.same(shown(await rendered([optional, { ...moved, optional: true }], [names('a'), leaving], kept)), {})
  t.same(shown(await rendered([optional], [names()])), {})
  t.same(shown(await rendered([optional, { ...member, optional: true }], [names('a'), leaving])), {})
  const away = [reference, { state: 'unknown', reason: 'AccessDenied', message: '403 Forbidden' }] as const
  t.same(shown(await rendered([optional], [away])), ['AccessDenied: Secret ns/(app=web): 403 Forbidden'])
  t.same(shown(await rendered([optional], [])), [
    'SourceUnavailable: Secret ns/(app=web): the source has not answered yet',
  ])
})

await t.test('render requires a required object, published or not', async (t) => {
  const missing = 'ObjectMissing: Secret ns/a does not exist: create it, or make contents[0] optional'
  t.same(shown(await rendered([whole(a)], [absent(a)])), [missing])
  t.same(shown(await rendered([whole(a)], [absent(a)], [keptOf(a, { k: '0' })])), [missing], 'kept or not')
  t.same(shown(await rendered([whole(a)], [])), ['SourceUnavailable: Secret ns/a: the source has not answered yet'])
  t.same(shown(await rendered([whole(a), whole(a, { into: 'x' })], [unknown(a)], [keptOf(a, { k: '0' })])), [
    'AccessDenied: Secret ns/a: 403 Forbidden',
  ])
  const items = [{ key: 'none', path: 'none', mode: undefined }]
  t.same(shown(await rendered([whole(a, { items })], both)), [
    'ObjectMissing: Secret ns/a has no key none: add it, or make contents[0] optional',
  ])
  t.same(shown(await rendered([whole(a), whole(b)], [absent(a), unknown(b)])), [
    missing,
    'AccessDenied: ConfigMap ns/b: 403 Forbidden',
  ])
  t.same(shown(await rendered([whole(a)], [present(a, {})])), {}, 'an object without keys is whole')
})

await t.test('render leaves an absent optional object out, or keeps it', async (t) => {
  const contents = [whole(a, { optional: true }), whole(b, { into: 'b' })]
  const kept = [keptOf(a, { k: '0' })]
  const latest = (observation: (typeof both)[number]) => [observation, present(b, { m: '3' })] as const
  t.same(shown(await rendered(contents, latest(absent(a)))), { 'b/m': '3' }, 'absent, never published')
  t.same(shown(await rendered(contents, latest(absent(a)), kept)), { k: '0', 'b/m': '3' }, 'vanished, kept')
  t.same(
    shown(await rendered(contents, latest(absent(a)), kept, { onMissing: 'remove' })),
    { 'b/m': '3' },
    'vanished, removed',
  )
  t.same(recordedBy(await rendered(contents, latest(absent(a)), kept)), [
    ['a', '3', ['k'], undefined],
    ['b', '7', ['b/m'], undefined],
  ])
  for (const onMissing of ['keep', 'remove'] as const) {
    const more = { onMissing }
    t.same(
      shown(await rendered(contents, latest(unknown(a)), kept, more)),
      { k: '0', 'b/m': '3' },
      'denied is not absent',
    )
    t.same(shown(await rendered(contents, latest(unknown(a)), [], more)), ['AccessDenied: Secret ns/a: 403 Forbidden'])
    const leaving = latest(present(a, { k: '9' }, { terminating: true }))
    t.same(shown(await rendered(contents, leaving, kept, more)), { k: '0', 'b/m': '3' }, 'being deleted: as published')
    t.same(shown(await rendered(contents, leaving, [], more)), { 'b/m': '3' }, 'being deleted, never published')
  }
  const items = ['k', 'none'].map((key) => ({ key, path: key, mode: undefined }))
  t.same(shown(await rendered([whole(a, { items, optional: true })], both)), { k: '1' }, 'a key that is missing')
})

await t.test('render keeps the published part of an object that is being deleted', async (t) => {
  const leaving = [present(a, { k: '9', l: '9' }, { terminating: true })]
  const nothing =
    'ObjectMissing: Secret ns/a is being deleted, and nothing that is asked for in contents[0] is published of it: create it again'
  t.same(shown(await rendered([whole(a)], leaving)), [nothing])
  t.same(shown(await rendered([whole(a)], leaving, [keptOf(a, { k: '0' })])), { k: '0' })
  t.same(shown(await rendered([whole(a)], leaving, [keptOf(a, {})])), {}, 'it was published without a key')
  t.same(
    shown(await rendered([whole(a, { into: 'x' })], leaving, [keptOf(a, { k: '0' })])),
    [nothing],
    'asked for elsewhere now',
  )
  t.same(
    shown(await rendered([whole(a)], leaving, [keptOf(a, {}, { both: '' })])),
    [nothing],
    'published in a combined file only',
  )
  const items = ['k', 'l'].map((key) => ({ key, path: key, mode: 0o640 }))
  t.same(
    shown(await rendered([whole(a, { items })], leaving, [keptOf(a, { k: '0' })])),
    [nothing],
    'one more key is asked for now',
  )
  const rendering = await rendered([whole(a, { items })], leaving, [keptOf(a, { k: '0', l: '0' })])
  t.same(shown(rendering), { k: '0', l: '0' })
  t.ok(rendering.ready && rendering.files.k?.mode === 0o640, 'modes are the configuration’s')
})

await t.test('render keeps the published files that the contents still name', async (t) => {
  const kept = [keptOf(a, { k: '0', 'x/k': '1', 'x/deep/k': '2', xk: '3' })]
  const optional = true
  t.same(shown(await rendered([whole(a, { into: 'x', optional })], [absent(a)], kept)), { 'x/k': '1' })
  t.same(shown(await rendered([whole(a, { optional })], [absent(a)], kept)), { k: '0', xk: '3' })
  const items = [{ key: 'any', path: 'x/k', mode: undefined }]
  t.same(
    shown(await rendered([whole(a, { items, optional }), whole(a, { into: 'x', optional })], [absent(a)], kept)),
    { 'x/k': '1' },
    'two contents of one object do not conflict over what it gave',
  )
})

await t.test('render makes combined files of current parts only, or keeps them', async (t) => {
  const content = combine('all.pem', [
    [a, 'k'],
    [b, 'm'],
    [a, 'k'],
  ])
  const optional = { ...content, optional: true }
  const rendering = await rendered([content], both)
  t.same(shown(rendering), { 'all.pem': '131' })
  t.same(recordedBy(rendering), [
    ['a', '7', [], ['all.pem']],
    ['b', '7', [], ['all.pem']],
  ])
  const pem = '-----BEGIN X-----\nAA==\n-----END X-----'
  t.same(
    shown(await rendered([content], [present(a, { k: pem }), present(b, { m: `${pem}\n` })])),
    { 'all.pem': `${pem}\n${pem}\n${pem}` },
    'PEM blocks do not swallow each other',
  )
  const kept = [keptOf(a, {}, { 'all.pem': 'old' }), keptOf(b, {}, { 'all.pem': 'old' })]
  const half = [keptOf(a, {}, { 'all.pem': 'old' })]
  const lacking = (...observations: Latest) => [...observations, present(b, { m: '3' })]
  t.same(shown(await rendered([content], lacking(absent(a)), kept)), [
    'ObjectMissing: Secret ns/a does not exist: create it, or make contents[9] optional',
  ])
  t.same(shown(await rendered([content], lacking(unknown(a)), kept)), ['AccessDenied: Secret ns/a: 403 Forbidden'])
  t.same(shown(await rendered([content], lacking(present(a, {})), kept)), [
    'ObjectMissing: Secret ns/a has no key k: add it, or make contents[9] optional',
  ])
  t.same(shown(await rendered([optional], lacking(absent(a)))), {})
  t.same(shown(await rendered([optional], lacking(absent(a)), kept)), { 'all.pem': 'old' })
  t.same(shown(await rendered([optional], lacking(absent(a)), half)), {}, 'it was made of other objects')
  t.same(shown(await rendered([optional], lacking(absent(a)), kept, { onMissing: 'remove' })), {})
  t.same(shown(await rendered([optional], lacking(present(a, {})), kept)), {}, 'a key that is missing')
  t.same(shown(await rendered([optional], lacking(unknown(a)), kept)), { 'all.pem': 'old' })
  t.same(shown(await rendered([optional], lacking(unknown(a)))), ['AccessDenied: Secret ns/a: 403 Forbidden'])
  t.same(shown(await rendered([optional], [unknown(a), absent(b)])), {}, 'it cannot be made, whatever a is')
  const leaving = lacking(present(a, { k: '9' }, { terminating: true }))
  t.same(shown(await rendered([content], leaving, kept)), { 'all.pem': 'old' })
  t.same(recordedBy(await rendered([content], leaving, kept)), [
    ['a', '3', [], ['all.pem']],
    ['b', '7', [], ['all.pem']],
  ])
  t.same(shown(await rendered([content], leaving)), [
    'ObjectMissing: Secret ns/a is being deleted, and nothing that is asked for in contents[9] is published of it: create it again',
  ])
  t.same(shown(await rendered([optional], leaving)), {})
})

await t.test('render reports conflicts that only the objects bring', async (t) => {
  const second = { place: 'contents[1]' }
  t.same(shown(await rendered([whole(a), whole(b, second)], [present(a, { k: '1' }), present(b, { k: '2' })])), [
    'ObjectInvalid: "k" is written twice: by contents[0], Secret ns/a, key k, and by contents[1], ConfigMap ns/b, key k',
  ])
  t.same(shown(await rendered([whole(a), whole(b, { ...second, into: 'k/x' })], both)), [
    'ObjectInvalid: "k" is a file of contents[0], Secret ns/a, key k, and a directory of contents[1], ConfigMap ns/b, key m',
  ])
  t.same(shown(await rendered([whole(b, { ...second, into: 'k/x' }), whole(a)], both)), [
    'ObjectInvalid: "k" is a file of contents[0], Secret ns/a, key k, and a directory of contents[1], ConfigMap ns/b, key m',
  ])
  t.same(shown(await rendered([whole(a), combine('k', [[b, 'm']])], both)), [
    'ObjectInvalid: "k" is written twice: by contents[0], Secret ns/a, key k, and by contents[9], of ConfigMap ns/b',
  ])
})

await t.test('render refuses keys that are no file names, and writes keys with a meaning in JavaScript', async (t) => {
  for (const key of ['..', '.', '', 'a/b', '../x', 'a\0b', '..data', 'x'.repeat(254)]) {
    const findings = shown(await rendered([whole(a, { optional: true })], [present(a, { [key]: 'canary' })]))
    t.matchOnly(
      findings,
      [/^ObjectInvalid: Secret ns\/a has a key that is not a valid file name: /],
      JSON.stringify(key.slice(0, 9)),
    )
    t.notMatch(findings, [/canary/])
  }
  const data = new Map([
    ['__proto__', Buffer.from('1')],
    ['constructor', Buffer.from('2')],
    ['0', Buffer.from('3')],
  ])
  const rendering = await rendered([whole(a)], [present(a, {}, { data })])
  t.same(rendering.ready && Object.keys(rendering.files).sort(), ['0', '__proto__', 'constructor'])
  t.same(shown(await rendered([whole(a, { optional: true })], [absent(a)], [keptOf(a, { toString: 'x' })])), {
    toString: 'x',
  })
  const items = [{ key: 'k', path: 'toString', mode: undefined }]
  t.same(shown(await rendered([whole(a, { optional: true, items })], [absent(a)], [keptOf(a, { k: 'x' })])), {})
  const [reference, { recorded }] = keptOf(a, { toString: 'x', k: 'x' })
  const unreadable = [[reference, { recorded, files: { k: { content: Buffer.from('x') } } }]] as const
  t.same(
    shown(await rendered([whole(a, { optional: true })], [absent(a)], unreadable)),
    { k: 'x' },
    'a file that was not read',
  )
})
