import {
  appendFileSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { execFileSync } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import t from 'tap'
import { ContentSource } from '../../../src/durable/path/content-source.js'
import { replaceDirectories, replaceDirectory, replaceFile } from '../../../src/durable/index.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { replaceDirectory as replaceInCore } from '../../../src/durable/publish/replace.js'
import type { FileContent } from '../../../src/durable/types.js'
import { intercepted } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

/** More than one piece, and more than a stream keeps in memory. */
const size = 3 * 1024 * 1024 + 1
const big = Buffer.alloc(size, 'private ')

async function* streamOf(...chunks: (string | Uint8Array)[]): AsyncIterable<string | Uint8Array> {
  for (const chunk of chunks) yield Promise.resolve(chunk)
}

/** The error of a call; without one, an error that no test expects. */
async function failure(call: Promise<unknown>): Promise<{ readonly message: string }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return error instanceof DurableWriteError ? error : { message: `it did not fail as expected: ${String(error)}` }
}

await t.test('bytes, files and streams give the same content, digest and modes', async (t) => {
  const [root, source, link] = scratchWith(t, 'source', 'link')
  writeFileSync(source, big)
  symlinkSync(source, link)
  const target = join(root, 'made', 'target')
  const contents: Record<string, () => FileContent> = {
    bytes: () => big,
    'a path': () => ({ path: source }),
    'a path to a link': () => ({ path: link }),
    'a stream of Node': () => createReadStream(source),
    'any iterable': () => streamOf(big.subarray(0, 7), big.subarray(7).toString('utf8')),
    'a stream of the web': () => new Blob([big]).stream(),
  }
  const digests = new Set<string>()
  for (const [what, content] of Object.entries(contents)) {
    const files = { a: content(), 'sub/b': { content: content(), mode: 0o640 }, c: '' }
    const { outcome, digest } = await replaceDirectory(target, { files })
    digests.add(digest)
    t.equal(outcome, what === 'bytes' ? 'created' : 'unchanged', what)
    t.ok(readFileSync(join(target, 'sub/b')).equals(big), what)
    t.equal(statSync(join(target, 'sub/b')).mode & 0o7777, 0o640, what)
    const file = join(root, `file of ${what}`)
    t.equal((await replaceFile(file, content())).outcome, 'created')
    t.ok(readFileSync(file).equals(big), what)
  }
  t.equal(digests.size, 1)
})

await t.test('a stream source copies the buffer of a generator that uses it again', async (t) => {
  const target = join(scratch(t), 'target')
  async function* reused(): AsyncIterable<Uint8Array> {
    const buffer = Buffer.alloc(3)
    for (const text of ['one', 'two', 'six']) {
      buffer.write(text)
      yield Promise.resolve(buffer)
    }
  }
  await replaceFile(target, reused())
  t.equal(readFileSync(target, 'utf8'), 'onetwosix')
})

await t.test('a stream that was read before is not published as an empty file', async (t) => {
  const [root, target, source] = scratchWith(t, 'target', 'source')
  writeFileSync(source, 'content')
  const iterable = streamOf('content')
  await replaceFile(target, iterable)
  const read = createReadStream(source)
  await read.toArray()
  const twice = createReadStream(source)
  for (const again of [iterable, read]) {
    const error = await failure(replaceFile(target, again))
    t.match(error, { code: 'EINVAL', published: false, message: /the stream of .* was read before/ })
    t.equal(readFileSync(target, 'utf8'), 'content')
  }
  const error = await failure(replaceDirectory(join(root, 'directory'), { files: { a: twice, b: twice } }))
  t.match(error, { code: 'EINVAL', published: false })
  t.strictSame(
    readdirSync(root)
      .filter((name) => !name.startsWith('.'))
      .sort(),
    ['source', 'target'],
  )
})

