/*
 * A tree can have more directories, and deeper ones, than a process may have descriptors.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { entriesBelow, OpenDirectories } from '../../src/durable/open-directories.js'
import { compareBytes } from '../../src/durable/request.js'
import { syncBelow } from '../../src/durable/sync-below.js'
import { executable } from '../project.js'
import { failure, intercepted } from './intercepted.js'
import { kept, scratch } from './scratch.js'

/** The program, allowed so many descriptors. */
function limited(
  descriptors: number,
  args: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  const command = `ulimit -n ${descriptors}; exec "$0" "$@"`
  return spawnSync('bash', ['-c', command, process.execPath, executable, ...args], { encoding: 'utf8' })
}

function publishes(t: Test, target: string, from: string, descriptors: number, outcome: string): void {
  const { status, stdout, stderr } = limited(descriptors, ['replace', target, '--from', from])
  t.equal(status, 0, stderr)
  t.match(stdout, new RegExp(`^${outcome} `))
  t.notMatch(stderr, 'the next run retries')
}

await t.test('many directories', (t) => {
  const root = scratch(t)
  const [target, from] = [join(root, 'certs'), join(root, 'from')]
  const count = 110
  for (let index = 0; index < count; index++) {
    mkdirSync(join(from, `directory-${index}`), { recursive: true })
    writeFileSync(join(from, `directory-${index}`, 'file'), `${index}`)
  }
  publishes(t, target, from, 96, 'created')
  t.equal(readdirSync(target, { recursive: true }).length, 2 * count)
  publishes(t, target, from, 96, 'unchanged')
  for (const name of readdirSync(from)) writeFileSync(join(from, name, 'file'), 'new')
  publishes(t, target, from, 96, 'replaced')
  t.equal(readdirSync(target, { recursive: true }).length, 2 * count)
  t.same(kept(root), ['lock', 'record'])
  t.end()
})

await t.test('deep directories', (t) => {
  const root = scratch(t)
  const [target, from, small] = [join(root, 'certs'), join(root, 'from'), join(root, 'small')]
  const deepest = join(from, ...Array.from({ length: 110 }, (_, index) => `d${index % 10}`))
  mkdirSync(deepest, { recursive: true })
  mkdirSync(small)
  writeFileSync(join(deepest, 'file'), 'deep')
  writeFileSync(join(small, 'file'), 'small')
  publishes(t, target, from, 96, 'created')
  t.equal(readdirSync(target, { recursive: true }).length, 111)
  publishes(t, target, from, 96, 'unchanged')
  publishes(t, target, small, 96, 'replaced')
  t.same(readdirSync(target), ['file'])
  t.same(kept(root), ['lock', 'record'])
  t.end()
})

await t.test('what is below comes in the order of the paths, and nothing stays open', async (t) => {
  const root = scratch(t)
  for (const path of ['a/z', 'a-b/c/d', 'a.b/e', 'a0/f', 'b/a!/g', 'b/a/h']) {
    execFileSync('mkdir', ['-p', join(root, path)])
    writeFileSync(join(root, `${path}.txt`), path)
  }
  const { fs, open } = intercepted(() => undefined, Object.assign(new NodeFileSystem(), { openDirectories: 1 }))
  const top = await fs.openPath(root)
  const directories = new OpenDirectories(fs, top)
  const found: string[] = []
  for await (const { path } of entriesBelow(directories)) found.push(path)
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' })
  t.strictSame(found, all.sort(compareBytes))
  await directories.closeAll()
  t.strictSame([...open], [top])
  await fs.close(top)
})

await t.test('a sync of all that is below syncs each once, of so much at a time as may be open', async (t) => {
  const root = scratch(t)
  const paths = Array.from({ length: 20 }, (_, index) => `d${index % 4}/e${index}/file`)
  for (const path of paths) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), path)
  }
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((path) => join(root, path))
  // The last turn has more than one, none, and one.
  for (const [openDirectories, stagedFiles] of [
    [1, 3],
    [1, all.length],
    [100, all.length - 1],
  ] as const) {
    const synced: string[] = []
    const narrow = Object.assign(new NodeFileSystem(), { openDirectories, stagedFiles })
    const { fs, open } = intercepted((call, args) => {
      if (call !== 'sync') return
      if (stagedFiles === 3) t.ok(open.size <= 8, `${open.size} descriptors`)
      synced.push(...(args[0] as number[]).map((one) => readlinkSync(`/proc/self/fd/${one}`)))
    }, narrow)
    const top = await fs.openPath(root)
    await syncBelow(fs, top, [top])
    await fs.close(top)
    t.strictSame(synced.sort(), [root, ...all].sort())
    t.equal(open.size, 0)
  }
})

await t.test(
  'one that could not be opened is tried again; one that is another by then is refused, and closed',
  async (t) => {
    const root = scratch(t)
    for (const path of ['a/b', 'c', 'other']) mkdirSync(join(root, path), { recursive: true })
    let failing = ''
    const { fs, open } = intercepted(
      (call, [, name]) => {
        if (call === 'openDirectory' && name === failing) throw failure('EIO', 'openat2')
      },
      Object.assign(new NodeFileSystem(), { openDirectories: 1 }),
    )
    const top = await fs.openPath(root)
    const directories = new OpenDirectories(fs, top)
    const pathOf = (path: string): Promise<string> =>
      directories.use(path, (one) => Promise.resolve(readlinkSync(`/proc/self/fd/${one}`).slice(root.length)))
    for (const name of ['a', 'b']) {
      failing = name
      await t.rejects(pathOf('a/b'), { code: 'EIO' })
      failing = ''
      t.equal(await pathOf('a/b'), '/a/b')
      t.equal(open.size, 2, 'the one that was used last stays open, and no other')
      t.equal(await pathOf('c'), '/c')
      t.equal(open.size, 2)
    }
    renameSync(join(root, 'a/b'), join(root, 'b'))
    renameSync(join(root, 'other'), join(root, 'a/b'))
    await t.rejects(pathOf('a/b'), { code: 'ESTALE', message: 'a/b has become another directory meanwhile' })
    await directories.closeAll()
    t.strictSame([...open], [top])
    await fs.close(top)
  },
)
