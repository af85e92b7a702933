/** What a record's fields may hold: each part of each of them, right and wrong. */
import { inspect } from 'node:util'
import t from 'tap'
import { isBody, isText, knownFields } from '../../../src/durable/record/record-fields.js'
import { valueOf } from '../judgements.js'

type Field = keyof typeof knownFields

const staging = '.holdfast-0123456789abcdef-0123456789abcdef'
const object = { kind: 'Secret', namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', paths: ['a'] }
const known = { path: 'a', type: 'file', sha256: '0' }
const latest = 8.64e15
const identity = { inode: '1', birth: '2' }

const noTexts = [7, null, undefined, true, ['a']]
const noNumbers = ['7', null, undefined, 0.5, NaN]
const noTimes = [...noNumbers, latest + 1, -latest - 1]
const noPaths = [...noTexts, '', 'a', './a', '/a\0']
const noStagingNames = [...noTexts, 'certs', '../certs', `${staging}.foreign`]
const noLists = ['a', null, undefined, { 0: 'a', length: 1 }]
const texts = ['', 'a']
const times = [0, latest, -latest]

/** What one field, or one part of a field, may hold, and what not: each in a record that is right but for it. */
interface Rule {
  readonly right: readonly unknown[]
  readonly wrong: readonly unknown[]
}

const text: Rule = { right: texts, wrong: noTexts }
const time: Rule = { right: times, wrong: noTimes }
const number: Rule = { right: [0, -1, 7], wrong: noNumbers }
const flag: Rule = { right: [true, false], wrong: ['true', 0, null] }
const optional = ({ right, wrong }: Rule): Rule => ({
  right: [...right, undefined],
  wrong: wrong.filter((value) => value !== undefined),
})
const listOf = ({ right, wrong }: Rule): Rule => ({
  right: [[], right, ...right.map((one) => [one])],
  wrong: [...noLists, ...wrong.map((one) => [right[0], one])],
})

/** Objects whose parts are these: each with one part of each kind, and no others than `parts` names matter. */
function objectOf(parts: Readonly<Record<string, Rule>>): Rule {
  const whole = Object.fromEntries(Object.entries(parts).map(([name, { right }]) => [name, right[0]]))
  const each = (pick: (rule: Rule) => readonly unknown[]): object[] =>
    Object.entries(parts).flatMap(([name, rule]) => pick(rule).map((value) => ({ ...whole, [name]: value })))
  return { right: [whole, ...each(({ right }) => right)], wrong: [null, 'x', 7, ...each(({ wrong }) => wrong)] }
}

const cause: Rule = {
  right: ['published', 'driftRepaired', 'rolledBack', 'adopted'],
  wrong: [...noTexts, 'other', 'toString', ['published']],
}
const path: Rule = { right: ['/', '/a'], wrong: noPaths }
const stagingName: Rule = { right: [staging], wrong: noStagingNames }
const objects = listOf(
  objectOf({
    kind: text,
    namespace: text,
    name: text,
    uid: text,
    resourceVersion: text,
    paths: listOf(text),
    combined: optional(listOf(text)),
    others: optional(listOf(text)),
    gone: optional(flag),
  }),
)
const entries = listOf(objectOf({ path: text, type: text, sha256: text }))
const generationName: Rule = {
  right: ['.holdfast-0123456789abcdef.0-0123456789abcdef'],
  wrong: [...noTexts, staging, 'certs', ['.holdfast-0123456789abcdef.0-0123456789abcdef']],
}
const place = objectOf({
  within: text,
  parent: objectOf({ inode: text, birth: text }),
  target: objectOf({ inode: text, birth: text }),
  replaced: optional(objectOf({ inode: text, birth: text })),
})

const rules = {
  name: text,
  kind: { right: ['exchange', 'symlink', 'file'], wrong: [...noTexts, 'link'] },
  boot: text,
  before: { right: [null, 'a'], wrong: [7, undefined, true] },
  after: text,
  owned: { right: [true, false], wrong: ['true', 0, null, undefined] },
  publishedAt: time,
  objects,
  hooks: listOf(text),
  entries: listOf(objectOf({ path: text, type: text, sha256: text, mode: number, uid: number, gid: number })),
  staging: optional(objectOf({ name: stagingName, staged: text, old: text, entries: optional(entries) })),
  place,
  publisher: optional(text),
  attributes: { right: [null, 'a'], wrong: [7, true, ['a'], undefined] },
  keepsAttributes: optional(flag),
  hold: optional(objectOf({ reason: text, since: time, until: { right: [null, 7], wrong: ['7', undefined] } })),
  retired: optional(listOf(objectOf({ name: stagingName, inode: text, until: time, entries }))),
  history: optional(
    objectOf({
      keep: { right: [0, 3], wrong: [...noNumbers, -1] },
      maxAge: { right: [null, 7], wrong: ['7', undefined, 0.5] },
      hooks: optional(listOf(text)),
      generations: listOf(
        objectOf({
          name: generationName,
          digest: text,
          why: cause,
          sequence: number,
          publishedAt: time,
          replacedAt: time,
          objects,
        }),
      ),
    }),
  ),
  pin: optional(
    objectOf({
      reason: text,
      digest: text,
      since: time,
      from: objects,
      until: { right: ['newer', 'released', 7], wrong: ['', 'other', null, undefined] },
    }),
  ),
  why: optional(cause),
  removing: optional(objectOf({ since: time })),
  relocation: optional(
    objectOf({
      from: path,
      since: time,
      state: { right: ['staged', 'both', 'draining', 'done'], wrong: [...noTexts, 'other'] },
      as: { right: ['removed'], wrong: [...noTexts, 'link'] },
    }),
  ),
  movedTo: optional(path),
  agent: optional(objectOf({ id: text, publishedAt: time })),
  letGo: optional(objectOf({ since: time, publishedAt: time })),
} satisfies Record<Field, Rule>

await t.test('each field accepts its values, and nothing else', async (t) => {
  for (const [field, { right, wrong }] of Object.entries(rules) as [Field, Rule][]) {
    const answers = (values: readonly unknown[]): string[] =>
      values.map((value) => `${inspect(value)}: ${inspect(valueOf(() => knownFields[field].is(value)))}`)
    const expected = (values: readonly unknown[], answer: boolean): string[] =>
      values.map((value) => `${inspect(value)}: ${answer}`)
    t.strictSame(answers(right), expected(right, true), `${field}: right`)
    t.strictSame(answers(wrong), expected(wrong, false), `${field}: wrong`)
  }
})

await t.test('a record is of version 1, and asks of its reader what this version understands', async (t) => {
  const right = Object.entries(rules).map(([field, rule]): [string, unknown] => [field, rule.right[0]])
  const isRead = (said: object): unknown => valueOf(() => isBody({ version: 1, ...Object.fromEntries(right), ...said }))
  for (const requires of [undefined, [], ['hold', 'retired', 'history', 'pin', 'removing', 'adopted']])
    t.equal(isRead({ requires }), true, inspect(requires))
  for (const requires of ['a', null, { 0: 'a', length: 1 }, ['time-travel'], ['hold', 7]])
    t.equal(isRead({ requires }), false, inspect(requires))
  for (const version of [0, 2, '1', undefined]) t.equal(isRead({ version }), false, inspect(version))
})

await t.test('an object of a record says all that tells it from others', async (t) => {
  t.ok(knownFields.objects.is([object, { ...object, combined: ['b'] }]))
  t.notOk(knownFields.objects.is([object, { ...object, combined: [7] }]))
  t.ok(
    knownFields.staging.is({ name: staging, staged: '1', old: '2', entries: [known] }),
    'modes are of `entries` alone',
  )
  t.notOk(knownFields.entries.is([known]))
  t.ok(knownFields.place.is({ within: '/a', parent: identity, target: identity }))
  t.equal(isText('a'), true)
  t.equal(isText(undefined), false)
})
