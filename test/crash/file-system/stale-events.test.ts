/* Completions in an AIO context that belong to no request of this barrier: they say nothing of its files. */
import koffi from 'koffi'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { AioContext } from '../../../native/index.js'
import { scratch } from '../../durable/scratch.js'

/** A class whose constructor takes a context that is there, which only TypeScript keeps to itself. */
const Context = AioContext as unknown as new (context: bigint) => AioContext

const libc = koffi.load(null)
const arm = process.arch === 'arm64'
const numbers = { setup: arm ? 0 : 206, submit: arm ? 2 : 209 }
const setup = libc.func('syscall', 'long', ['long', 'unsigned int', 'void *'])
const submit = libc.func('syscall', 'long', ['long', 'uint64_t', 'long', 'void *'])

const commandFsync = 2
/** More than any barrier of this test has, so that believing the event shows. */
const foreignIndex = 7
const foreignBarrier = 0xffff_fff0

function strayRequest(context: bigint, file: number): void {
  const request = Buffer.alloc(64)
  request.writeUInt32LE(foreignIndex, 0)
  request.writeUInt32LE(foreignBarrier, 4)
  request.writeUInt16LE(commandFsync, 16)
  request.writeUInt32LE(file, 20)
  const pointers = Buffer.alloc(8)
  pointers.writeBigUInt64LE(koffi.address(request))
  const taken = submit(numbers.submit, context, 1, pointers) as number
  if (taken !== 1) throw new Error(`io_submit took ${taken} requests`)
}

await t.test('a barrier ignores a stray completion', async (t) => {
  const root = scratch(t)
  const table = Buffer.alloc(8)
  t.equal(setup(numbers.setup, 256, table), 0)
  const id = table.readBigUInt64LE()
  const files = ['a', 'b'].map((name) => openSync(join(root, name), 'w'))
  const [a = -1, b = -1] = files
  const context = new Context(id)
  for (let round = 0; round < 20; round++) {
    strayRequest(id, a)
    const outcomes = await context.sync([b, a])
    t.same(outcomes, [undefined, undefined], 'one answer for each that was asked for')
  }
  t.same(await context.sync([a, 999_999, b]).then((all) => all.map((one) => one?.code)), [
    undefined,
    'EBADF',
    undefined,
  ])
  for (const file of files) closeSync(file)
})
