/** Others publish, remove or move the same directories at each instant at which a relocation holds no lock: nothing of theirs is lost. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableWriteError, readPublication, replaceDirectory } from '../../src/durable/index.js'
import { relocateByHand } from '../../src/durable/relocate-by-hand.js'
import { relocate } from '../../src/durable/relocation.js'
import { removePublished } from '../../src/durable/removal.js'
import * as library from '../../src/index.js'
import { Observed, story } from './relocation-story.js'
import { contents, scratch } from './scratch.js'

/** Somebody else acts before one of the looks for a directory; not while a lock is held, for which he would wait. */
class Beside extends Observed {
  readonly #locks = new Set<number>()
  looks = 0

  constructor(
    readonly at: number,
    readonly act: () => Promise<unknown>,
  ) {
    super()
  }

  override now(): number {
    return Date.now()
  }

  override tryLock(lock: number): boolean {
    const held = super.tryLock(lock)
    if (held) this.#locks.add(lock)
    return held
  }

  override close(descriptor: number): Promise<void> {
    this.#locks.delete(descriptor)
    return super.close(descriptor)
  }

  override async openPath(path: string): Promise<number> {
    if (this.#locks.size === 0 && ++this.looks === this.at) await this.act()
    return super.openPath(path)
  }
}

const alone = () => new Beside(0, () => Promise.resolve())
const isRoot = process.geteuid?.() === 0

const options = { as: 'removed', force: true } as const

/** As the command does, until nothing is waited for. */
async function moveByHand(fs: Observed, from: string, to: string): Promise<DurableWriteError | undefined> {
  for (let calls = 0; calls < 4; calls++) {
    try {
      const { waits } = await relocateByHand(fs, from, to, options)
      if (waits === undefined) return undefined
    } catch (error) {
      if (error instanceof DurableWriteError) return error
      throw error
    }
  }
  throw new Error('it waits for ever')
}

/** `step`: from one look to the next that counts; `act`: what somebody else does; `after`: what must hold then. */
async function atEachLook(
  t: Test,
  step: number,
  act: (from: string) => Promise<unknown>,
  after: (paths: { from: string; to: string; failure: DurableWriteError | undefined }, where: string) => Promise<void>,
): Promise<void> {
  const root = scratch(t)
  let at = 1
  for (let isOver = false; !isOver; at += step) {
    for (const name of ['was', 'is']) mkdirSync(join(root, `${at}`, name), { recursive: true })
    const [from, to] = [join(root, `${at}/was/certs`), join(root, `${at}/is/tls`)]
    await replaceDirectory(from, { files: { a: '1' } })
    const fs = new Beside(at, () => act(from))
    const failure = await moveByHand(fs, from, to)
    isOver = fs.looks < at
    if (!isOver) await after({ from, to, failure }, `look ${at}: ${failure?.message ?? 'moved'}`)
  }
  t.ok(at > 20, `${at} looks`)
}

const heldAt = (path: string): string | undefined => (existsSync(path) ? contents(path)['a'] : undefined)

await t.test('what is published at the old path meanwhile is lost at no instant', async (t) => {
  await atEachLook(
    t,
    1,
    (from) => library.replaceDirectory(from, { files: { a: '2' } }),
    async ({ from, to }, where) => {
      t.ok([heldAt(from), heldAt(to)].includes('2'), where)
      await moveByHand(alone(), from, to)
      t.same([heldAt(from), heldAt(to)], [undefined, '2'], where)
    },
  )
})

await t.test('an old path that somebody removes meanwhile does not come back', async (t) => {
  await atEachLook(
    t,
    3,
    (from) => removePublished(new Observed(), from, { force: true }).catch(() => undefined),
    async ({ from, failure }, where) => {
      t.notOk(existsSync(from), where)
      t.match(
        failure?.message ?? '',
        /^$|is not there any more|changed while it was read|published nothing at|removed meanwhile/,
        where,
      )
      return Promise.resolve()
    },
  )
})

await t.test('what an agent publishes at the old path meanwhile is its own', async (t) => {
  await atEachLook(
    t,
    3,
    (from) => replaceDirectory(from, { files: { a: '2' }, publisher: 'agent', movedTo: null }),
    async ({ from, failure }, where) => {
      t.equal(heldAt(from), '2', where)
      t.match(failure?.message ?? '', /^$|changed while it was read|holdfast agent publishes/, where)
      return Promise.resolve()
    },
  )
})

await t.test('of two paths that move to each other, one at least stays', async (t) => {
  const { from, to } = await story(t)
  await replaceDirectory(to, { files: { a: '1' } })
  // Both have begun before either of them says where it goes.
  const began = { as: 'removed', keep: 60_000 } as const
  const { digest = '' } = (await readPublication(from)) ?? {}
  await replaceDirectory(to, { files: { a: '1' }, movedFrom: { from, as: 'removed' } })
  await relocate(alone(), to, { from, ...began, byHand: { digest: 'another' } })
  await relocate(alone(), from, { from: to, ...began, byHand: { digest: 'another' } }).catch(() => undefined)
  const refused = { reason: 'TargetUnfit', message: /itself comes from .*run "holdfast relocate/ }
  for (const [old, now] of [
    [from, to],
    [to, from],
  ] as const) {
    if ((await readPublication(old))?.relocation === undefined) continue
    await t.rejects(relocate(new Observed(), now, { ...options, from: old, keep: 0, byHand: { digest } }), refused)
  }
  t.same([heldAt(from), heldAt(to)], ['1', '1'])
  t.equal(await moveByHand(alone(), from, to), undefined, 'then each of the two can go on')
  t.same([heldAt(from), heldAt(to)], [undefined, '1'])
})

await t.test('killed before it follows, it waits for the disk of the old path', async (t) => {
  const { root, from, to } = await story(t)
  await replaceDirectory(to, { files: { a: '1' }, movedFrom: { from, as: 'removed' } })
  await replaceDirectory(from, { files: { a: '1' }, movedTo: to })
  renameSync(join(root, 'was'), join(root, 'unmounted'))
  t.match(await relocateByHand(new Observed(), from, to, options), { waits: /its disk may not be mounted/ })
  renameSync(join(root, 'unmounted'), join(root, 'was'))
  t.equal(await moveByHand(alone(), from, to), undefined)
  t.notOk(existsSync(from))

  // A copy of it is restored.
  await replaceDirectory(from, { files: { a: '1' }, movedTo: to })
  t.equal(await moveByHand(alone(), from, to), undefined)
  t.notOk(existsSync(from))
})

await t.test(
  'a path below the other one by a bind mount is refused',
  { skip: isRoot ? false : 'mounting needs root: run by CI' },
  async (t) => {
    const { root, from } = await story(t, { files: { 'sub/a': '1' } })
    const bound = join(root, 'bound')
    mkdirSync(bound)
    execFileSync('mount', ['--bind', join(from, 'sub'), bound])
    t.teardown(() => execFileSync('umount', [bound]))
    await t.rejects(relocateByHand(new Observed(), from, join(bound, 'tls'), options), { message: /lies in the other/ })
    execFileSync('mount', ['--bind', join(root, 'was'), join(root, 'is')])
    t.teardown(() => execFileSync('umount', [join(root, 'is')]))
    const inside = join(root, 'is/certs/sub/tls')
    await t.rejects(relocateByHand(new Observed(), from, inside, options), { message: /lies in the other/ })
    t.same(contents(from), { 'sub/a': '1' })
  },
)
