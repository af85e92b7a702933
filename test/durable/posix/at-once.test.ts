import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { close, closeSync, constants, open, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { AtOnceFileSystem } from '../../../src/durable/posix/at-once.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { scratch, scratchWith } from '../scratch.js'

/** As many as libuv has. */
const threads = 4

/** A directory, open. */
function opened(t: Test, path: string): number {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  t.teardown(() => closeSync(directory))
  return directory
}

/** Runs `work` while each thread of libuv waits for the other end of a FIFO, as for a disk that does not answer. */
async function withoutThreads(directory: string, work: () => Promise<void>): Promise<void> {
  const fifo = join(directory, 'threads')
  execFileSync('mkfifo', [fifo])
  const waiting = Array.from({ length: threads }, () => promisify(open)(fifo, constants.O_RDONLY))
  try {
    await work()
  } finally {
    const other = openSync(fifo, constants.O_RDWR)
    for (const descriptor of await Promise.all(waiting)) await promisify(close)(descriptor)
    closeSync(other)
  }
}

/** Whether it has ended after some turns of the event loop; it may go on. */
async function endsSoon(work: Promise<unknown>): Promise<boolean> {
  const turns = async (): Promise<boolean> => {
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    return false
  }
  const ended = work.then(
    () => true,
    () => true,
  )
  return Promise.race([ended, turns()])
}

const text = async (pieces: AsyncIterable<Uint8Array>): Promise<string> => {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(Buffer.from(piece))
  return Buffer.concat(all).toString()
}

await t.test('short calls need no thread, and answer as on one', async (t) => {
  const fs = new AtOnceFileSystem()
  const path = scratch(t)
  const parent = opened(t, path)
  const onThreads = new NodeFileSystem()
  await withoutThreads(path, async () => {
    t.notOk(await endsSoon(onThreads.look(parent, 'threads')), 'there is no thread')
    await fs.createDirectory(parent, 'made', 0o755)
    const made = await fs.openDirectory(parent, 'made')
    const file = await fs.createFile(made, 'file')
    await fs.write(file, Buffer.from('some text'))
    await fs.setMode(file, 0o640)
    await fs.setOwner(file, fs.user.uid, fs.user.gid)
    t.notOk(await endsSoon(fs.startWriteOut([file])), 'the wait for what is written out takes a thread')
    t.match(await fs.look(made, 'file'), { type: 'file', mode: 0o640, size: 9 })
    t.match(await fs.lookPath(join(path, 'made/file')), { type: 'file', size: 9 })
    t.equal(await fs.extendedAttributes(file), undefined)
    await fs.label(file)
    await fs.rename(made, 'file', made, 'other', 'noreplace')
    t.same(await fs.list(made), ['other'])
    t.same(await fs.entries(made), [{ name: 'other', type: 'file' }])
    await fs.close(file)
    const again = await fs.openFile(made, 'other')
    t.equal(await text(fs.read(again, 9)), 'some text')
    await fs.close(again)
    const lock = await fs.openPath(path)
    await fs.close(lock)
    await fs.removeFile(made, 'other')
    await fs.close(made)
    await fs.removeDirectory(parent, 'made')
    t.equal(await fs.look(parent, 'made'), undefined)
  })
})

await t.test('barriers and long calls run on threads', async (t) => {
  const fs = new AtOnceFileSystem()
  const path = scratch(t)
  const parent = opened(t, path)
  const file = await fs.createFile(parent, 'file')
  const long = Buffer.alloc(64 * 1024 + 1, 'a')
  const later: Promise<unknown>[] = []
  await withoutThreads(path, async () => {
    const started = [fs.write(file, long), fs.startWriteOut([file]), fs.sync([file, parent])]
    later.push(...started)
    for (const work of started) t.notOk(await endsSoon(work))
  })
  await Promise.all(later)
  t.ok(readFileSync(join(path, 'file')).equals(long))
  const reading = fs.read(file, long.length)[Symbol.asyncIterator]()
  await withoutThreads(scratch(t), async () => {
    later.push(reading.next())
    t.notOk(await endsSoon(later.at(-1) ?? Promise.resolve()))
  })
  await Promise.all(later)
  await reading.return()
  await fs.close(file)
})

await t.test('a failure at once is the same as on a thread', async (t) => {
  const path = scratch(t)
  const parent = opened(t, path)
  writeFileSync(join(path, 'there'), '')
  const failures = (fs: NodeFileSystem): Promise<unknown[]> => {
    const calls = [
      () => fs.openFile(parent, 'missing'),
      () => fs.createFile(parent, 'there'),
      () => fs.openDirectory(parent, 'there'),
      () => fs.createDirectory(parent, 'there'),
      () => fs.removeFile(parent, 'missing'),
      () => fs.removeDirectory(parent, 'there'),
      () => fs.rename(parent, 'missing', parent, 'there', 'noreplace'),
      () => fs.look(parent, 'n'.repeat(256)),
      () => fs.write(parent, Buffer.from('a')),
      () => text(fs.read(parent, 1)),
    ]
    return Promise.all(
      calls.map((call) =>
        call().then(
          () => undefined,
          (error: unknown) => error,
        ),
      ),
    )
  }
  const [now, onThread] = [await failures(new AtOnceFileSystem()), await failures(new NodeFileSystem())]
  const told = (error: unknown): unknown => ({ ...(error as object), text: String(error) })
  t.same(now.map(told), onThread.map(told))
  t.notOk(now.includes(undefined), 'each of them fails')
})

await t.test('the event loop has its turns between many calls', async (t) => {
  const fs = new AtOnceFileSystem()
  const parent = opened(t, scratch(t))
  let turns = 0
  let going = true
  const count = (): void => {
    turns += 1
    if (going) setImmediate(count)
  }
  setImmediate(count)
  for (let calls = 0; calls < 10_000; calls++) await fs.look(parent, 'missing')
  going = false
  // Each call takes some microseconds.
  t.ok(turns > 5, `${turns} turns`)
})

await t.test('once a disk has made a call wait, its calls are on threads', async (t) => {
  const fs = new AtOnceFileSystem()
  const path = scratch(t)
  const parent = opened(t, path)
  const fifo = join(path, 'slow')
  execFileSync('mkfifo', [fifo])
  // A full pipe takes no more until a reader comes.
  const pipe = openSync(fifo, constants.O_RDWR)
  t.teardown(() => closeSync(pipe))
  await fs.write(pipe, Buffer.alloc(64 * 1024))
  const reader = spawn('sh', ['-c', 'sleep 0.5; exec dd if="$0" of=/dev/null bs=64k count=1', fifo], {
    stdio: 'ignore',
  })
  const ended = once(reader, 'exit')
  await once(reader, 'spawn')
  await withoutThreads(path, async () => {
    t.ok(await endsSoon(fs.look(parent, 'missing')), 'at once until then')
    await fs.write(pipe, Buffer.alloc(8 * 1024))
    t.notOk(await endsSoon(fs.look(parent, 'missing')))
  })
  await ended
})

await t.test('the library makes its calls at once', (t) => {
  const library = new URL('../../../src/index.js', import.meta.url).href
  const [path, fifo] = scratchWith(t, 'threads')
  execFileSync('mkfifo', [fifo])
  // Prints whether the parent was opened while no thread was free.
  const program = `
    import fs from 'node:fs'
    import { setImmediate } from 'node:timers/promises'
    import { replaceDirectory } from '${library}'
    for (let thread = 0; thread < ${threads}; thread++) fs.open('${fifo}', 'r', () => undefined)
    void replaceDirectory('${path}/target', { files: {} })
    for (let turn = 0; turn < 20; turn++) await setImmediate()
    const links = fs.readdirSync('/proc/' + process.pid + '/fd').map((name) => {
      try { return fs.readlinkSync('/proc/' + process.pid + '/fd/' + name) } catch { return '' }
    })
    console.log(links.includes('${path}'))
    process.kill(process.pid, 'SIGKILL')`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  t.equal(stdout, 'true\n')
  return Promise.resolve()
})
