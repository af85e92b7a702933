/** What an exchange took out is the old content only where all of it says so; anything else goes back to its place. */
import t from 'tap'
import { giveBackForeign } from '../../../src/durable/publish/directory-publication.js'
import type { Attributes } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import { numberOf } from '../calls/scene.js'

const names = namesFor('certs')
const random = '0123456789abcdef'
const staging = names.staging(random)

/** A disk right after the exchange: the staged content is visible, and this came out. */
async function exchanged(came: 'directory' | 'nothing' = 'directory') {
  const disk = new ModelDisk()
  makeDirectory(disk, '/etc', 0o755)
  makeEntry(disk, '/etc/certs', 'file', 0o644, 'new')
  if (came === 'directory') makeDirectory(disk, `/etc/${staging}`, 0o755)
  const fs = new ModelProcess(disk)
  const directory = await fs.openPath('/etc')
  const found = async (name: string): Promise<Attributes> => {
    const attributes = await fs.look(directory, name)
    if (attributes === undefined) throw new Error(`there is no ${name}`)
    return attributes
  }
  const staged = await found('certs')
  const out = came === 'nothing' ? staged : await found(staging)
  const calls: string[] = []
  fs.before = (call) => void calls.push(call)
  const judge = async (old: Attributes) => {
    const exchange = { fs, directory, name: 'certs', path: '/etc/certs', names, random, staged }
    const foreign = await giveBackForeign(exchange, old)
    return foreign && [foreign.published, foreign.keep, foreign.error.state]
  }
  const isBack = (): boolean => numberOf(disk, `/etc/${staging}`) === Number(staged.inode)
  return { disk, fs, out, judge, isBack, calls }
}

const back = [false, false, 'holdfast put its content back']

await t.test('what came out is the old one by its number, its device and its type together', async (t) => {
  const same = await exchanged()
  t.equal(await same.judge(same.out), undefined)
  t.strictSame(same.calls, ['look'])
  for (const other of [{ inode: 7n }, { device: -1 }, { type: 'file' as const }]) {
    const { out, judge, isBack, calls } = await exchanged()
    t.strictSame(await judge({ ...out, ...other }), back)
    t.ok(isBack(), Object.keys(other).join())
    t.strictSame(calls, ['look', 'rename', 'look', 'sync'], 'in its place, and durable, before anything is deleted')
  }
})

await t.test(
  'where nothing came out, or staged content does not come back, it stays visible, and nothing goes',
  async (t) => {
    const kept = `what it put there is now ${staging} beside the target, and ${names.quarantine(random)} after the next run; holdfast deleted nothing`
    const none = await exchanged('nothing')
    t.strictSame(await none.judge(none.out), [true, true, kept])
    t.strictSame(none.calls, ['look'])
    const { disk, fs, out, judge, isBack, calls } = await exchanged()
    let looks = 0
    // A third program comes between the exchange and the look behind it.
    fs.before = (call) => {
      calls.push(call)
      if (call === 'look' && ++looks === 2) disk.link(numberOf(disk, '/etc'), [[staging, Number(out.inode)]], 'by hand')
    }
    t.strictSame(await judge({ ...out, inode: 7n }), [true, true, kept])
    t.notOk(isBack())
    t.strictSame(calls, ['look', 'rename', 'look'], 'there is nothing to be made durable')
  },
)

await t.test('where its way back may not survive a power cut, nothing is deleted either', async (t) => {
  const { fs, out, judge, isBack } = await exchanged()
  fs.syncFault = () => 'keep'
  const [published, keep, state] = (await judge({ ...out, inode: 7n })) ?? []
  t.strictSame([published, keep, isBack()], [false, true, true])
  t.match(state, /^holdfast put its content back, but this may not survive a power cut \(.*EIO.*\): if the new content/)
})
