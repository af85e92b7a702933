/** A target leaves its place, and comes back where it has to: the entries at the path, and under the staging name, after each mishap. */
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Departure } from '../../../src/durable/remove/removal.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { Scope } from '../../../src/durable/path/scope.js'
import { Site } from '../../../src/durable/target/site.js'
import { failure, intercepted } from '../intercepted.js'
import { treeOf } from '../judgements.js'
import { scratchWith } from '../scratch.js'

const real = new NodeFileSystem()
const names = namesFor('certs')
const staging = names.staging('0123456789abcdef')

/** The entries at the path, and under the staging name: a directory by its entries, a link by its text, or nothing. */
async function scene(t: Test) {
  const [root, target] = scratchWith(t, 'certs')
  mkdirSync(join(target, 'ours'), { recursive: true })
  const scope = new Scope(real)
  const site = new Site(scope, target)
  await site.resolve()
  await site.open({})
  t.teardown(() => scope.closeAll())
  const attributes = await real.look(site.parent.directory, 'certs')
  if (attributes === undefined) throw new Error('it is there')
  const present = { attributes, tree: treeOf('a'), opened: undefined }
  const at = (name: string): string => {
    try {
      return readlinkSync(join(root, name))
    } catch {
      return readdirSync(root).includes(name) ? readdirSync(join(root, name)).join() : 'nothing'
    }
  }
  const by = (fs: FileSystem = real) => new Departure(fs, site)
  /** Another program's directory, in the place of the target, once. */
  const intrude = (): void => {
    if (readdirSync(root).includes('moved')) return
    renameSync(target, join(root, 'moved'))
    mkdirSync(join(target, 'theirs'), { recursive: true })
  }
  return { root, target, present, by, intrude, places: () => [at('certs'), at(staging)] }
}

const answer = (work: Promise<void>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error,
  )

/** Before each rename. */
const beforeRename = (act: () => void): FileSystem =>
  intercepted((call) => {
    if (call === 'rename') act()
  }).fs

const failing = (code: string): FileSystem =>
  beforeRename(() => {
    throw failure(code, 'renameat2')
  })

await t.test('confirm learns whether the entry that has left is the target', async (t) => {
  const { present, by, intrude, places } = await scene(t)
  const departure = by()
  const seen: boolean[] = []
  const confirm = (isIt: boolean): Promise<void> => Promise.resolve(void seen.push(isIt))
  t.equal(departure.gone, false)
  await departure.leave(staging, present, confirm)
  t.strictSame([seen, departure.gone, places()], [[true], true, ['nothing', 'ours']])
  await departure.comeBack(staging)
  t.strictSame([departure.gone, places()], [false, ['ours', 'nothing']])

  const late = by(beforeRename(intrude))
  const refuse = (isIt: boolean) => (isIt ? Promise.resolve() : Promise.reject(new Error('it is not')))
  t.match(await answer(late.leave(staging, present, refuse)), { message: 'it is not' })
  t.strictSame([late.gone, places()], [false, ['theirs', 'nothing']], 'what is not the target comes back')
})

await t.test('a target that cannot leave is still there; where only the answer was lost, it has left', async (t) => {
  const { present, by, places } = await scene(t)
  const confirm = (isIt: boolean) => (isIt ? Promise.resolve() : Promise.reject(new Error('it is not')))
  const stuck = by(failing('EINVAL'))
  t.match(await answer(stuck.leave(staging, present, confirm)), { code: 'EINVAL', syscall: 'renameat2' })
  t.strictSame([stuck.gone, places()], [false, ['ours', 'nothing']])
  class Lost extends NodeFileSystem {
    override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      await super.rename(...args)
      throw failure('EIO', 'renameat2')
    }
  }
  const lost = by(new Lost())
  t.equal(await answer(lost.leave(staging, present, confirm)), 'done')
  t.strictSame([lost.gone, places()], [true, ['nothing', 'ours']])
})

await t.test('comeBack takes no other program’s place', async (t) => {
  const { target, by, places } = await scene(t)
  renameSync(target, join(target, '..', staging))
  const departure = by()
  departure.gone = true
  mkdirSync(join(target, 'theirs'), { recursive: true })
  const taken = { reason: 'TargetForeign', published: true, message: new RegExp(`somebody made ${target} meanwhile`) }
  t.match(await answer(departure.comeBack(staging)), taken)
  t.strictSame([departure.gone, places()], [true, ['theirs', 'ours']])
  rmSync(target, { recursive: true })
  symlinkSync('another', target)
  t.match(await answer(departure.comeBack(staging)), taken)
  const stuck = by(failing('EIO'))
  stuck.gone = true
  t.match(await answer(stuck.comeBack(staging)), { code: 'EIO' })
  t.strictSame([stuck.gone, places()], [true, ['another', 'ours']])
  rmSync(target)
  await departure.comeBack(staging)
  t.strictSame([departure.gone, places()], [false, ['ours', 'nothing']])
})
