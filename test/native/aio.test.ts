import { constants, openSync, closeSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AioContext, maximumInFlight } from '../../native/index.js'

const directory = mkdtempSync(join(tmpdir(), 'holdfast-aio-'))
t.teardown(() => rmSync(directory, { recursive: true, force: true }))

function openFiles(test: Test, count: number): number[] {
  const descriptors = Array.from({ length: count }, (_, index) =>
    openSync(join(directory, `file-${index}`), constants.O_RDWR | constants.O_CREAT),
  )
  test.teardown(() => descriptors.forEach((fd) => closeSync(fd)))
  return descriptors
}

await t.test('files and a directory, all at once', async (t) => {
  const context = AioContext.create()
  const fds = openFiles(t, 5)
  fds.push(openSync(directory, constants.O_RDONLY))
  t.same(await context.sync(fds), [undefined, undefined, undefined, undefined, undefined, undefined])
  t.same(await context.sync([]), [])
})

await t.test('more than fit in flight', async (t) => {
  const context = AioContext.create()
  const fds = openFiles(t, maximumInFlight * 5)
  const outcomes = await context.sync(fds)
  t.equal(outcomes.length, maximumInFlight * 5)
  t.ok(outcomes.every((outcome) => outcome === undefined))
})

await t.test('a bad descriptor is its own failure, and the context goes on', async (t) => {
  const context = AioContext.create()
  const [first, second, third] = openFiles(t, 3) as [number, number, number]
  const outcomes = await context.sync([first, second, 999_999, third])
  t.same(
    outcomes.map((outcome) => outcome?.code),
    [undefined, undefined, 'EBADF', undefined],
  )
  t.notOk(context.broken)
  t.same(await context.sync([first]), [undefined])
})

await t.test('arguments are checked before the call', async (t) => {
  const context = AioContext.create()
  await t.rejects(context.sync([Number.NaN]), { name: 'TypeError', message: 'not a file descriptor: NaN' })
  await t.rejects(context.sync([-1]), { name: 'TypeError' })
  await t.rejects(context.sync([1.5]), { name: 'TypeError' })
})
