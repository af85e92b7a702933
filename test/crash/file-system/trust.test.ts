/* Which owners' locks and records holdfast trusts, and which callers wait for each other. */
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { replaceDirectory } from '../../../src/durable/index.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { contents, kept, scratch, scratchWith } from '../../durable/scratch.js'

const names = namesFor('certs')
const files = { a: 'the same' }
const nobody = 65_534
const isRoot = process.geteuid?.() === 0

for (const [whose, give, skip] of [
  ['that anybody may write', (path: string) => chmodSync(path, 0o666), false],
  ['that the group may write', (path: string) => chmodSync(path, 0o620), false],
  ["of another user's", (path: string) => chownSync(path, nobody, nobody), isRoot ? false : 'needs root (chown)'],
] as const) {
  await t.test(`a record ${whose} is no proof of anything`, { skip }, async (t) => {
    const target = join(scratch(t), 'certs')
    await replaceDirectory(target, { files })
    t.match(await replaceDirectory(target, { files }), { outcome: 'unchanged' }, 'our own is')
    give(join(target, '..', names.record(1)))
    // An untrusted owner's file has its name: it stays, and the next record has another.
    t.match(await replaceDirectory(target, { files }), { outcome: 'replaced' })
    t.match(await replaceDirectory(target, { files }), { outcome: 'unchanged' }, 'and then it is known')
    t.same(kept(join(target, '..')), ['lock', 'record', 'record'])
    t.same(contents(target), files)
  })
}

await t.test("a foreign file with a record's name raises no sequence beyond the longest name", async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { files })
  const taken = join(target, '..', names.record(999_999_999_999_999))
  mkdirSync(taken)
  t.match(await replaceDirectory(target, { files: { a: 'another' } }), { outcome: 'replaced' })
  t.match(await replaceDirectory(target, { files: { a: 'another' } }), { outcome: 'unchanged' }, 'its record is found')
  t.ok(readFileSync(join(target, '..', names.record(2))).length > 0)
  t.same(readdirSync(taken), [], 'and theirs is left alone')
})

await t.test('a record of which one digit is another is no record', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { files })
  const record = join(target, '..', names.record(1))
  const text = readFileSync(record, 'utf8')
  // The last digit of the time of the publication: nothing else is wrong with it.
  const other = text.replace(/("publishedAt":\d*)(\d)/, (_, most: string, last: string) =>
    most.concat(last === '0' ? '1' : '0'),
  )
  t.not(other, text)
  writeFileSync(record, other)
  t.match(await replaceDirectory(target, { files }), { outcome: 'replaced' })
  t.same(kept(join(target, '..')), ['lock', 'record'])
})

await t.test("another user's lock", { skip: isRoot ? false : 'needs root (chown)' }, async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  mkdirSync(target)
  const lock = join(parent, names.lock)
  writeFileSync(lock, '')
  chownSync(lock, nobody, nobody)
  const refused = { code: 'EPERM', published: false, reason: 'TargetUnfit' }
  await t.rejects(replaceDirectory(target, { files }), refused)
  t.same(contents(target), {})
})

await t.test('callers in one process wait for one another', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const rounds = Array.from({ length: 6 }, (_, index) => ({ a: String(index), b: String(index) }))
  const outcomes = await Promise.all(rounds.map((round) => replaceDirectory(target, { files: round })))
  t.same(
    outcomes.map(({ outcome }) => outcome).sort(),
    ['created', ...rounds.slice(1).map(() => 'replaced')],
    'each publishes, none is refused',
  )
  const { a = '', b } = contents(target)
  t.equal(a, b, 'one of them came last')
  t.ok(rounds.some((round) => round.a === a))
  t.same(kept(parent), ['lock', 'record'])
})
