import t from 'tap'
import { access, byDefault, listOf } from './access-lists.js'
import { Random } from '../../random.js'
import { eachChoice } from './choices.js'
import { find } from './content.js'
import { ModelDisk, rootInode } from './model-disk.js'
import { ModelProcess } from './model-process.js'
import { powerCut } from './power-cut.js'

/* The powers and limits of the model disk: the proof rests on them. */

/** Everything that the next boot may find of a path: `mode data`, or `gone`. */
function outcomes(disk: ModelDisk, path: string): string[] {
  const found = new Set<string>()
  eachChoice(5000, new Random(1), (choose) => {
    const inode = find(powerCut(disk, choose), path)
    const data = inode && (inode.now.data || [...inode.now.entries.keys()].join(''))
    found.add(inode ? `${inode.now.attributes.mode.toString(8)} ${data}` : 'gone')
  })
  return [...found].sort()
}

async function written(data = 'ab'): Promise<{ disk: ModelDisk; process: ModelProcess; root: number; file: number }> {
  const disk = new ModelDisk()
  const process = new ModelProcess(disk)
  const root = await process.openPath('/')
  const file = await process.createFile(root, 'f')
  await process.write(file, Buffer.from(data))
  return { disk, process, root, file }
}

await t.test('an fsync of a file keeps its data and not its name', async (t) => {
  const { disk, process, root, file } = await written()
  t.same(await process.sync([file]), [undefined])
  t.same(outcomes(disk, '/f'), ['600 ab', 'gone'])
  await process.sync([root])
  t.same(outcomes(disk, '/f'), ['600 ab'])
})

await t.test('an fsync of a directory keeps its names, and not the inodes behind them', async (t) => {
  const { disk, process, root } = await written()
  await process.sync([root])
  const left = outcomes(disk, '/f')
  t.notOk(left.includes('gone'))
  for (const state of ['600 ab', '600 a', '600 ', '0 ', '600 \0\0', '600 \u00a5\u00a5'])
    t.ok(left.includes(state), state)
})

await t.test('a mode set after the fsync may be lost', async (t) => {
  const { disk, process, root, file } = await written()
  await process.sync([file, root])
  await process.setMode(file, 0o640)
  t.same(outcomes(disk, '/f'), ['600 ab', '640 ab'])
  await process.sync([file])
  t.same(outcomes(disk, '/f'), ['640 ab'])
})

await t.test(
  "chmod changes an ACL's mask, setting an ACL the mode; new entries inherit; a power cut may take each",
  async (t) => {
    const disk = new ModelDisk()
    const process = new ModelProcess(disk)
    const root = await process.openPath('/')
    const opened = Buffer.from(listOf(7, 5, 5, 5, 5), 'latin1')
    const file = await process.createFile(root, 'f')
    await process.sync([file, root])
    await process.setExtendedAttribute(file, access, opened)
    t.equal((await process.attributes(file)).mode, 0o755)
    await process.setMode(file, 0o600)
    const masked = Buffer.from(listOf(6, 5, 5, 0, 0), 'latin1')
    t.same((await process.extendedAttributes(file))?.get(access), masked)
    const left = new Set<string>()
    eachChoice(100, new Random(1), (choose) =>
      left.add(find(powerCut(disk, choose), '/f')?.now.attributes.extended ?? ''),
    )
    t.ok(left.size === 3 && left.has(''), 'none, as it was set, as it is')

    await process.setExtendedAttribute(root, byDefault, opened)
    const inherits = await process.createFile(root, 'g')
    t.same((await process.extendedAttributes(inherits))?.get(access), masked, 'within the mode 0600')
    await process.createDirectory(root, 'd', 0o755)
    const below = await process.extendedAttributes(await process.openDirectory(root, 'd'))
    t.same([below?.get(access), below?.get(byDefault)], [opened, opened])
  },
)

