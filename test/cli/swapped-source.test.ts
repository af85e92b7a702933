/** The owner of a directory that root copies swaps what is in it for links to files that only root may read. */
import { spawn } from 'node:child_process'
import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceDirectory } from '../../src/durable/index.js'
import { withTree } from '../../src/cli/content/read-tree.js'
import { readMounted } from '../../src/mounted-volume.js'
import { readAttributes, readLocalTree, unreadable } from '../../src/static-pods/install/local-tree.js'
import { readRolloutTree } from '../../src/static-pods/rollout/rollout-tree.js'
import { intercepted } from '../durable/intercepted.js'
import { contents, scratchWith } from '../durable/scratch.js'
import { needsRoot, strangersUid } from '../durable/stranger.js'
import { holdfast } from './holdfast.js'

const secret = 'for root alone'

/** DIR with `sub/key`, and what it must not lead to: a directory of root's with a `key` of its own. */
function scene(t: Test) {
  const [root, from, hidden, target] = scratchWith(t, 'from', 'hidden', 'target')
  for (const [directory, text] of [
    [join(from, 'sub'), 'public'],
    [hidden, secret],
  ] as const) {
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'key'), text, { mode: 0o600 })
  }
  const swap = (): void => {
    renameSync(join(from, 'sub'), join(root, 'away'))
    symlinkSync(hidden, join(from, 'sub'))
  }
  const restore = (): void => {
    rmSync(join(from, 'sub'))
    renameSync(join(root, 'away'), join(from, 'sub'))
  }
  return { from, hidden, target, swap, restore }
}

await t.test('a directory that becomes a link at any call is not followed', async (t) => {
  const { from, target, swap, restore } = scene(t)
  /** How many calls name something below DIR; at the nth, the directory is a link. */
  const publishedAt = async (nth: number): Promise<{ calls: number; isRefused: boolean }> => {
    let calls = 0
    const { fs } = intercepted((call, [path]) => {
      if (call !== 'openContent' || !/sub/.test(String(path))) return
      calls += 1
      if (calls === nth) swap()
    })
    const { signal } = new AbortController()
    const work = withTree(from, fs, signal, async (tree) => {
      const files = Object.entries(tree.files).map(([name, { path }]) => {
        return [name, { path, below: { root: tree.root, from: name } }] as const
      })
      await replaceDirectory(target, { files: Object.fromEntries(files) }, fs)
    })
    const isRefused = await work.then(
      () => false,
      () => true,
    )
    if (calls >= nth && nth > 0) restore()
    return { calls, isRefused }
  }
  const { calls, isRefused } = await publishedAt(0)
  t.notOk(isRefused)
  t.ok(calls >= 3, `${calls} calls: the directory, the look at the file, its reading`)
  for (let nth = 1; nth <= calls; nth++) {
    rmSync(target, { recursive: true })
    t.ok((await publishedAt(nth)).isRefused, `call ${nth}`)
    t.not(contentsOrNone(target)['sub/key'], secret)
    await replaceDirectory(target, { files: {} })
  }
  const read = (nth: number) => {
    let seen = 0
    const { fs } = intercepted((call, [path]) => {
      if (call === 'openContent' && /sub/.test(String(path)) && ++seen === nth) swap()
    })
    const work = async (directory: Parameters<typeof readLocalTree>[0]) => {
      const tree = await readLocalTree(directory, fs)
      return { tree, attributes: await readAttributes(directory, tree, fs), seen }
    }
    return readMounted(from, work, unreadable)
  }
  const all = await read(0)
  t.equal(all.seen, 4, 'both reads open the directory and the file')
  for (let nth = 1; nth <= all.seen; nth++) {
    await t.rejects(read(nth), { name: 'InvalidInput' }, `call ${nth}`)
    restore()
  }
})

function contentsOrNone(directory: string): Record<string, string> {
  try {
    return contents(directory)
  } catch {
    return {}
  }
}

const rounds = 150

/** That user's process, which swaps the directory for a link and back as fast as it can until the test ends. */
async function swapping(t: Test, from: string, hidden: string): Promise<void> {
  const script =
    '$| = 1; print "begun"; for (;;) { rename("sub", "away"); symlink($ARGV[0], "sub"); unlink("sub"); rename("away", "sub") }'
  const ids = [`--reuid=${strangersUid}`, `--regid=${strangersUid}`, '--clear-groups']
  const child = spawn('setpriv', [...ids, 'perl', '-e', script, hidden], {
    cwd: from,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  await once(child.stdout, 'data')
}

await t.test(
  'root publishes nothing but the content of DIR while its owner swaps a directory',
  needsRoot,
  async (t) => {
    const { from, hidden, target } = scene(t)
    for (const path of [from, join(from, 'sub'), join(from, 'sub/key')]) chownSync(path, strangersUid, strangersUid)
    await swapping(t, from, hidden)
    const seen = new Map<string, number>()
    const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1)
    for (let round = 0; round < rounds; round++) {
      const { code } = await holdfast(['replace', target, '--from', from, '--replace-foreign', '--file-mode', '0644'])
      count(`replace ${code}`)
      for (const text of Object.values(contentsOrNone(target))) t.not(text, secret, `replace, round ${round}`)
      const tree = await readRolloutTree(from, target, false).catch(() => undefined)
      count(`--resources ${tree === undefined ? 'refused' : 'read'}`)
      for (const [path, file] of Object.entries(tree?.files ?? {})) {
        const { content } = file as { content: Uint8Array }
        t.not(Buffer.from(content).toString(), secret, `--resources, round ${round}, ${path}`)
      }
      for (const [path, { owner }] of tree?.entries ?? []) t.equal(owner.uid, strangersUid, `attributes of ${path}`)
    }
    t.comment([...seen].map(([what, times]) => `${what}: ${times}`).join(', '))
    t.equal(readFileSync(join(hidden, 'key'), 'utf8'), secret)
  },
)
