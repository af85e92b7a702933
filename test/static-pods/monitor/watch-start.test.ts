/** The start of a watch, which outlives the monitor that began it: by a clock that stands, but where a test moves it. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { WatchStart } from '../../../src/static-pods/monitor/watch-start.js'
import { NodeDisk } from '../pods.js'

const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()

function watched(t: Test) {
  const node = new NodeDisk(t)
  mkdirSync(node.resources)
  const places = { resourceDirectory: node.resources, manifestDirectory: node.manifests, target: 'web' }
  const warnings: object[] = []
  const log: Log = { ...silent, warn: (fields) => void warnings.push(fields) }
  const clock = { now: 5_000_000, uptime: (): number => clock.now }
  const start = (revision = 7, target = 'web'): WatchStart =>
    new WatchStart({ ...places, target }, revision, clock, log)
  const file = (): string => join(node.resources, readdirSync(node.resources).find((name) => /watch$/.test(name)) ?? '')
  return { node, clock, start, file, warnings }
}

await t.test('a mark counts for its revision in its boot, and for nothing else', async (t) => {
  const { start, file, warnings } = watched(t)
  await start().elapsed()
  const path = file()
  t.match(path, /\/\.holdfast-[0-9a-f]{16}\.watch$/)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.match(JSON.parse(readFileSync(path, 'utf8')), { revision: 7, boot, since: Number })
  const now = 5_000
  const since = now - 2
  const mark = { revision: 7, boot, since }
  const rows: [what: string, text: string, isGoneOnWith: boolean][] = [
    ['its own', JSON.stringify(mark), true],
    ['of an instant that has not come', JSON.stringify({ ...mark, since: now + 1 }), false],
    ['of another revision', JSON.stringify({ ...mark, revision: 6 }), false],
    ['of another boot', JSON.stringify({ ...mark, boot: 'another' }), false],
    ['without a revision', JSON.stringify({ ...mark, revision: '7' }), false],
    ['without a boot', JSON.stringify({ ...mark, boot: 5 }), false],
    ['without a time', JSON.stringify({ ...mark, since: String(since) }), false],
    ['torn', JSON.stringify(mark).slice(0, -3), false],
    ['null', 'null', false],
    ['a number', '5', false],
  ]
  for (const [what, text, isGoneOnWith] of rows) {
    writeFileSync(path, text)
    const elapsed = await start().elapsed()
    t.equal(elapsed, isGoneOnWith ? 2_000 : 0, what)
    t.equal(readFileSync(path, 'utf8') === text, isGoneOnWith, `${what}: it is kept as it is`)
  }
  t.same(warnings, [])
})

await t.test('a mark tells the inode of the live manifest by its number and its birth', async (t) => {
  const { node, start, file } = watched(t)
  node.makeManifest('live')
  await start().elapsed()
  const { ino, birthtimeNs } = statSync(join(node.manifests, 'web-pod.yaml'), { bigint: true })
  t.match(JSON.parse(readFileSync(file(), 'utf8')), { live: `${ino}:${birthtimeNs}` })
})

await t.test('elapsed answers the milliseconds since the mark', async (t) => {
  const { clock, start } = watched(t)
  await start().elapsed()
  clock.now += 1_500
  const watch = start()
  t.equal(await watch.elapsed(), 1_500)
  clock.now += 10
  t.equal(await watch.elapsed(), 1_510)
  await watch.end()
  t.equal(await watch.elapsed(), 0, 'one that is over begins anew')
})

await t.test('end leaves no mark, and the next watch begins anew', async (t) => {
  const { node, clock, start } = watched(t)
  const one = start()
  await one.elapsed()
  clock.now += 2_000
  t.equal(await start().elapsed(), 2_000, 'another process goes on')
  await start(7, 'other').elapsed()
  t.equal(readdirSync(node.resources).length, 2, 'one for each target')
  await start(7, 'other').end()
  await one.end()
  t.same(readdirSync(node.resources), [])
  t.equal(await one.elapsed(), 0)
  await one.end()
  await t.resolves(one.end(), 'there is nothing to remove')
  rmSync(node.resources, { recursive: true })
  writeFileSync(node.resources, '')
  await t.resolves(one.end(), 'nor can there be')
})

await t.test("elapsed counts this process's time where it can write no mark, and says so once", async (t) => {
  const { node, start, warnings } = watched(t)
  rmSync(node.resources, { recursive: true })
  const one = start()
  t.equal(await one.elapsed(), 0)
  await one.end()
  await one.elapsed()
  t.match(warnings, [{ path: /\.watch$/, code: 'ENOENT' }])
  t.equal(warnings.length, 1)
})
