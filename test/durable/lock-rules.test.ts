/** How a caller gets a lock, call by call: when it tries again, whose file counts, and in which order it closes descriptors. */
import { getEventListeners } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Attributes, Descriptor, LockHolder } from '../../src/durable/file-system.js'
import { DurableCalls } from '../../src/durable/index.js'
import { lock } from '../../src/durable/path/lock.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import type { Parent } from '../../src/durable/path/resolve.js'
import { Scope } from '../../src/durable/path/scope.js'
import { codeOf } from '../../src/errors.js'
import { scratch } from './scratch.js'

/** The kernel's answers about locks: each list in order, and then the true ones. */
interface Answers {
  readonly had?: boolean[]
  /** Who holds it, at each look; afterwards it is another process. */
  readonly holders?: (LockHolder | undefined)[]
  /** Of the first file that is opened, of the second, … */
  readonly links?: readonly number[]
  readonly owner?: number
  readonly beforeTry?: () => void
}

class Locks extends NodeFileSystem {
  readonly did: string[] = []
  readonly held = new Set<Descriptor>()
  /** Called at each look at a name that is no lock. */
  looked = (): void => undefined
  #opened = 0

  constructor(readonly answers: Answers = {}) {
    super()
  }

  override async openLock(parent: Descriptor, name: string): Promise<Descriptor> {
    this.did.push('open')
    this.#opened += 1
    const file = await super.openLock(parent, name)
    this.held.add(file)
    return file
  }

  override tryLock(file: Descriptor): boolean {
    this.did.push('try')
    this.answers.beforeTry?.()
    return this.answers.had?.shift() ?? super.tryLock(file)
  }

  override lockHolder(): Promise<LockHolder | undefined> {
    this.did.push('look')
    const { holders = [] } = this.answers
    return Promise.resolve(holders.length > 0 ? holders.shift() : 'another process')
  }

