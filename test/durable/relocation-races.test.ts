/** Others publish, remove or move the same directories at each instant at which a relocation holds no lock: nothing of theirs is lost. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceDirectory } from '../../src/durable/index.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import { relocate } from '../../src/durable/move/relocation.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import { Observed } from './relocation-story.js'
import { contents, scratch } from './scratch.js'

/** Another program acts before one of the stats of a directory; not while relocate holds a lock, for which it would wait. */
class Beside extends Observed {
  protected readonly locks = new Set<number>()
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
    if (held) this.locks.add(lock)
    return held
  }

  override close(descriptor: number): Promise<void> {
    this.locks.delete(descriptor)
    return super.close(descriptor)
  }

  override async openPath(path: string): Promise<number> {
    if (this.locks.size === 0 && ++this.looks === this.at) await this.act()
    return super.openPath(path)
  }
}

/** Another program acts before `sub` is opened. */
class Reading extends Beside {
  override openPath(path: string): Promise<number> {
    return Observed.prototype.openPath.call(this, path)
  }

  override async openDirectory(parent: number, name: string): Promise<number> {
    if (name === 'sub' && this.locks.size === 0 && ++this.looks === this.at) await this.act()
    return super.openDirectory(parent, name)
  }
}

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
  let reads = Infinity
  for (let at = 1; at <= reads; at++) {
    const root = scratch(t)
    const [from, to] = [join(root, 'was/certs'), join(root, 'is/certs')]
    await replaceDirectory(to, { files: { 'sub/a': '1' } })
    let versions = 1
    const fs = new Reading(at, () => replaceDirectory(to, { files: { 'sub/a': `${++versions}` } }))
    t.equal(await move(fs, from, to), undefined, `read ${at}`)
    reads = fs.looks
    t.strictSame(contents(to), { 'sub/a': `${versions}` }, `read ${at}`)
    t.equal(versions, at <= reads ? 2 : 1)
  }
  t.ok(reads >= 2, `${reads} reads`)
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