await t.test('a power cut tears appended bytes at sectors, and keeps the synced ones before them', async (t) => {
  const { disk, process, root, file } = await written('a'.repeat(600))
  await process.sync([file, root])
  await process.write(file, Buffer.from('b'.repeat(1000)))
  const left = outcomes(disk, '/f').map((state) => state.slice(4))
  t.ok(left.every((data) => data.startsWith('a'.repeat(600))))
  t.ok(left.includes(`${'a'.repeat(600)}${'b'.repeat(424)}${'\0'.repeat(576)}`), 'one sector came, the others not')
})

await t.test(
  'an exchange in one directory takes both names or none; a rename across two may leave either half',
  async (t) => {
    const { disk, process, root, file } = await written('a')
    const other = await process.createFile(root, 'g')
    await process.write(other, Buffer.from('b'))
    await process.createDirectory(root, 'd')
    const directory = await process.openDirectory(root, 'd')
    await process.sync([file, other, directory, root])
    await process.rename(root, 'f', root, 'g', 'exchange')
    const pairs = new Set<string>()
    eachChoice(100, new Random(1), (choose) => {
      const after = powerCut(disk, choose)
      pairs.add(`${String(find(after, '/f')?.now.data)}${String(find(after, '/g')?.now.data)}`)
    })
    t.same([...pairs].sort(), ['ab', 'ba'])
    await process.sync([root])
    await process.rename(root, 'f', directory, 'f', 'noreplace')
    const halves = new Set<string>()
    eachChoice(100, new Random(1), (choose) => {
      const after = powerCut(disk, choose)
      halves.add(`${find(after, '/f') ? 1 : 0}${find(after, '/d/f') ? 1 : 0}`)
    })
    t.same([...halves].sort(), ['00', '01', '10', '11'])
  },
)

await t.test('after a failed fsync the next one answers 0, and the data is lost', async (t) => {
  const { disk, process, root, file } = await written()
  await process.sync([root])
  process.syncFault = () => 'drop'
  t.match(await process.sync([file]), [{ code: 'EIO' }])
  process.syncFault = undefined
  t.same(await process.sync([file]), [undefined])
  t.ok(outcomes(disk, '/f').includes('600 '))
  t.equal(find(disk, '/f')?.now.data, 'ab', 'until the power is cut it reads as before')
})

await t.test('an aborted journal: an fsync answers 0 and does nothing, a mutation fails', async (t) => {
  const { disk, process, root, file } = await written()
  disk.aborted = true
  t.same(await process.sync([file, root]), [undefined, undefined])
  t.ok(outcomes(disk, '/f').includes('gone'))
  await t.rejects(process.removeFile(root, 'f'), { code: 'EROFS' })
})

await t.test('a lock ends with its process; the boot changes at a power cut only', async (t) => {
  const disk = new ModelDisk()
  const first = new ModelProcess(disk)
  const second = new ModelProcess(disk)
  const [one, two] = [
    await first.openLock(await first.openPath('/'), 'lock'),
    await second.openLock(await second.openPath('/'), 'lock'),
  ]
  t.equal(first.tryLock(one), true)
  t.equal(second.tryLock(two), false)
  const killed = disk.fork()
  const successor = new ModelProcess(killed)
  t.equal(successor.tryLock(await successor.openLock(await successor.openPath('/'), 'lock')), true)
  t.equal(await successor.bootId(), await first.bootId())
  const rebooted = new ModelProcess(powerCut(disk, () => 0))
  t.not(await rebooted.bootId(), await first.bootId())
  t.equal(disk.child(rootInode, 'lock')?.type, 'file')
})

await t.test('few choices are all made, many are drawn, and the same seed draws the same', async (t) => {
  const rows = (limit: number): string[] => {
    const seen: string[] = []
    eachChoice(limit, new Random(7), (choose) => seen.push(`${choose(2)}${choose(3)}`))
    return seen
  }
  t.same(new Set(rows(6)), new Set(['00', '01', '02', '10', '11', '12']))
  t.same(rows(4), rows(4))
  t.ok(rows(4).includes('00') && rows(4).includes('12'), 'the two extremes')
})
