import { mkdirSync, renameSync, rmSync, symlinkSync, watch as watchDirectory, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { TargetWatch } from '../../src/agent/watch-directories.js'
import { namesFor } from '../../src/durable/index.js'
import { scratch } from '../durable/scratch.js'
import { SimulatedTime } from '../simulated-time.js'
import { signalOf, until } from '../until.js'

/** A watch beside a directory, and how often it has reported a change. */
function scene(t: Parameters<typeof scratch>[0]) {
  const parent = join(scratch(t), 'parent')
  const path = join(parent, 'certs')
  mkdirSync(parent)
  const reports: string[] = []
  const watch = new TargetWatch((path) => Promise.resolve(void reports.push(path)), signalOf(t))
  let sequence = 0
  /** Makes records until the watch has reported one: it begins some time after it was asked for. */
  const make = (of: string) => writeFileSync(join(parent, namesFor(basename(of)).record((sequence += 1))), '')
  const reported = async (what: string, of = path) => {
    reports.length = 0
    await until(what, () => {
      make(of)
      return reports.includes(of)
    })
  }
  return { parent, path, other: join(parent, 'other'), watch, make, reported, reports }
}

await t.test('the watch reports a new record', async (t) => {
  const { path, watch, reported } = scene(t)
  watch.follow(path)
  await reported('the change is reported')
  t.pass()
})

await t.test('the parent was renamed, and another one has its path: its records are reported', async (t) => {
  const { parent, path, other, watch, reported } = scene(t)
  watch.follow(path)
  watch.follow(other)
  await reported('the change is reported')
  renameSync(parent, `${parent}.old`)
  mkdirSync(parent)
  watch.follow(other)
  await reported('the change in the new parent is reported', other)
  t.pass()
})

await t.test('the watch reports an exchange of the directory once', async (t) => {
  const { parent, path, other, watch, reported } = scene(t)
  watch.follow(path)
  watch.follow(other)
  await reported('the change is reported')
  mkdirSync(`${parent}.new`)
  renameSync(parent, `${parent}.old`)
  renameSync(`${parent}.new`, parent)
  await reported('the change in the new parent is reported', other)
  t.pass()
})

const goings: Readonly<Record<string, (paths: { parent: string; path: string }) => void>> = {
  'a target': ({ path }) => rmSync(path, { recursive: true }),
  'a parent': ({ parent }) => rmSync(parent, { recursive: true }),
  'a parent, with another one in its place,': ({ parent }) => {
    rmSync(parent, { recursive: true })
    mkdirSync(parent)
  },
}

for (const [name, go] of Object.entries(goings)) {
  for (const form of ['directory', 'symbolic link']) {
    await t.test(`the watch reports ${name} that goes before the watch has begun (${form})`, async (t) => {
      const { parent, path, other, watch, reports } = scene(t)
      if (form === 'directory') mkdirSync(path)
      else {
        mkdirSync(other)
        symlinkSync(basename(other), path)
      }
      // The watch begins once the thread pool has looked at both, which is after this turn.
      watch.follow(path)
      go({ parent, path })
      await until('it is reported', () => reports.includes(path))
      t.strictSame([...new Set(reports)], [path])
    })
  }
}

await t.test('the watch does not report a directory that the agent no longer follows', async (t) => {
  const { path, other, watch, make, reported, reports } = scene(t)
  watch.follow(path)
  watch.follow(other)
  await reported('the change is reported')
  watch.forget(path)
  reports.length = 0
  make(path)
  await reported('the change beside the other is reported', other)
  t.notOk(reports.includes(path))
})

await t.test('the watch checks a record again that changes during the check, and no other', async (t) => {
  const parent = join(scratch(t), 'parent')
  mkdirSync(parent)
  const paths = ['a', 'b', 'c'].map((name) => join(parent, name))
  const [path = ''] = paths
  const reports: string[] = []
  let answer = (): void => undefined
  let first = false
  const watch = new TargetWatch(async (changed) => {
    reports.push(changed)
    if (!first) return
    first = false
    await new Promise<void>((resolve) => (answer = resolve))
  }, signalOf(t))
  for (const one of paths) watch.follow(one)
  await until('the watch has begun', () => new Set(reports).size === paths.length)
  reports.length = 0
  first = true
  const time = new SimulatedTime(t)
  let sequence = 0
  const make = () => {
    const name = namesFor('a').record((sequence += 1))
    writeFileSync(join(parent, name), '')
    return name
  }
  await time.until(
    'the change is reported',
    () => {
      make()
      return reports.length > 0
    },
    200,
  )
  // The watch reports earlier changes once more at most, and later ones while no check has answered.
  let last = ''
  const noticed = new Promise<void>((resolve) => {
    const beside = watchDirectory(parent, (_, name) => {
      if (name === last) resolve()
    })
    t.teardown(() => beside.close())
  })
  last = make()
  await noticed
  // Each timer that a change has set ends within this time.
  await time.advance(60_000)
  t.strictSame(reports, [path])
  answer()
  await time.until('it is looked at again', () => reports.length > 1, 100)
  await time.advance(60_000)
  t.strictSame(reports, [path, path])
})
