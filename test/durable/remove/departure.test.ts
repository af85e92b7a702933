/** A target leaves its place, and comes back where it has to: what is at the path, and under the staging name, after each mishap. */
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmdirSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Departure } from '../../../src/durable/remove/departure.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { Scope } from '../../../src/durable/path/scope.js'
import { Parents, Site } from '../../../src/durable/target/site.js'
import { failure, intercepted } from '../intercepted.js'
import { record } from '../judge-rows.js'
import { treeOf } from '../judgements.js'
import { scratch } from '../scratch.js'

const real = new NodeFileSystem()
const names = namesFor('certs')
const staging = names.staging('0123456789abcdef')

/** What is at the path, and under the staging name: a directory by what it holds, a link by its text, or nothing. */
async function scene(t: Test) {
  const root = scratch(t)
  const target = join(root, 'certs')
  mkdirSync(join(target, 'ours'), { recursive: true })
  const scope = new Scope(real)
  const parents = new Parents(real)
  const site = new Site(scope, target)
  await site.resolve(parents)
  await site.open({})
  t.teardown(async () => {
    await parents.close()
    await scope.closeAll()
  })
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
  /** Somebody else's, in the place of the target, once. */
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

await t.test('who looks at what has left learns whether it is the target', async (t) => {
  for (const link of [undefined, 'elsewhere']) {
    const { root, target, present, by, intrude, places } = await scene(t)
    const departure = by()
    if (link !== undefined) t.match(await departure.stageLink(staging, link), { type: 'symlink' })
    const seen: boolean[] = []
    const confirm = (isIt: boolean): Promise<void> => Promise.resolve(void seen.push(isIt))
    t.equal(departure.gone, false)
    await departure.leave(staging, present, link, confirm)
    t.strictSame([seen, departure.gone, places()], [[true], true, [link ?? 'nothing', 'ours']])
    await departure.comeBack(staging, link === undefined ? [] : [link])
    t.strictSame([departure.gone, places()], [false, ['ours', link ?? 'nothing']])

    const late = by(beforeRename(intrude))
    const refuse = (isIt: boolean) => (isIt ? Promise.resolve() : Promise.reject(new Error('it is not')))
    t.match(await answer(late.leave(staging, present, link, refuse)), { message: 'it is not' })
    t.strictSame([late.gone, places()], [false, ['theirs', link ?? 'nothing']], 'what is not the target comes back')
    rmSync(target, { recursive: true })
    renameSync(join(root, 'moved'), target)
  }
})

await t.test('a target that cannot leave is still there; where only the answer was lost, it has left', async (t) => {
  const { present, by, places } = await scene(t)
  const confirm = (isIt: boolean) => (isIt ? Promise.resolve() : Promise.reject(new Error('it is not')))
  const stuck = by(failing('EINVAL'))
  t.match(await answer(stuck.leave(staging, present, undefined, confirm)), { code: 'EINVAL', syscall: 'renameat2' })
  t.strictSame([stuck.gone, places()], [false, ['ours', 'nothing']])
  await stuck.stageLink(staging, 'elsewhere')
  const refused = await answer(stuck.leave(staging, present, 'elsewhere', confirm))
  t.match(refused, { code: 'EINVAL', message: /cannot exchange two names/ })
  t.strictSame([stuck.gone, places()], [false, ['ours', 'elsewhere']])
  class Lost extends NodeFileSystem {
    override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      await super.rename(...args)
      throw failure('EIO', 'renameat2')
    }
  }
  const lost = by(new Lost())
  t.equal(await answer(lost.leave(staging, present, 'elsewhere', confirm)), 'done')
  t.strictSame([lost.gone, places()], [true, ['elsewhere', 'ours']])
})

