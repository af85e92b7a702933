import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, open, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { onThisThread } from '../../native/index.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { replaceDirectory } from '../../src/durable/index.js'

const directory = mkdtempSync(join(tmpdir(), 'holdfast-this-thread-'))
t.teardown(() => rmSync(directory, { recursive: true, force: true }))

/** Keeps every thread of libuv's pool until the function that it returns is called. */
function takeAllThreads(): () => Promise<void> {
  const pipes = Array.from({ length: Number(process.env['UV_THREADPOOL_SIZE'] ?? 4) }, (_, index) =>
    join(directory, `pipe-${index}`),
  )
  execFileSync('mkfifo', pipes)
  const opened = pipes.map(
    (pipe) =>
      new Promise<void>((resolve, reject) => {
        open(pipe, constants.O_RDONLY, (error, descriptor) => {
          if (error) {
            reject(error)
            return
          }
          closeSync(descriptor)
          resolve()
        })
      }),
  )
  return async () => {
    const writers = pipes.map((pipe) => openSync(pipe, constants.O_RDWR))
    await Promise.all(opened)
    for (const writer of writers) closeSync(writer)
  }
}

await t.test('a publication takes no thread of the pool', async (t) => {
  const target = join(directory, 'target')
  const publish = (content: string) => replaceDirectory(target, { files: { a: content, 'sub/b': content } })
  await publish('old')
  const giveBack = takeAllThreads()
  // A call that waits for a thread would wait for ever.
  const late = new AbortController()
  const deadline = setTimeout(() => {
    late.abort()
    void giveBack()
  }, 10_000)
  try {
    t.equal((await onThisThread(() => publish('new'))).outcome, 'replaced')
    t.equal(readFileSync(join(target, 'sub/b'), 'utf8'), 'new')
    const error = await onThisThread(() => replaceDirectory(join(target, 'a/c'), { files: {} })).catch(
      (e: unknown) => e,
    )
    t.match(error, { code: 'ENOTDIR', published: false }, 'a failure is told as on a thread')
  } finally {
    clearTimeout(deadline)
    if (!late.signal.aborted) await giveBack()
  }
  t.notOk(late.signal.aborted)
})

await t.test('timers and signals have their turn between two calls', async (t) => {
  const fs = new NodeFileSystem()
  const opened = await fs.openPath(directory)
  const timer = new AbortController()
  setTimeout(() => timer.abort(), 1)
  await onThisThread(async () => {
    // No turn of the event loop but those that the calls give.
    for (let call = 0; !timer.signal.aborted && call < 1_000_000; call++) await fs.look(opened, 'nothing')
  })
  t.ok(timer.signal.aborted)
  await fs.close(opened)
})
