/**
 * The library in worker threads, as pools of test runners use them, and in two copies: their leftovers, and their waits for one another.
 */
// Own process: it counts the threads of its process.
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { tryLock } from '../native/index.js'
import * as holdfast from '../src/index.js'
import { NodeFileSystem } from '../src/durable/posix/file-system.js'
import { namesFor } from '../src/durable/path/names.js'
import { project } from './project.js'
import { contents, scratch, scratchWith } from './durable/scratch.js'
import { Random } from './random.js'
import { replay, seed } from './seed.js'

const { replaceDirectory } = holdfast

export interface Order {
  /** Where a copy of the library is. */
  readonly library: string
  readonly target: string
  readonly times: number
  readonly lockTimeout?: number
}

const library = new URL('../src/index.js', import.meta.url).href

class Thread {
  readonly #worker: Worker
  readonly said: string[] = []
  errors = ''

  constructor(order: Partial<Order> & Pick<Order, 'target'>) {
    const workerData: Order = { library, times: 1, ...order }
    this.#worker = new Worker(new URL('publishing-thread.js', import.meta.url), { workerData, stderr: true })
    this.#worker.on('message', (outcome: string) => this.said.push(outcome))
    this.#worker.stderr.setEncoding('utf8').on('data', (text: string) => (this.errors += text))
  }

  publishes(): Promise<unknown> {
    return once(this.#worker, 'message')
  }

  ends(): Promise<unknown> {
    return once(this.#worker, 'exit')
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }
}

/** The kernel maps the ring of each context into the process. */
function contextsOfAio(): number {
  return readFileSync('/proc/self/maps', 'latin1').split('/[aio]').length - 1
}

/** The package in another place, with the same koffi: what two versions of it in one project are. */
function secondCopy(directory: string): string {
  const copy = join(directory, 'copy')
  mkdirSync(copy)
  for (const part of ['src', 'native']) cpSync(join(project, 'dist', part), join(copy, part), { recursive: true })
  cpSync(join(project, 'package.json'), join(copy, 'package.json'))
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'))
  return join(copy, 'src/index.js')
}

await t.test(
  `threads that end, or are terminated at any instant, leave nothing in the process (${replay})`,
  async (t) => {
    const root = scratch(t)
    const random = new Random(seed)
    await replaceDirectory(join(root, 'main'), { files: { a: '1' } })
    const before = contextsOfAio()
    const ending = [0, 1, 2].map((index) => new Thread({ target: join(root, `ends-${index}`), times: 3 }))
    await Promise.all(ending.map((thread) => thread.ends()))
    for (const thread of ending) t.strictSame([thread.said.length, thread.errors], [3, ''])
    for (let round = 0; round < 6; round++) {
      const target = join(root, `terminated-${round % 3}`)
      const thread = new Thread({ target, times: Infinity })
      await thread.publishes()
      for (let turns = random.next() * 200; turns > 0; turns--) await new Promise(setImmediate)
      await thread.terminate()
      t.equal(thread.errors, '')
      t.match(await replaceDirectory(target, { files: { a: '1' } }), { outcome: 'replaced' }, 'its lock ended with it')
    }
    t.equal(contextsOfAio(), before)
  },
)

await t.test('threads of one process wait for one another', async (t) => {
  const target = join(scratch(t), 'certs')
  const threads = [0, 1, 2].map(() => new Thread({ target, times: 4 }))
  const own = Array.from({ length: 5 }, (_, index) => replaceDirectory(target, { files: { a: String(index) } }))
  await Promise.all([...own, ...threads.map((thread) => thread.ends())])
  for (const { said } of threads)
    t.match(
      said,
      Array.from({ length: 4 }, () => /^(created|replaced|unchanged)$/),
    )
})

await t.test('two copies of the package in one process wait for one another', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  const copy = (await import(secondCopy(root))) as typeof holdfast
  t.not(copy.replaceDirectory, replaceDirectory)
  const calls = Array.from({ length: 10 }, (_, index) =>
    (index % 2 === 0 ? copy : holdfast).replaceDirectory(target, { files: { a: String(index) } }),
  )
  for (const { outcome } of await Promise.all(calls)) t.match(outcome, /^(created|replaced)$/)
  // Two copies have two queues: the kernel's lock knows no order.
  t.match(contents(target), { a: /^\d$/ })
})

await t.test('a call that may not wait, or whose time is over, says that this process holds the lock', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: '1' } })
  const fs = new NodeFileSystem()
  const parent = await fs.openPath(root)
  const lock = await fs.openLock(parent, namesFor('certs').lock)
  t.ok(tryLock(lock))
  const busy = {
    reason: 'Busy',
    message: /^another call of this process is publishing .*certs and holds its lock; /,
  }
  for (const lockTimeout of [0, 50]) await t.rejects(replaceDirectory(target, { files: {}, lockTimeout }), busy)
  const thread = new Thread({ target, lockTimeout: 0 })
  await thread.ends()
  t.match(thread.said, [busy.message])
  const caller = new AbortController()
  const waiting = replaceDirectory(target, { files: { a: '2' }, signal: caller.signal })
  const goesOn = replaceDirectory(target, { files: { a: '3' } })
  setImmediate(() => caller.abort())
  await t.rejects(waiting)
  await fs.close(lock)
  await fs.close(parent)
  t.match(await goesOn, { outcome: 'replaced' })
})
