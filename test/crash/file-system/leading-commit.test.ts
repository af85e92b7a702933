/*
 * The commit that leads a large barrier on ext4 is a hint and an fsync in one: its failure is a failure, and it replaces nothing
 * of the barrier.
 */
import { closeSync, constants, fstatSync, openSync, promises, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Outcomes } from '../../../src/durable/file-system.js'
import { behindLeadingCommit } from '../../../src/durable/posix/sync.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { scratch } from '../../durable/scratch.js'
import { replaceCall } from '../../durable/system-calls.js'

/** open(2)'s flag for a descriptor that names a file and can do nothing with it: its fsync is EBADF. */
const O_PATH = 0o10000000

/** A path on an ext4; on a machine without one, a path that the test declares to be on one. */
function onExt4(): string {
  const lines = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const found = lines.map((line) => line.split(' ')).find(([, , type]) => type === 'ext4')?.[1]
  if (found === undefined) Object.assign(promises, { statfs: () => Promise.resolve({ type: 0xef53 }) })
  return found ?? '/'
}

type Done = (error: Error | null, value?: unknown) => void

const place = onExt4()
const succeeded = undefined

function opened(t: Test, path: string, flags: number): number {
  const descriptor = openSync(path, flags)
  t.teardown(() => closeSync(descriptor))
  return descriptor
}

await t.test('its failure is a failure', async (t) => {
  const leader = opened(t, place, O_PATH)
  const root = scratch(t)
  const own = Array.from({ length: 130 }, (_, index) =>
    opened(t, join(root, `file-${index}`), constants.O_RDWR | constants.O_CREAT),
  )
  const descriptors = [...own, leader]
  let barriers = 0
  const outcomes = await behindLeadingCommit(descriptors, new Set(own), () => {
    barriers += 1
    return Promise.resolve<Outcomes>(descriptors.map(() => succeeded))
  })
  t.equal(barriers, 1, 'the barrier comes none the less')
  t.match(outcomes[130], { code: 'EBADF', syscall: 'fsync' }, 'a later success does not make it good')
  t.same(
    outcomes.slice(0, 130),
    own.map(() => succeeded),
  )
})

await t.test('the barrier is what counts, and modes stay as they are', async (t) => {
  const root = scratch(t)
  const leader = opened(t, place, constants.O_RDONLY)
  const own = Array.from({ length: 130 }, (_, index) =>
    opened(t, join(root, `file-${index}`), constants.O_RDWR | constants.O_CREAT),
  )
  const modes = (): number[] => own.map((descriptor) => fstatSync(descriptor).mode)
  const before = modes()
  const times = (): bigint[] => own.map((descriptor) => fstatSync(descriptor, { bigint: true }).ctimeNs)
  const made = times()
  let touched = 0
  const failure = new Error('the disk')
  const outcomes = await behindLeadingCommit([...own, leader], new Set(own), () => {
    touched = times().filter((time, index) => time !== made[index]).length
    return Promise.resolve<Outcomes>([...own, leader].map(() => failure))
  })
  t.equal(touched, own.length, 'each staged file is in the next transaction before the barrier comes')
  t.same(
    outcomes,
    [...own, leader].map(() => failure),
    'what the leader did before does not make its failure good',
  )
  t.same(modes(), before)
})

await t.test(
  'only a large barrier has one, of a directory, which is under way before anything is touched',
  async (t) => {
    const began: string[] = []
    let turned = false
    for (const name of ['fsync', 'fchmod'])
      replaceCall(t, name, (real) => (...args) => {
        began.push(turned ? `${name} later` : name)
        setImmediate(() => (turned = true))
        return real(...args)
      })
    const root = scratch(t)
    const leader = opened(t, place, O_PATH)
    const own = Array.from({ length: 129 }, (_, index) =>
      opened(t, join(root, `file-${index}`), constants.O_RDWR | constants.O_CREAT),
    )
    const outcomesOf = async (descriptors: readonly number[]): Promise<Outcomes | string> =>
      behindLeadingCommit(descriptors, new Set(own), () => Promise.resolve(descriptors.map(() => succeeded))).catch(
        String,
      )
    const none = (count: number) => Array.from({ length: count }, () => succeeded)
    t.strictSame(await outcomesOf([...own.slice(0, 127), leader]), none(128), 'as many as share two flushes')
    t.strictSame(await outcomesOf(own), none(129), 'no directory')
    t.strictSame(began, [])
    t.match(await outcomesOf([leader, ...own.slice(0, 128)]), [{ code: 'EBADF' }])
    t.strictSame(began.slice(0, 2), ['fsync', 'fchmod later'])
  },
)

await t.test(
  'behindLeadingCommit touches only a file that it made and holds open, whichever file has the number then',
  async (t) => {
    process.env['HOLDFAST_AIO'] = 'off'
    t.teardown(() => delete process.env['HOLDFAST_AIO'])
    const touched: unknown[] = []
    replaceCall(t, 'statfs', () => (_path, done) => (done as Done)(null, { type: 0xef53 }))
    replaceCall(t, 'fsync', () => (_file, done) => (done as Done)(null))
    replaceCall(t, 'fchmod', () => (file, _mode, done) => {
      touched.push(file)
      ;(done as Done)(null)
    })
    const fs = new NodeFileSystem()
    const parent = opened(t, scratch(t), constants.O_RDONLY)
    const made = await Promise.all(Array.from({ length: 130 }, (_, index) => fs.createFile(parent, `file-${index}`)))
    t.strictSame(await fs.sync([parent, ...made]), Array(131).fill(undefined))
    t.strictSame(touched.splice(0).sort(), [...made].sort())
    const [first = -1, ...others] = made
    await fs.close(first)
    t.equal(await fs.openFile(parent, 'file-1'), first, 'the lowest number that is free (open(2))')
    t.strictSame(await fs.sync([parent, ...made]), Array(131).fill(undefined))
    t.strictSame(touched.sort(), others.sort())
    for (const file of made) await fs.close(file)
  },
)
