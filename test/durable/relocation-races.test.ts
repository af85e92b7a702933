/** Others publish, remove or move the same directories at each instant at which a relocation holds no lock: nothing of theirs is lost. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceDirectory } from '../../src/durable/index.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import { relocate } from '../../src/durable/move/relocation.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import { intercepted } from './intercepted.js'
import { Observed, story } from './relocation-story.js'
import { contents, scratch } from './scratch.js'

/** Another program acts before one of the stats of a directory; not while relocate holds a lock, for which it would wait. */
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

const isRoot = process.geteuid?.() === 0

const options = { keep: 0, publication: { publisher: 'agent' } } as const

/** As each run of an agent does, until nothing is waited for. */
async function move(fs: Observed, from: string, to: string): Promise<DurableWriteError | undefined> {
  for (let calls = 0; calls < 4; calls++) {
    try {
      const { waits } = await relocate(fs, to, { from, ...options })
      if (waits === undefined) return undefined
    } catch (error) {
      if (error instanceof DurableWriteError) return error
      throw error
    }
  }
  throw new Error('it waits for ever')
}

/** `step`: from one stat to the next that counts; `act`: the other program; `after`: what must hold then. */
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
    await replaceDirectory(to, { files: { a: '3' }, movedFrom: from })
    const fs = new Beside(at, () => act(from))
    const failure = await move(fs, from, to)
    isOver = fs.looks < at
    if (!isOver) await after({ from, to, failure }, `look ${at}: ${failure?.message ?? 'moved'}`)
  }
  t.ok(at > 20, `${at} looks`)
}

const heldAt = (path: string): string | undefined => (existsSync(path) ? contents(path)['a'] : undefined)

await t.test('relocate looks again where another process publishes the new path while it reads that', async (t) => {
  const root = scratch(t)
  const [from, to] = [join(root, 'was/certs'), join(root, 'is/certs')]
  await replaceDirectory(to, { files: { 'sub/a': '1' } })
  let versions = 1
  const { fs } = intercepted((call, [, name]) => {
    if (call !== 'openDirectory' || name !== 'sub' || versions > 1) return undefined
    return replaceDirectory(to, { files: { 'sub/a': `${++versions}` } })
  })
  t.match(await relocate(fs, to, { from, ...options }), { entered: 'done' })
  t.strictSame([versions, contents(to)], [2, { 'sub/a': '2' }])
})

await t.test('an old path that another program removes meanwhile does not come back', async (t) => {
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

await t.test('what another program publishes at the old path meanwhile is its own', async (t) => {
  let published = 0
  let refused: unknown
  await atEachLook(
    t,
    1,
    async (from) => {
      refused = undefined
      const request = { files: { a: '2' }, publisher: 'install', movedTo: null } as const
      await replaceDirectory(from, request).catch((error: unknown) => (refused = error))
    },
    async ({ from, failure }, where) => {
      // From its first publication on, the old path is the agent's.
      if (refused !== undefined) return void t.match(refused, { reason: 'TargetForeign' })
      published += 1
      t.equal(heldAt(from), '2', where)
      t.match(failure?.message ?? '', /^$|holdfast install published .*holdfast agent is now asked/, where)
      return Promise.resolve()
    },
  )
  t.ok(published > 5, `${published} times`)
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
    const refused = async (to: string): Promise<void> => {
      await replaceDirectory(to, { files: { a: '2' }, movedFrom: from })
      await t.rejects(relocate(new Observed(), to, { from, ...options }), { message: /lies in the other/ })
    }
    await refused(join(bound, 'tls'))
    execFileSync('mount', ['--bind', join(root, 'was'), join(root, 'is')])
    t.teardown(() => execFileSync('umount', [join(root, 'is')]))
    const inside = join(root, 'is/certs/sub/tls')
    await t.rejects(replaceDirectory(inside, { files: { a: '2' }, movedFrom: from }), {
      message: / lies in .*certs, which holdfast publishes/,
    })
    t.match(contents(from), { 'sub/a': '1' })
  },
)
