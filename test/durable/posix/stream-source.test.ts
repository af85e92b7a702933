/** Where a stream stays until its publication. */
import { readdirSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { StreamSource } from '../../../src/durable/posix/stream-source.js'
import { codeOf } from '../../../src/errors.js'
import { failure } from '../intercepted.js'
import { scratch } from '../scratch.js'

async function* streamOf(...chunks: (string | Uint8Array)[]): AsyncIterable<string | Uint8Array> {
  for (const chunk of chunks) yield Promise.resolve(chunk)
}

await t.test('each piece gets into the unnamed file once, as a whole', async (t) => {
  const root = scratch(t)
  const pieces = Array.from({ length: 1025 }, (_, index) => Buffer.alloc(1024, String(index)))
  const source = new StreamSource(streamOf(...pieces), 'a', join(root, 'target'), {})
  const size = await Promise.race([source.size(), delay(60_000, 'it writes on', { ref: false })])
  t.equal(size, 1025 * 1024)
  const read: Buffer[] = []
  if (size !== 'it writes on') for await (const piece of source.pieces()) read.push(Buffer.from(piece))
  t.ok(Buffer.concat(read).equals(Buffer.concat(pieces)))
  await source.close()
})

await t.test('a MiB of a stream stays in memory; more is in an unnamed file beside the target', async (t) => {
  const root = scratch(t)
  const mebibyte = Buffer.alloc(1024 * 1024)
  const openIn = () =>
    readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        const path = readlinkSync(`/proc/self/fd/${fd}`)
        return path.startsWith(root) ? [`/proc/self/fd/${fd}`] : []
      } catch {
        return []
      }
    })
  for (const [chunks, open] of [
    [[mebibyte], 0],
    [[mebibyte, 'x'], 1],
  ] as const) {
    const source = new StreamSource(streamOf(...chunks), 'a', join(root, 'not', 'made', 'target'), {})
    t.equal(await source.size().catch(codeOf), mebibyte.length + chunks.length - 1)
    t.equal(openIn().length, open)
    for (const fd of openIn()) t.equal(statSync(fd).mode & 0o7777, 0o600)
    t.strictSame(readdirSync(root), [], 'a crash frees it')
    await source.close()
    t.strictSame(openIn(), [])
  }
})

await t.test('an abort ends a reading that hangs with its reason, and ends the stream', async (t) => {
  let told = 0
  const hanging: AsyncIterable<unknown> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<never>(() => {}),
      return: () => {
        told += 1
        return Promise.resolve({ done: true, value: undefined })
      },
    }),
  }
  for (const stream of [hanging, new PassThrough()]) {
    const stop = new AbortController()
    const source = new StreamSource(stream, 'a', '/proc/target', { signal: stop.signal })
    const outcome = source.size().catch((error: unknown) => error)
    const reason = new Error('enough')
    stop.abort(reason)
    const found = await outcome
    t.ok(found === reason || (found as Error).cause === reason, String(found))
    t.notOk(found instanceof DurableWriteError)
    await source.close()
  }
  t.equal(told, 1)
})

await t.test('a stream’s error keeps its code; a DurableWriteError passes through unchanged', async (t) => {
  const failing = async (error: Error): Promise<unknown> => {
    const stream = Readable.from(
      (async function* () {
        yield await Promise.reject<string>(error)
      })(),
    )
    const source = new StreamSource(stream, 'a', '/proc/target', {})
    const found = await source.size().catch((thrown: unknown) => thrown)
    await source.close()
    return found
  }
  t.match(await failing(failure('ECONNRESET', 'read')), { code: 'ECONNRESET', message: /^the stream of a failed: / })
  t.match(await failing(new Error('torn')), { code: 'EIO', message: /^the stream of a failed: torn/ })
  const own = new DurableWriteError('x', { code: 'ESTALE', state: 'y', syscall: 'read', path: '/a' })
  t.equal(await failing(own), own)
})

await t.test('where the file cannot be made, the stream is not kept in memory instead', async (t) => {
  const root = scratch(t)
  writeFileSync(join(root, 'file'), '')
  const large = Buffer.alloc(1024 * 1024 + 1)
  const source = new StreamSource(streamOf(large), 'a', join(root, 'file', 'target'), {})
  t.equal(await source.size().catch(codeOf), 'ENOTDIR')
  await source.close()
})

// procfs makes no unnamed files, and denies each user but root the attempt.
const procfsNeeds = process.geteuid?.() === 0 ? false : 'needs root'
const inMemory = 'a file system without unnamed files: streams stay in memory, up to a limit'

await t.test(inMemory, { skip: procfsNeeds }, async (t) => {
  const most = Buffer.alloc(64 * 1024 * 1024)
  for (const chunks of [[most], [most.subarray(1), 'x']]) {
    const fits = new StreamSource(streamOf(...chunks), 'a', '/proc/target', {})
    t.equal(await fits.size(), most.length)
    await fits.close()
  }
  const large = new StreamSource(streamOf(most, 'x'), 'a', '/proc/target', {})
  const said = /larger than 64 MiB.*; give the content as a path/
  t.match(await large.size().catch((error: unknown) => error), { code: 'EFBIG', message: said })
  await large.close()
})

await t.test('who gives up a stream stops it before anything else is waited for', async (t) => {
  const stream = new PassThrough()
  const source = new StreamSource(stream, 'a', '/proc/target', {})
  const closing = source.close()
  t.ok(stream.destroyed, 'at once')
  await closing
})

await t.test('StreamSource refuses a chunk that is neither text nor bytes', async (t) => {
  const source = new StreamSource(streamOf('x', 7 as unknown as string), 'a', '/proc/target', {})
  t.equal(await source.size().catch(codeOf), 'EINVAL')
  await source.close()
})

await t.test('a driver that knows no unnamed files says so in one of three ways', async (t) => {
  const said = ['ENOTSUP', 'EISDIR', 'EINVAL', 'EIO']
  t.teardown(() => syncBuiltinESMExports())
  const asked: unknown[] = []
  t.intercept(promises, 'open', {
    value: (...args: unknown[]) => {
      asked.push(args)
      return Promise.reject(failure(said[0] ?? '', 'open'))
    },
  })
  syncBuiltinESMExports()
  for (const answer of ['in memory', 'in memory', 'in memory', 'EIO']) {
    const source = new StreamSource(streamOf(Buffer.alloc(1024 * 1024), 'x'), 'a', '/etc/target', {})
    const size = await source.size().catch(codeOf)
    t.equal(size === 1024 * 1024 + 1 ? 'in memory' : size, answer, said.shift() ?? '')
    await source.close()
  }
  t.equal(asked.length, 4)
})
