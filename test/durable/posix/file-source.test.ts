/** A file as content of a publication: which files it may be, and the errors for an unreadable one. */
import { mkdirSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DurableWriteError } from '../../../src/durable/errors.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { FileContentSource } from '../../../src/durable/posix/file-source.js'
import { scratch } from '../scratch.js'

const fs = new NodeFileSystem()

async function read(source: FileContentSource): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of source.pieces()) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces).toString()
}

/** The answer of a call, or the code of its error and whose error that is. */
async function outcome(call: Promise<unknown>): Promise<unknown> {
  return call.catch((error: unknown) => {
    const { code } = error as { code?: unknown }
    return `${String(code)} ${error instanceof DurableWriteError ? 'of holdfast' : 'of others'}`
  })
}

await t.test('a file whose size says nothing is refused as what it is: no other program changes it', async (t) => {
  // A page by its size, with fewer bytes in it; and none, with some.
  for (const [path, size] of [
    ['/sys/class/net/lo/mtu', statSync('/sys/class/net/lo/mtu').size],
    ['/proc/version', 0],
  ] as const) {
    const source = new FileContentSource(path, { from: path, follow: true }, '/target', { fs })
    t.equal(await outcome(source.size()), size)
    await t.rejects(read(source), {
      code: 'EINVAL',
      message: new RegExp(
        `^${path} gives other bytes than its size says, ${size}: .*; holdfast left /target as it was; give its content`,
      ),
    })
  }
})

await t.test('an irregular file is no content at the first look; later it counts as changed', async (t) => {
  const path = join(scratch(t), 'source')
  const source = new FileContentSource(path, { from: path, follow: true }, '/target', { fs })
  t.equal(await outcome(source.size()), 'ENOENT of holdfast', 'it is not there yet')
  mkdirSync(path)
  t.equal(await outcome(source.size()), 'EINVAL of holdfast')
  rmdirSync(path)
  t.equal(await outcome(source.size()), 'ENOENT of holdfast', 'it was never read')
  writeFileSync(path, 'content')
  t.equal(await outcome(source.size()), 7)
  t.equal(await outcome(read(source)), 'content')
  rmSync(path)
  mkdirSync(path)
  t.equal(await outcome(read(source)), 'ESTALE of holdfast', 'another one has its name')
  rmdirSync(path)
  t.equal(await outcome(read(source)), 'ESTALE of holdfast', 'it has gone')
})

await t.test('a failure has the path that a person knows, also where it is the cause', async (t) => {
  const path = join(scratch(t), 'source')
  const source = new FileContentSource(path, { from: path, follow: true }, '/target', { fs })
  const failed = await source.size().catch((error: unknown) => error)
  const said = { code: 'ENOENT', syscall: 'open', path, message: `open ${path}: ENOENT` }
  t.match(failed, { code: 'ENOENT', syscall: 'open', path, cause: said })
})
