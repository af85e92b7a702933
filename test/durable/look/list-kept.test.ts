/** What holdfast keeps in a directory, for each target there is or was. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { setHold } from '../../../src/durable/operator/hold.js'
import { listKept } from '../../../src/durable/look/list-kept.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import { replaceDirectory } from '../../../src/durable/index.js'
import { scene } from '../history-scene.js'

const random = '0123456789abcdef'

await t.test('where holdfast keeps nothing, nothing is listed', async (t) => {
  const { root, fs } = scene(t)
  t.strictSame(await listKept(fs, join(root, 'missing')).catch(() => 'fails'), [])
  mkdirSync(join(root, 'theirs'))
  t.strictSame(await listKept(fs, root), [])
  const names = namesFor('certs')
  writeFileSync(join(root, names.lock), '')
  t.strictSame(await listKept(fs, root), [], 'a lock alone is nothing')
  rmSync(join(root, names.lock))
  mkdirSync(join(root, names.staging(random)))
  t.match(await listKept(fs, root), [{ name: null, leftovers: [names.staging(random)] }])
  t.strictSame(await listKept(fs, join(root, 'missing')).catch(() => 'fails'), [], 'that is kept above it')
})

await t.test(
  'listKept answers, for each target, its files, its keeper, and its hold or pin, by its records',
  async (t) => {
    const { root, target, fs, replace, generations } = scene(t)
    const names = namesFor('certs')
    await replace('1')
    await replace('2', { publisher: 'agent', movedFrom: '/etc/old', movedTo: '/etc/new' })
    const since = fs.clock
    const certs = {
      name: 'certs',
      there: true,
      records: [names.record(2)],
      generations: generations().map((path) => basename(path)),
      retired: [],
      leftovers: [],
      foreign: [],
      publishedAt: new Date(since),
      publisher: 'agent',
      movedTo: '/etc/new',
      movedFrom: { from: '/etc/old', as: 'removed', state: 'staged', since },
    }
    t.strictSame(await listKept(fs, root), [certs])

    const hold = { reason: 'INC-9', since, until: since + 1 }
    await setHold(fs, target, hold, {})
    for (const entry of [names.staging(random), names.quarantine(random)]) mkdirSync(join(root, entry))
    writeFileSync(join(root, names.record(9)), 'damaged', { mode: 0o600 })
    rmSync(target, { recursive: true })
    await replaceDirectory(join(root, 'a'), { files: { a: '1' } })
    const [first, second] = await listKept(fs, root)
    t.match(first, { name: 'a', there: true, records: [namesFor('a').record(1)] })
    t.strictSame(first?.generations, [])
    t.notOk(first && ('publisher' in first || 'movedTo' in first || 'movedFrom' in first || 'hold' in first))
    const left = { leftovers: [names.staging(random)], foreign: [names.quarantine(random)] }
    t.match(second, { name: 'certs', there: false, records: [names.record(3), names.record(9)], ...left, hold })
    fs.clock += 1
    t.notOk('hold' in ((await listKept(fs, root))[1] ?? {}), 'a hold that is over')
  },
)

await t.test('a pin is named until it is over; old content that is in use, by its record', async (t) => {
  const { root, target, fs, replace } = scene(t)
  await replace('1')
  await replace('2')
  await rollBack(fs, target, { pin: { reason: 'INC-9', until: fs.clock + 1 } })
  const [pinned] = await listKept(fs, root)
  t.match(pinned, { pin: { reason: 'INC-9' } })
  fs.clock += 1
  t.notOk('pin' in ((await listKept(fs, root))[0] ?? {}))
})

await t.test('what no record tells is listed by its kind, a family at a time', async (t) => {
  const { root, target, fs, replace } = scene(t)
  await replace('1')
  await replace('2')
  const [known] = await listKept(fs, root)
  const [record = ''] = known?.records ?? []
  renameSync(target, join(root, 'elsewhere'))
  writeFileSync(join(root, record), 'damaged')
  const [ours, other] = [namesFor('certs'), namesFor('other')]
  mkdirSync(join(root, ours.staging(random)))
  mkdirSync(join(root, other.quarantine(random)))
  writeFileSync(join(root, other.lock), '')
  const none = { name: null, there: false, records: [], generations: [], retired: [], leftovers: [], foreign: [] }
  const expected = [
    { ...none, records: [record], generations: known?.generations, leftovers: [ours.staging(random)] },
    { ...none, foreign: [other.quarantine(random)] },
  ]
  if (other.lock < ours.lock) expected.reverse()
  t.strictSame(await listKept(fs, root), expected)
})
