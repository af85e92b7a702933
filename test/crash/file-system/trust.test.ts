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
const needsRoot = { skip: process.geteuid?.() === 0 ? false : 'needs root (chown)' }

await t.test("in a sticky directory, another user's file under a record's name stops nothing", needsRoot, async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const options = { history: { keep: 5, maxAge: null }, publisher: 'agent' } as const
  chmodSync(parent, 0o1777)
  await replaceDirectory(target, { files: { a: 'first' }, ...options })
  await replaceDirectory(target, { files, ...options })
  t.match(await replaceDirectory(target, { files, ...options }), { outcome: 'unchanged' }, 'our own proves something')
  const record = join(parent, names.record(2))
  chownSync(record, nobody, nobody)
  // An untrusted owner's file has its name: it stays, and the next record has another.
  t.match(await replaceDirectory(target, { files, ...options }), { outcome: 'replaced', sequence: 3 })
  t.match(await replaceDirectory(target, { files, ...options }), { outcome: 'unchanged' }, 'and then it is known')
  t.same(kept(parent), ['generation', 'lock', 'record', 'record'], 'nor does what it may name go')
  t.same(contents(target), files)
  chownSync(record, 0, 0)
  t.match(await replaceDirectory(target, { files, ...options }), { sequence: 3 }, 'it comes back, and outranks nothing')
})

await t.test(
  'a record that was given to another user is refused where strangers make no files',
  needsRoot,
  async (t) => {
    for (const [mode, owner] of [
      [0o755, 0],
      [0o755, nobody],
      [0o775, 0],
      [0o1755, 0],
    ] as const) {
      const [parent, target] = scratchWith(t, 'certs')
      await replaceDirectory(target, { files })
      chmodSync(parent, mode)
      chownSync(parent, owner, owner)
      chownSync(join(parent, names.record(1)), nobody, nobody)
      await t.rejects(replaceDirectory(target, { files }), {
        code: 'EPERM',
        reason: 'TargetUnfit',
        advice: /^run holdfast as user 65534; or, .* "chown 0 .*"$/,
      })
      t.same(kept(parent), ['lock', 'record'])
    }
  },
)

for (const mode of [0o666, 0o602]) {
  await t.test(`a record of mode ${mode.toString(8)} is refused, not passed over`, async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    await replaceDirectory(target, { files })
    chmodSync(join(parent, names.record(1)), mode)
    await t.rejects(replaceDirectory(target, { files }), { code: 'EPERM', published: false, reason: 'TargetUnfit' })
    t.same(kept(parent), ['lock', 'record'])
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

await t.test("another user's lock", needsRoot, async (t) => {
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
