import t from 'tap'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { publish, type PublishOutcome } from '../../src/durable/publish/publish.js'
import { Random } from '../random.js'
import { eachChoice } from '../crash/model/choices.js'
import { find } from '../crash/model/content.js'
import { ModelDisk } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { powerCut } from '../crash/model/power-cut.js'
import { makeDirectory, makeEntry } from '../crash/model/scenario.js'
import { isKind } from '../crash/judge/names.js'

/*
 * Another program puts its own directory under the target's name in the last instant before the exchange, and makes it durable.
 * It is given back by a second exchange: before anything is deleted, that one has to be durable, too. On the model disk, where a
 * power cut leaves any of the changes that were not synced.
 */

const target = '/etc/certs'

/** Publishes while the other program comes between; `instants`: the disk after each removal. */
async function intruded(
  prepare: (process: ModelProcess, renames: () => number) => void = () => undefined,
): Promise<{ outcomes: PublishOutcome[]; disk: ModelDisk; instants: ModelDisk[] }> {
  const disk = new ModelDisk()
  makeDirectory(disk, '/etc', 0o755)
  const request = { target, files: { a: 'old' } }
  await publish([directoryPublication(new ModelProcess(disk), request)])
  disk.syncAll()
  const process = new ModelProcess(disk)
  let renames = 0
  prepare(process, () => renames)
  process.before = (call) => {
    if (call !== 'rename' || ++renames > 1) return
    const parent = find(disk, '/etc')
    if (!parent) throw new Error('/etc is not there')
    disk.link(parent.number, [['certs', undefined]], 'a foreign removal')
    makeDirectory(disk, target, 0o755)
    makeEntry(disk, `${target}/theirs`, 'file', 0o644, 'theirs')
    disk.syncAll()
  }
  const instants: ModelDisk[] = []
  disk.changed = (what) => {
    if (/^(unlink|rmdir)/.test(what)) instants.push(disk.fork())
  }
  const outcomes = await publish([directoryPublication(process, { target, files: { a: 'new', b: 'new' } })])
  disk.changed = undefined
  return { outcomes, disk, instants }
}

await t.test('returned content survives every power cut during the removal of the stage', async (t) => {
  const { outcomes, disk, instants } = await intruded()
  t.match(outcomes, [{ error: { reason: 'TargetForeign', published: false } }])
  t.ok(instants.length >= 4, `${instants.length} removals: the files, their directory, the record`)
  let states = 0
  const broken: unknown[] = []
  for (const instant of [...instants, disk]) {
    eachChoice(500, new Random(1), (choose) => {
      states += 1
      const found = find(powerCut(instant, choose), `${target}/theirs`)?.now.data
      if (found !== 'theirs') broken.push(found)
    })
  }
  t.ok(states > instants.length, `${states} states`)
  t.same(broken, [])
})

await t.test('where that cannot be made durable, holdfast deletes nothing, and says so', async (t) => {
  const { outcomes, disk, instants } = await intruded((process, renames) => {
    process.syncFault = () => (renames() === 2 ? 'keep' : undefined)
  })
  t.match(outcomes, [
    {
      error: {
        reason: 'TargetForeign',
        published: false,
        message: /put its content back, but this may not survive a power cut .*EIO.* holdfast deleted nothing/,
      },
    },
  ])
  t.equal(find(disk, `${target}/theirs`)?.now.data, 'theirs')
  t.same(instants, [])
  const names = [...(find(disk, '/etc')?.now.entries.keys() ?? [])]
  const staging = names.find(isKind('staging', 'foreign'))
  t.equal(find(disk, `/etc/${staging ?? ''}/b`)?.now.data, 'new', 'what was staged is still there')
  t.equal(names.filter((name) => /\.\d+$/.test(name)).length, 2, 'and its record')
})