await t.test('a stream that fails before its reading ends the call, and not the process', async (t) => {
  const root = scratch(t)
  const slow = new PassThrough()
  const missing = createReadStream(join(root, 'missing'))
  const last = new PassThrough()
  const call = failure(replaceDirectory(join(root, 'target'), { files: { a: slow, b: missing, c: last } }))
  await new Promise<void>((resolve) => missing.once('close', () => resolve()))
  slow.end('x')
  t.match(await call, { code: 'ENOENT', published: false, message: /the stream of "?.*b.* failed/ })
  t.ok(last.destroyed, 'what nobody reads any more is closed')
})

await t.test('a publication refuses a file that another program changes during the read', async (t) => {
  const [root, source, target] = scratchWith(t, 'source', 'target')
  await replaceFile(target, 'old')
  const before = readdirSync(root).sort()
  const { atime, mtime } = (writeFileSync(source, big), statSync(source))
  const changes = {
    'it grows': () => appendFileSync(source, 'x'),
    'it shrinks': () => writeFileSync(source, 'x'),
    'its beginning, which was read, is written again': () => {
      const file = openSync(source, constants.O_WRONLY)
      writeSync(file, 'torn')
      closeSync(file)
    },
    'it is written, and its time set back': () => {
      writeFileSync(source, Buffer.alloc(size, 'torn'))
      utimesSync(source, atime, mtime)
    },
  }
  // At both readings: for the digest, and for the stage.
  for (const at of [1, size + 1]) {
    for (const [what, change] of Object.entries(changes)) {
      writeFileSync(source, big)
      let read = 0
      let changed = false
      const progress = (bytes: number): void => {
        read += bytes
        if (changed || read < at) return
        changed = true
        change()
      }
      const error = await failure(replaceFile(target, { path: source }, { progress }))
      t.match(error, { code: 'ESTALE', path: source, published: false, reason: 'PublishFailed' }, what)
      t.match(
        error.message,
        `another program changed ${source} while holdfast read it; holdfast left ${target} as it was`,
      )
      t.equal(readFileSync(target, 'utf8'), 'old')
      t.strictSame(readdirSync(root).sort(), [...before, 'source'].sort(), 'nothing was left behind')
    }
  }
})

await t.test('a file source stops at a growing file, and refuses a file that goes between its readings', async (t) => {
  const root = scratch(t)
  const [source, other] = [join(root, 'source'), join(root, 'other')]
  const changed = { code: 'ESTALE', path: source, published: false, message: /another program changed .*source/ }
  writeFileSync(source, 'x')
  writeFileSync(other, 'y')
  let read = 0
  const grow = (bytes: number): void => {
    read += bytes
    if (read < 50) appendFileSync(source, 'x')
  }
  t.match(await failure(replaceFile(join(root, 'file'), { path: source }, { progress: grow })), changed)
  t.equal(read, 2, 'its only reading counts twice')
  t.strictSame(readdirSync(root), ['.holdfast-3b9c358f36f0a31b.lock', 'other', 'source'])
  writeFileSync(source, 'x')
  await replaceDirectory(join(root, 'target'), { files: { a: 'before' } })
  read = 0
  const remove = (bytes: number): void => {
    read += bytes
    if (read === 2) rmSync(source)
  }
  const files = { a: { path: source }, b: { path: other } }
  t.match(await failure(replaceDirectory(join(root, 'target'), { files, progress: remove })), changed)
  t.ok(read >= 2, 'both were read for the digest')
})

await t.test('a publication reads a file once for a new target, and twice to compare it first', async (t) => {
  const root = scratch(t)
  const [target, aside, source] = [join(root, 'target'), join(root, 'aside'), join(root, 'source')]
  writeFileSync(source, 'x')
  let opened = 0
  let read = 0
  let looked = false
  let meanwhile: (() => void) | undefined
  const { fs } = intercepted((call, [path]) => {
    if (looked) meanwhile?.()
    if (looked) meanwhile = undefined
    if (call === 'openContent') opened += 1
    if (call === 'lookPath' && path === target) looked = true
  })
  const progress = (bytes: number) => (read += bytes)
  const replace = async () => {
    opened = 0
    read = 0
    looked = false
    const { outcome, digest } = await replaceInCore(target, { files: { a: { path: source } }, progress }, fs)
    return { outcome, digest, opened, read }
  }
  const first = await replace()
  t.match(first, { outcome: 'created', opened: 2, read: 2 }, 'its size is asked for, and it is read')
  t.match(await replace(), { outcome: 'unchanged', digest: first.digest, opened: 2, read: 1 })
  renameSync(target, aside)
  meanwhile = () => renameSync(aside, target)
  t.match(await replace(), { outcome: 'unchanged', digest: first.digest, opened: 2 }, 'it came meanwhile')
  rmSync(target, { recursive: true })
  t.match(await replace(), { outcome: 'created', digest: first.digest, opened: 3, read: 2 }, 'its record is there')
  t.strictSame(contents(target), { a: 'x' })
})

await t.test('a publication refuses staged bytes that differ from its digest', async (t) => {
  const seen: string[] = []
  /** A disk that gives other bytes the second time, without a write. */
  class Unsteady extends ContentSource {
    protected readonly origin = '/source'
    readonly canWait = true
    #times = 0
    size = (): Promise<number> => Promise.resolve(1)
    protected async *read(): AsyncIterable<Uint8Array> {
      yield Promise.resolve(Buffer.from([++this.#times > 2 ? 1 : 0]))
    }
    close = (): Promise<void> => Promise.resolve()
  }
  const source = new Unsteady('/target', {})
  t.throws(() => source.sha256, 'before it is read')
  const drain = async (): Promise<void> => {
    for await (const piece of source.pieces()) seen.push(Buffer.from(piece).toString('hex'))
  }
  await drain()
  await drain()
  t.match(await failure(drain()), { code: 'ESTALE', published: false })
  t.strictSame(seen, ['00', '00', '01'])
})

await t.test('a file source refuses a directory, and an unreadable file', async (t) => {
  const [root, target] = scratchWith(t, 'target')
  mkdirSync(join(root, 'directory'))
  symlinkSync('directory', join(root, 'link'))
  const cases: [FileContent, object][] = [
    [
      { path: join(root, 'none') },
      {
        code: 'ENOENT',
        message:
          /could not read the content of .*target: open .*none: ENOENT; holdfast left .*target as it was; name a regular file/,
      },
    ],
    [{ path: join(root, 'directory') }, { code: 'EINVAL', message: /directory is not a regular file/ }],
    [{ path: join(root, 'link'), follow: false }, { code: 'ELOOP' }],
    [streamOf('x', 7 as unknown as string), { code: 'EINVAL', message: /the stream of .*target gave number/ }],
  ]
  for (const [content, expected] of cases) {
    t.match(await failure(replaceFile(target, content)), { published: false, reason: 'PublishFailed', ...expected })
  }
  t.strictSame(readdirSync(root).sort(), ['directory', 'link'])
})

await t.test('a file source refuses a pipe, and does not wait for its writer', async (t) => {
  const [root, pipe] = scratchWith(t, 'pipe')
  execFileSync('mkfifo', [pipe])
  const call = failure(replaceFile(join(root, 'target'), { path: pipe }))
  const outcome = await Promise.race([call, delay(60_000, 'it waits', { ref: false })])
  // If the source waits for a writer, this is one.
  if (outcome === 'it waits') closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK))
  t.match(outcome, { code: 'EINVAL', published: false, message: /pipe is not a regular file/ })
})

await t.test('a request refuses a value that is no content, in plain words', async (t) => {
  const target = join(scratch(t), 'target')
  const wordsOf = (call: () => Promise<unknown>): Promise<unknown> => call().catch((error: unknown) => String(error))
  for (const none of [null, undefined, 7, {}, { path: 7 }] as unknown as FileContent[]) {
    const expected = / must be a string, a Uint8Array, { path }, or a stream of strings or Uint8Arrays/
    const calls = [() => replaceFile(target, none), () => replaceDirectory(target, { files: { a: { content: none } } })]
    for (const call of calls) t.ok(expected.test(String(await wordsOf(async () => call()))), inspect(none))
  }
})

await t.test('a stream that fails: nothing is published, and its error is the cause', async (t) => {
  const root = scratch(t)
  const cause = new Error('the download broke off')
  async function* broken(): AsyncIterable<Uint8Array> {
    yield Promise.resolve(big)
    throw cause
  }
  const error = await failure(replaceDirectory(join(root, 'deep', 'target'), { files: { a: broken() } }))
  t.match(error, { code: 'EIO', published: false, cause, message: /the stream of a failed: the download broke off/ })
  t.strictSame(readdirSync(root), [], 'not even the parent was made')
})

await t.test('an abort ends the wait for a stream, or for a file', async (t) => {
  const root = scratch(t)
  const stream = new PassThrough()
  stream.write('some')
  const stop = new AbortController()
  const call = replaceFile(join(root, 'target'), stream, { signal: stop.signal })
  stop.abort()
  t.match(await failure(call), { code: 'ABORT_ERR', published: false })
  t.ok(stream.destroyed)
  t.strictSame(readdirSync(root), [])

  const source = join(root, 'source')
  writeFileSync(source, big)
  const stopped = new AbortController()
  let pieces = 0
  const progress = (): void => {
    pieces += 1
    stopped.abort()
  }
  const options = { signal: stopped.signal, progress }
  t.match(await failure(replaceFile(join(root, 'target'), { path: source }, options)), { code: 'ABORT_ERR' })
  t.equal(pieces, 1, 'a large file is not read to its end')
})

await t.test(
  'a stream that gives nothing replaces no content without allowEmpty; text is whole across chunks',
  async (t) => {
    const path = join(scratch(t), 'file')
    const web = new Blob(['new']).stream()
    await new Response(web).text()
    const spent = (async function* () {
      yield await Promise.resolve('new')
    })()
    for await (const piece of spent) t.equal(piece, 'new')
    await replaceFile(path, 'good')
    const { body } = new Response('new')
    await body?.cancel()
    for (const stream of [web, body ?? '', spent]) {
      const error: unknown = await replaceFile(path, stream as typeof spent).catch((thrown: unknown) => thrown)
      t.match(error, { code: 'EINVAL', published: false, message: /was read before|gave nothing/ })
      t.equal(readFileSync(path, 'utf8'), 'good')
    }
    t.match(await replaceFile(path, Readable.from(['\ud83d', '\ude00'])), { outcome: 'replaced' })
    t.equal(readFileSync(path, 'utf8'), '\u{1f600}')
    for (const chunks of [['\ud83d'], ['\ud83d', Buffer.from('x')], ['\ude00']])
      await t.rejects(replaceFile(path, Readable.from(chunks)), { code: 'EINVAL', message: /half of a surrogate pair/ })
    const halved = { name: 'DurableWriteError', code: 'EINVAL', published: false, message: /half of a surrogate pair/ }
    for (const text of ['\ud83d', 'x\ude00y', '\ude00\ud83d']) await t.rejects(replaceFile(path, text), halved)
    t.equal(readFileSync(path, 'utf8'), '\u{1f600}', 'as it was')
    const both = [path + '1', path + '2'].map((target, index) => ({
      target,
      files: { a: index === 0 ? '\ud83d' : '\u{1f600}' },
    }))
    t.match(await replaceDirectories(both), [{ error: halved }, { outcome: 'created' }])
    t.match(await replaceFile(path, Readable.from([]), { allowEmpty: true }), { outcome: 'replaced' })
    t.equal(readFileSync(path, 'utf8'), '')
  },
)