await t.test('what comes back takes the place of its own link only', async (t) => {
  const { target, by, places } = await scene(t)
  renameSync(target, join(target, '..', staging))
  const departure = by()
  departure.gone = true
  mkdirSync(join(target, 'theirs'), { recursive: true })
  const taken = { reason: 'TargetForeign', published: true, message: new RegExp(`somebody made ${target} meanwhile`) }
  t.match(await answer(departure.comeBack(staging, [])), taken)
  t.match(await answer(departure.comeBack(staging, ['elsewhere'])), taken)
  t.strictSame([departure.gone, places()], [true, ['theirs', 'ours']])
  rmSync(target, { recursive: true })
  symlinkSync('another', target)
  t.match(await answer(departure.comeBack(staging, ['elsewhere'])), taken)
  t.strictSame(places(), ['another', 'ours'])
  const stuck = by(failing('EIO'))
  stuck.gone = true
  for (const links of [[], ['another']]) t.match(await answer(stuck.comeBack(staging, links)), { code: 'EIO' })
  t.strictSame([stuck.gone, places()], [true, ['another', 'ours']])
  let calls = 0
  const once = beforeRename(() => {
    if (++calls === 1) throw failure('EIO', 'renameat2')
  })
  t.match(await answer(by(once).comeBack(staging, ['elsewhere'])), { code: 'EIO' })
  t.strictSame(places(), ['another', 'ours'], 'what failed is not undone')
  await departure.comeBack(staging, ['elsewhere', 'another'])
  t.strictSame([departure.gone, places()], [false, ['ours', 'another']])
})

await t.test('a link that goes as soon as it is made is reported', async (t) => {
  const { root, by, places } = await scene(t)
  const { fs } = intercepted((call) => {
    if (call === 'look') unlinkSync(join(root, staging))
  })
  const made = by(fs)
    .stageLink(staging, 'elsewhere')
    .then(() => undefined)
  t.match(await answer(made), { message: `${staging} is gone in the instant in which it was made` })
  t.strictSame(places(), ['ours', 'nothing'])
})

await t.test(
  "a link that was left is removed by what its record says; what is not that link is somebody else's",
  async (t) => {
    const { root, target, by, places } = await scene(t)
    const claim = { name: staging, staged: '1', old: '2' }
    const left = record(2, 'a', 'a', { removing: { since: 0, link: 'elsewhere' }, staging: claim })
    const others = [record(3, 'a', 'b'), left]
    renameSync(join(target, 'ours'), join(root, 'theirs'))
    rmdirSync(target)
    t.equal(await answer(by().removeLink(others)), 'done', 'it is gone already')
    symlinkSync('elsewhere', target)
    t.match(await answer(by(failing('EIO')).removeLink(others)), { code: 'EIO' })
    t.strictSame(places(), ['elsewhere', 'nothing'])
    symlinkSync('elsewhere', join(root, staging))
    t.match(await answer(by().removeLink(others)), { code: 'EEXIST' })
    t.strictSame(places(), ['elsewhere', 'elsewhere'], 'what has that name already stays')
    unlinkSync(join(root, staging))
    const asked: unknown[] = []
    const { fs } = intercepted((call, args) => {
      if (call === 'rename' || call === 'sync') asked.push(call, ...(call === 'rename' ? [args[1], args[3]] : []))
    })
    t.equal(await answer(by(fs).removeLink(others)), 'done')
    t.strictSame(
      [asked.splice(0), places()],
      [
        ['rename', 'certs', staging],
        ['nothing', 'nothing'],
      ],
    )
    symlinkSync('elsewhere', target)
    const unclaimed = record(2, 'a', 'a', { removing: { since: 0, link: 'elsewhere' } })
    t.equal(await answer(by(fs).removeLink([unclaimed])), 'done')
    t.match(asked.splice(0), ['rename', 'certs', /^\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}$/])
    t.strictSame(readdirSync(root), ['theirs'])
    renameSync(join(root, 'theirs'), target)
    mkdirSync(join(target, 'sub'))
    const message = new RegExp(
      `another program replaced ${target} meanwhile.*holdfast put its content back.*see what it holds`,
    )
    t.match(await answer(by(fs).removeLink(others)), { reason: 'TargetForeign', published: false, message })
    t.strictSame(asked, ['rename', 'certs', staging, 'rename', staging, 'certs', 'sync'], 'durably')
    t.strictSame(places(), ['sub', 'nothing'])
    const reason = await by()
      .removeLink([])
      .catch((error: unknown) => (error as { reason?: unknown }).reason ?? 'fails')
    t.equal(reason, 'TargetForeign', 'where no record tells of a link, none is ours')
    t.strictSame(places(), ['sub', 'nothing'])
  },
)
