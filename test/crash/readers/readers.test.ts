/*
 * Readers and writers at the same time, on a file system in memory where a swap takes a millisecond. HOLDFAST_SWAPS tells how
 * many.
 */
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { kept } from '../../durable/scratch.js'
import { Random } from '../../random.js'
import { seed } from '../../seed.js'
import { Cast, type Seen } from './processes.js'

t.setTimeout(0)
t.jobs = 1

const swaps = Number(process.env['HOLDFAST_SWAPS'] ?? (process.env['HOLDFAST_SWEEP'] === 'cheap' ? 200 : 1200))
const isRoot = process.geteuid?.() === 0

const random = new Random(seed)
const inode = (path: string): number => lstatSync(path).ino

function stage(t: Test): { root: string; cast: Cast } {
  const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-test-'))
  const cast = Cast.make()
  t.teardown(async () => {
    await cast.end()
    rmSync(root, { recursive: true, force: true })
  })
  mkdirSync(join(root, 'parent'))
  return { root, cast }
}

function sawNothingWrong(t: Test, seen: readonly Seen[], whom: string): void {
  for (const { looks, versions, stale, shortened, wrong } of seen) {
    const hands = `${stale} times replaced under its hands, ${shortened} times while it listed`
    t.same(wrong, {}, `${whom}: ${looks} looks at ${versions} versions, ${hands}`)
    t.ok(versions > 3, 'it has seen them change')
  }
}

/** Only the targets and their locks and records. */
function tidy(t: Test, parent: string, targets: number): void {
  const expected = ['lock', 'record'].flatMap((kind) => Array.from({ length: targets }, () => kind))
  t.same(kept(parent), expected, 'a lock and a record for each target, nothing else')
}

await t.test('a directory, by path and by descriptor', async (t) => {
  const { root, cast } = stage(t)
  const target = join(root, 'parent/certs')
  t.equal((await cast.written(cast.writer(target, 1))).published, 1)
  const byPath = await cast.reader('path', target)
  const byDescriptor = await cast.reader('descriptor', target)
  const written = await cast.written(cast.writer(target, swaps))
  t.equal(written.published, swaps, written.stderr)
  sawNothingWrong(t, [await byPath()], 'by path')
  sawNothingWrong(t, [await byDescriptor()], 'by descriptor')
  tidy(t, join(root, 'parent'), 1)
})

await t.test('a file', async (t) => {
  const { root, cast } = stage(t)
  const target = join(root, 'parent/pod.yaml')
  t.equal((await cast.written(cast.writer(target, 1, 'file'))).published, 1)
  const readers = await Promise.all([cast.reader('file', target), cast.reader('file', target)])
  t.equal((await cast.written(cast.writer(target, swaps, 'file'))).published, swaps)
  sawNothingWrong(t, await Promise.all(readers.map((end) => end())), 'a file')
  tidy(t, join(root, 'parent'), 1)
})

await t.test(`two targets in one parent, one writer killed again and again, seed ${seed}`, async (t) => {
  const { root, cast } = stage(t)
  const [steady, killed] = [join(root, 'parent/steady'), join(root, 'parent/killed')]
  for (const target of [steady, killed]) await cast.written(cast.writer(target, 1))
  const readers = await Promise.all([cast.reader('descriptor', steady), cast.reader('descriptor', killed)])
  const steadily = cast.written(cast.writer(steady, swaps))
  const control = { end: false }
  void steadily.then(() => (control.end = true))
  let kills = 0
  let interrupted = 0
  while (!control.end) {
    const child = cast.writer(killed, 1_000_000)
    const written = cast.written(child)
    // From the first publication on, so that Node's own start is over.
    const before = inode(killed)
    while (inode(killed) === before && child.exitCode === null) await sleep(2)
    await sleep(random.below(10))
    child.kill('SIGKILL')
    const { signal, stderr } = await written
    if (signal !== 'SIGKILL') t.fail(`the writer failed before it was killed: ${stderr}`)
    kills++
    if (kept(join(root, 'parent')).filter((kind) => kind === 'staging').length > 0) interrupted++
  }
  const written = await steadily
  t.equal(written.published, swaps, `the other one is not harmed ${written.stderr}`)
  t.equal(written.busy, 0, 'each target has a lock of its own')
  sawNothingWrong(t, await Promise.all(readers.map((end) => end())), 'beside a killed one')
  t.ok(interrupted > 0, `${interrupted} of ${kills} kills left staging behind`)
  await cast.written(cast.writer(killed, 1))
  tidy(t, join(root, 'parent'), 2)
})

/** Two writers, each with another path to one target. */
async function rivals(t: Test, paths: readonly [string, string], within: readonly string[], cast: Cast): Promise<void> {
  const target = paths[0]
  await cast.written(cast.writer(target, 1))
  const end = await cast.reader('descriptor', target)
  const half = Math.ceil(swaps / 4)
  const both = await Promise.all(
    paths.map((path, index) => cast.written(cast.writer(path, half, 'patient', index === 1 ? within : []))),
  )
  for (const { published, stderr } of both) t.equal(published, half, stderr)
  sawNothingWrong(t, [await end()], 'two writers')
}

await t.test('two writers of one target', async (t) => {
  const { root, cast } = stage(t)
  const target = join(root, 'parent/certs')
  await rivals(t, [target, target], [], cast)
  tidy(t, join(root, 'parent'), 1)
})

await t.test('two writers of one target, one through a symbolic link above it', async (t) => {
  const { root, cast } = stage(t)
  symlinkSync('parent', join(root, 'alias'))
  await rivals(t, [join(root, 'parent/certs'), join(root, 'alias/certs')], [], cast)
  tidy(t, join(root, 'parent'), 1)
})

const unlessRoot = isRoot ? false : 'needs root (a bind mount): run by CI'
await t.test('two writers of one target, one through a bind mount', { skip: unlessRoot }, async (t) => {
  const { root, cast } = stage(t)
  const [parent, alias] = [join(root, 'parent'), join(root, 'alias')]
  mkdirSync(alias)
  const mount = 'mount --bind "$0" "$1" && shift && exec "$@"'
  const within = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', mount, parent, alias]
  await rivals(t, [join(parent, 'certs'), join(alias, 'certs')], within, cast)
  tidy(t, parent, 1)
  t.same(readdirSync(alias), [], 'the mount was the writer’s own')
  t.ok(lstatSync(join(parent, 'certs')).isDirectory())
})