  override async attributes(descriptor: Descriptor): Promise<Attributes> {
    const found = await super.attributes(descriptor)
    if (!this.held.has(descriptor)) {
      this.looked()
      return found
    }
    return { ...found, links: this.answers.links?.[this.#opened - 1] ?? found.links, uid: this.answers.owner ?? 0 }
  }

  override async close(descriptor: Descriptor): Promise<void> {
    // As late as a disk may be with it: a caller that does not wait for it goes on first.
    await new Promise(setImmediate)
    if (this.held.delete(descriptor)) this.did.push('close')
    return super.close(descriptor)
  }
}

async function parentAt(scope: Scope, path: string): Promise<Parent> {
  const directory = await scope.keep(scope.fs.openPath(path))
  return { directory, attributes: await scope.fs.attributes(directory) }
}

/** Asks for a lock of a target's own. */
async function locked(t: Test, fs: Locks, timeout: number | undefined, signal?: AbortSignal): Promise<unknown> {
  const scope = new Scope(fs)
  const path = scratch(t)
  try {
    await lock(scope, { parent: await parentAt(scope, path), name: '.lock', target: join(path, 'x'), timeout, signal })
    return 'had'
  } catch (error) {
    return codeOf(error) ?? error
  } finally {
    fs.did.push('end')
    await scope.closeAll()
  }
}

// The first: where this is wrong, each caller of a lock waits for ever.
await t.test('lock closes a file that has lost its name, and locks its successor', async (t) => {
  const fs = new Locks({ links: [0, 1, 2] })
  t.equal(await locked(t, fs, 0), 'had')
  t.same(fs.did, ['open', 'try', 'close', 'open', 'try', 'end', 'close'])
})

await t.test('lock tries a held lock once, where there is no time to wait', async (t) => {
  for (const timeout of [undefined, 0]) {
    const fs = new Locks({ had: [false, true] })
    t.equal(await locked(t, fs, timeout), 'EAGAIN', `${timeout}`)
    t.same(fs.did, ['open', 'try', 'look', 'end', 'close'])
  }
})

await t.test('another call of this process is waited for, unless the request has a limit', async (t) => {
  const own = 'another call of this process'
  const patient = new Locks({ had: [false, false, false, true], holders: [own, undefined, own] })
  t.equal(await locked(t, patient, undefined), 'had')
  t.same(patient.did, ['open', 'try', 'look', 'try', 'look', 'try', 'look', 'try', 'end', 'close'])
  const limited = new Locks({ had: [false, true], holders: [own] })
  t.equal(await locked(t, limited, 0), 'EAGAIN')
  const aborted = new Locks({ had: [false, true], holders: [own] })
  t.equal(await locked(t, aborted, undefined, AbortSignal.abort()), 'EAGAIN')
  const taken = new Locks({ had: [false, false, true], holders: [own, 'another process'] })
  t.equal(await locked(t, taken, undefined), 'EAGAIN')
})

await t.test(
  'a holder that no look shows may have let go meanwhile; or it is a process that this one does not see',
  async (t) => {
    const unseen = (looks: number) => Array.from({ length: looks }, () => undefined)
    const gone = new Locks({ had: [...unseen(7).map(() => false), true], holders: unseen(7) })
    t.equal(await locked(t, gone, 0), 'had')
    const hidden = new Locks({ had: [...unseen(8).map(() => false), true], holders: unseen(8) })
    t.equal(await locked(t, hidden, undefined), 'EAGAIN')
  },
)

await t.test('lock tries again until the time is over, or the caller aborts', async (t) => {
  const patient = new Locks({ had: [false, false, true] })
  t.equal(await locked(t, patient, 60_000), 'had')
  t.same(patient.did, ['open', 'try', 'try', 'try', 'end', 'close'])
  const controller = new AbortController()
  const aborted = new Locks({ had: [false, true], beforeTry: () => controller.abort() })
  t.equal(await locked(t, aborted, 60_000, controller.signal), 'EAGAIN')
  t.same(aborted.did, ['open', 'try', 'look', 'end', 'close'])
})

await t.test('a lock counts that belongs to root or to this user, and no other', async (t) => {
  for (const [owner, user, answer] of [
    [0, 1000, 'had'],
    [0, 0, 'had'],
    [1000, 1000, 'had'],
    [1, 1000, 'EPERM'],
    [1001, 1000, 'EPERM'],
    [1000, 0, 'EPERM'],
  ] as const) {
    const fs = Object.assign(new Locks({ owner }), { user: { uid: user, gid: user } })
    t.equal(await locked(t, fs, 0), answer, `of user ${owner}, for user ${user}`)
  }
})

await t.test('its file is closed before the next call of this process has its turn', async (t) => {
  const fs = new Locks()
  const durable = new DurableCalls(fs)
  const path = join(scratch(t), 'lock')
  const first = await durable.lock(path, 0, undefined)
  const looked = new Promise<void>((resolve) => (fs.looked = resolve))
  const second = durable.lock(path, 60_000, undefined)
  await looked
  // It has nothing more to ask of the disk: by the next turn of the event loop it waits.
  await new Promise(setImmediate)
  t.same(fs.did, ['open', 'try'])
  await first.release()
  await (await second).release()
  t.same(fs.did, ['open', 'try', 'close', 'open', 'try', 'close'])
})

await t.test('a wait for another call of this process leaves no listener and no timer behind', async (t) => {
  const fs = new NodeFileSystem()
  const scope = new Scope(fs)
  const path = scratch(t)
  const parent = await parentAt(scope, path)
  const { signal } = new AbortController()
  const request = { parent, name: '.lock', target: join(path, 'x'), timeout: 1000, signal }
  const one = new Scope(fs)
  await lock(one, request)
  const next = lock(scope, request)
  t.equal(getEventListeners(signal, 'abort').length, 1, 'it waits')
  await one.closeAll()
  await next
  t.same(getEventListeners(signal, 'abort'), [])
  await scope.closeAll()
})

await t.test('a lock that is not had stays open nowhere', async (t) => {
  const fs = new Locks({ had: [false] })
  t.equal(await new DurableCalls(fs).lock(join(scratch(t), 'lock'), 0, undefined).catch(codeOf), 'EAGAIN')
  t.same(fs.did, ['open', 'try', 'look', 'close'])
})
