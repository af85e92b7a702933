/** A relocation meets what others do in between: nothing goes that is still needed. */
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { relocate } from '../../src/durable/move/relocation.js'
import { Killed } from './intercepted.js'
import { keep, Observed, story } from './relocation-story.js'
import { contents, scratch } from './scratch.js'

/** Something happens between the last look at the old path and its removal, once that is recorded. */
class AtRemoval extends Observed {
  #looks = 0

  constructor(
    readonly from: string,
    readonly to: string,
    readonly act: () => Promise<unknown>,
  ) {
    super()
  }

  override async openPath(path: string): Promise<number> {
    const isDraining = path === dirname(this.from) && (await readPublication(this.to))?.relocation?.state === 'draining'
    if (isDraining && ++this.#looks === 2) await this.act()
    return super.openPath(path)
  }
}

const killed = () => Promise.reject(new Killed())

await t.test('two paths that are one directory, or lie one in the other, by a link are refused', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'real'))
  symlinkSync('real', join(root, 'alias'))
  const fs = new Observed()
  const to = join(root, 'real/certs')
  await replaceDirectory(to, { files: { a: '1' } })
  const from = join(root, 'alias/certs')
  for (const state of ['staged', 'both'] as const) {
    await replaceDirectory(to, { files: { a: state }, movedFrom: from })
    await t.rejects(relocate(fs, to, { from, keep }), {
      reason: 'TargetUnfit',
      message: /alias\/certs and .*real\/certs are the same directory, .*leave out movedFrom/,
    })
    fs.time += 10 * keep
  }
  t.same(contents(to), { a: 'both' })
  t.equal((await readPublication(to))?.relocation?.state, 'staged')
  t.equal((await readPublication(to))?.movedTo, undefined)
  for (const inner of ['real/certs/sub/tls', 'real/certs/tls']) {
    const below = join(root, inner)
    await t.rejects(replaceDirectory(below, { files: { a: '2' }, movedFrom: from }), {
      reason: 'TargetUnfit',
      message: / lies in .*real\/certs, which holdfast publishes/,
    })
  }
  t.equal((await readPublication(to))?.movedTo, undefined)
})

await t.test('relocate keeps an old path if another call publishes it in the last instant', async (t) => {
  const { from, to, publishNew, move } = await story(t)
  await publishNew({ a: '2' })
  await move()
  const fs = new AtRemoval(from, to, () => replaceDirectory(from, { files: { a: '3' }, movedTo: null }))
  fs.time += 2 * keep
  t.match(await relocate(fs, to, { from, keep }), { state: 'both', waits: /stays until/ })
  t.same(contents(from), { a: '2' }, 'the relocation begins anew')
})

await t.test('an old path whose removal was interrupted stays while the new one is not whole', async (t) => {
  const { root, from, to, fs, publishNew, move, state } = await story(t)
  await publishNew({ a: '2' })
  await move()
  const mortal = new AtRemoval(from, to, killed)
  fs.time = mortal.time += keep
  await t.rejects(relocate(mortal, to, { from, keep }))
  t.equal(await state(), 'draining')
  rmSync(to, { recursive: true })
  t.match(await move(), { state: 'both', waits: /tls is not what was published there last/ })
  t.same(contents(from), { a: '2' })
  await publishNew({ a: '3' })

  // Its record says durable, but of other inodes.
  renameSync(join(root, 'is'), join(root, 'backup'))
  cpSync(join(root, 'backup'), join(root, 'is'), { recursive: true })
  t.match(await move(), { state: 'both', waits: /tls is not what was published there last/ })
  t.same(contents(from), { a: '2' })
  await publishNew({ a: '3' })
  fs.time += 2 * keep
  t.match(await move(), { state: 'done' })
})

await t.test('a path does not move on while another one still moves to it', async (t) => {
  const { root, from, to, fs, publishNew, move, state } = await story(t)
  await publishNew({ a: '2' })
  await move()
  const third = join(root, 'is/third')
  const publishThird = (a: string) => replaceDirectory(third, { files: { a }, movedFrom: to })
  const moveOn = () => relocate(fs, third, { from: to, keep })
  await publishThird('3')
  await t.rejects(moveOn(), {
    reason: 'TargetUnfit',
    message:
      /was\/certs still moves to .*is\/tls \(both\), which is to move to .*third; holdfast left \S+is\/tls as it was, and \S+third is published already; /,
  })
  t.equal((await readPublication(to))?.movedTo, undefined)
  fs.time += keep
  t.match(await move(), { state: 'done' }, 'the first move goes on to its end')
  t.equal(await state(), 'done')
  t.notOk(existsSync(from))
  t.match(await moveOn(), { state: 'both' })
  t.same(contents(to), { a: '3' })
})
