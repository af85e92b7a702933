/** The names of the files beside a target: every version keeps them, and each tells its kind and its target. */
import t from 'tap'
import { namesFor } from '../../../src/durable/path/names.js'

/** The first digits of SHA-256 of `certs`. */
const own = '.holdfast-254090ae56ea8af2'
const random = '0123456789abcdef'
const names = namesFor('certs')

await t.test('each name consists of the target’s digits, and of the part that tells it from its like', async (t) => {
  const { lock, staging, quarantine, record, generation } = names
  t.strictSame(
    [lock, staging(random), quarantine(random), record(12), generation(12, random)],
    [`${own}.lock`, `${own}-${random}`, `${own}-${random}.foreign`, `${own}.12`, `${own}.12-${random}`],
  )
})

await t.test('a name of the target is one thing, and any other name is nothing', async (t) => {
  const said = (name: string): unknown => {
    const { stagingOf, quarantineOf, sequenceOf, isGeneration } = names
    return {
      staging: stagingOf(name),
      quarantined: quarantineOf(name),
      record: sequenceOf(name),
      kept: isGeneration(name),
    }
  }
  const nothing = { staging: undefined, quarantined: undefined, record: undefined, kept: false }
  t.strictSame(said(`${own}-${random}`), { ...nothing, staging: random })
  t.strictSame(said(`${own}-${random}.foreign`), { ...nothing, quarantined: random })
  t.strictSame(said(`${own}.12`), { ...nothing, record: 12 })
  t.strictSame(said(`${own}.999999999999999`), { ...nothing, record: 999999999999999 })
  for (const sequence of [0, 12]) t.strictSame(said(`${own}.${sequence}-${random}`), { ...nothing, kept: true })
  const another = namesFor('other')
  for (const name of [
    ...[another.staging(random), another.quarantine(random), another.record(12), another.generation(12, random)],
    ...[another.lock, names.lock, 'certs', own, `${own}-`, `${own}.`, `${own}.foreign`, `x${own}.12`],
    ...[`${own}-${random}0`, `${own}-${random.slice(1)}`, `${own}-${random.toUpperCase()}`, `${own}_${random}`],
    ...[`${own}.0`, `${own}.012`, `${own}.1000000000000000`, `${own}.-1`, `${own}.12.foreign`, `${own}-12`],
    ...[`${own}.012-${random}`, `${own}.12-${random}0`, `${own}.12-${random}.foreign`, `${own}.12-`],
  ]) {
    t.strictSame(said(name), nothing, name)
  }
})

await t.test('a family shares lock and staging; record and earlier contents are each member’s own', async (t) => {
  const member = namesFor('certs-7', 'certs')
  const alone = namesFor('certs-7')
  t.equal(member.lock, names.lock)
  t.equal(member.staging(random), names.staging(random))
  t.equal(member.stagingOf(names.staging(random)), random)
  t.equal(member.quarantineOf(names.quarantine(random)), random)
  t.equal(member.record(1), alone.record(1))
  t.equal(member.sequenceOf(alone.record(3)), 3)
  t.equal(member.sequenceOf(names.record(3)), undefined)
  t.ok(member.isGeneration(alone.generation(3, random)))
  t.notOk(member.isGeneration(names.generation(3, random)))
})
