/** Entries at the target's path, beside it and above it: check reports them, and changes none. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkNode } from '../../src/check/check.js'
import { loadConfiguration } from '../../src/config/parse.js'
import { namesFor } from '../../src/durable/path/names.js'
import { kept } from '../durable/scratch.js'
import { needsRoot, Scene, snapshot } from './scene.js'

const strace = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'
const random = (digit: string): string => digit.repeat(16)

await t.test('check tells where holdfast will make a missing parent, and makes nothing', async (t) => {
  const scene = new Scene(t)
  rmSync(scene.parent, { recursive: true })
  const checked = await scene.check(t)
  t.match(checked.one('parent'), {
    found: /parent does not exist: holdfast will create it in .*, which has mode 0700, owner/,
  })
  t.match(checked.one('target'), { status: 'OK', found: 'does not exist yet' })
  t.equal(checked.one('exchange').status, 'OK', 'tried in the directory that will hold it')
  t.same(
    readdirSync(scene.root)
      .filter((name) => name !== 'launch.mjs')
      .sort(),
    ['holdfast.yaml', 'objects'],
  )
})

await t.test('check looks at a published target under its lock, and changes nothing', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  const before = snapshot(scene.parent)
  const checked = await scene.check(t)
  t.match(checked.one('target'), { status: 'OK', found: /^a directory on the same mount as its parent/ })
  t.match(checked.one('leftovers'), { status: 'OK', found: 'none' })
  t.match(checked.one('space'), { found: /free; the target takes \d/ })
  t.same(snapshot(scene.parent), before)
})

await t.test('check reports an irreplaceable target as a fault, in the words of the refusal', async (t) => {
  const cases: [string, (scene: Scene) => void, object][] = [
    [
      'a symbolic link',
      (scene) => {
        mkdirSync(scene.path('elsewhere'))
        symlinkSync('../elsewhere', scene.target)
      },
      {
        found: /is a symbolic link, which a publication would replace$/,
        advice: 'name the directory that the link leads to',
      },
    ],
    [
      'a file',
      ({ target }) => writeFileSync(target, ''),
      { found: /is not a directory$/, advice: 'name a directory, or move away what is there' },
    ],
    [
      'of the other form',
      ({ target }) => {
        mkdirSync(join(target, '..v'), { recursive: true })
        symlinkSync('..v', join(target, '..data'))
      },
      {
        found: /certs has the form of publish: symlink$/,
        advice: /: keep publish: symlink, or remove the directory/,
      },
    ],
  ]
  for (const [what, make, expected] of cases) {
    const scene = new Scene(t)
    make(scene)
    const before = snapshot(scene.parent)
    const checked = await scene.check(t)
    t.match(checked.one('target'), { status: 'FAULT', ...expected }, what)
    t.same(snapshot(scene.parent), before, what)
    // sync refuses for the reason that check gives.
    t.equal((await scene.run('sync')).code, 1, what)
  }
})

await t.test('check reports a target published in one form, and configured in the other', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  scene.configure([{ path: scene.target, publish: 'symlink', contents: [{ secret: 'serving-cert' }] }])
  const checked = await scene.check(t)
  t.match(checked.one('target'), {
    status: 'FAULT',
    found: /was published with publish: exchange$/,
  })
  t.equal((await scene.run('sync')).code, 1)
})

await t.test("check reports another program's directory", async (t) => {
  const scene = new Scene(t)
  mkdirSync(scene.target)
  writeFileSync(join(scene.target, 'theirs'), '')
  t.match((await scene.check(t)).one('target'), {
    status: 'WARN',
    found: /holdfast did not publish it, and replaces it only if/,
    advice: 'set adopt: replace to take it over, or move it away',
  })
  scene.configure([{ path: scene.target, adopt: true, contents: [{ secret: 'serving-cert' }] }])
  t.match((await scene.check(t)).one('target'), { status: 'WARN', found: /adopt is true$/ })
})

await t.test('check refuses a mount point as the target', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  mkdirSync(scene.target)
  const script = `mount --bind '${scene.target}' '${scene.target}' && exec "$@"`
  const under = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh']
  t.match((await scene.check(t, { under })).one('target'), {
    status: 'FAULT',
    found: /is a mount point$/,
    advice: 'name a directory inside it, or mount its parent directory instead',
  })
})

await t.test('check refuses a link on the way that another user could have made', async (t) => {
  const scene = new Scene(t)
  renameSync(scene.parent, scene.path('real'))
  symlinkSync('real', scene.parent)
  chmodSync(scene.root, 0o1777)
  const { document } = await scene.check(t)
  t.match(
    document.checks.find(({ status }) => status === 'FAULT'),
    {
      subject: scene.target,
      check: 'path',
      found: /does not follow the symbolic link/,
      advice: 'name the real path',
    },
  )
})

await t.test('check warns of parents that others may write to', async (t) => {
  const cases: [number, string, RegExp][] = [
    [0o777, 'FAULT', /everybody may write to \S+, and so replace the target$/],
    [0o1777, 'WARN', /everybody may create files beside the target/],
    [0o700, 'OK', /^.*parent has mode 0700, owner \d+:\d+$/],
  ]
  for (const [mode, status, found] of cases) {
    const scene = new Scene(t)
    chmodSync(scene.parent, mode)
    t.match((await scene.check(t)).one('parent'), { status, found }, mode.toString(8))
    t.equal((await scene.run('sync')).code, status === 'FAULT' ? 1 : 0)
  }
  const scene = new Scene(t)
  chmodSync(scene.root, 0o777)
  t.match((await scene.check(t)).one('parent'), {
    status: 'WARN',
    found: /above it, and could move it away$/,
  })
})

await t.test('check warns of parents of other users and groups', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  chownSync(scene.parent, 1234, 0)
  t.match((await scene.check(t)).one('parent'), {
    status: 'WARN',
    found: /user 1234 owns \S+, and may write to it, and so replace the target/,
  })
  chownSync(scene.parent, 0, 1234)
  chmodSync(scene.parent, 0o775)
  t.match((await scene.check(t)).one('parent'), {
    status: 'WARN',
    found: /group 1234 may write to \S+, and so replace the target/,
  })
})

await t.test('check reports leftovers, and leaves them to the next publication', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  const names = namesFor('certs')
  mkdirSync(join(scene.parent, names.staging(random('a'))))
  const before = snapshot(scene.parent)
  t.match((await scene.check(t)).one('leftovers'), {
    status: 'WARN',
    found: `1 beside the target, from an interrupted publication: ${names.staging(random('a'))}`,
  })
  t.same(snapshot(scene.parent), before)
  t.equal((await scene.run('sync')).code, 0)
  t.same(kept(scene.parent), ['lock', 'record'])
})

await t.test('check reports a quarantined entry until people have removed it', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  const names = namesFor('certs')
  const quarantined = names.quarantine(random('a'))
  mkdirSync(join(scene.parent, quarantined))
  mkdirSync(join(scene.parent, names.staging(random('b'))))
  for (let round = 0; round < 2; round++) {
    t.match((await scene.check(t)).one('leftovers'), {
      status: 'WARN',
      found: `1 beside the target, ${quarantined}: another program put it in the target's place while a publication was interrupted`,
    })
    t.equal((await scene.run('sync')).code, 0)
  }
})

await t.test('check waits for another process that publishes in this moment', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  const lock = join(scene.parent, namesFor('certs').lock)
  const held = openSync(lock, 'r+')
  // Without --close: this shell, which waits for its input, holds the lock.
  const holder = spawn('flock', ['--exclusive', '3'], { stdio: ['ignore', 'ignore', 'ignore', held] })
  t.same(await once(holder, 'close'), [0, null])
  const checked = await scene.check(t)
  t.match(checked.one('target'), { status: 'WARN', found: /^another process holds the lock/ })
  t.same(checked.all('exchange'), [], 'what it works with is left alone')
  const waiting = new AbortController()
  const options = { environment: {}, version: 'test', nodeName: '', timeout: 1_000, lockTimeout: 600_000 }
  const checking = checkNode(await loadConfiguration(scene.configuration), { ...options, signal: waiting.signal })
  waiting.abort()
  await t.rejects(checking, { name: 'AbortError' }, 'whoever aborts does not wait for the lock')
  closeSync(held)
  t.equal((await scene.check(t)).one('target').status, 'OK')
})

await t.test(
  'the next publication removes what a check killed at the exchange has left',
  { skip: strace },
  async (t) => {
    const scene = new Scene(t)
    const under = [
      'strace',
      '-f',
      '-qq',
      '-o',
      '/dev/null',
      '-e',
      'trace=renameat2',
      '-e',
      'inject=renameat2:signal=KILL',
    ]
    const { signal, code } = await scene.run('check', [], { under })
    t.ok(signal === 'SIGKILL' || code === 137, `${signal} ${code}`)
    t.same(kept(scene.parent), ['staging', 'staging'])
    t.match((await scene.check(t)).one('leftovers'), { status: 'WARN', found: /^2 beside the target/ })
    t.equal((await scene.run('sync')).code, 0)
    t.same(kept(scene.parent), ['lock', 'record'])
  },
)

for (const [code, found] of [
  ['EINVAL', /^a file system of type \S+ cannot exchange two names in one step \(RENAME_EXCHANGE\)$/],
  ['EXDEV', /^could not exchange two directories beside the target: renameat2 .*: EXDEV$/],
] as const) {
  await t.test(`check reports a file system that answers ${code} to the exchange`, { skip: strace }, async (t) => {
    const scene = new Scene(t)
    const inject = ['-e', 'trace=renameat2', '-e', `inject=renameat2:error=${code}`]
    const checked = await scene.check(t, { under: ['strace', '-f', '-qq', '-o', '/dev/null', ...inject] })
    t.match(checked.one('exchange'), { status: 'FAULT', found })
    t.same(readdirSync(scene.parent), [])
  })
}

await t.test('check names an entry that it cannot remove again', { skip: strace }, async (t) => {
  const scene = new Scene(t)
  const inject = ['-e', 'trace=rmdir', '-e', 'inject=rmdir:error=EIO:when=1']
  const under = ['strace', '-f', '-qq', '-o', '/dev/null', ...inject]
  // strace counts for each thread.
  const checked = await scene.check(t, { under, env: { UV_THREADPOOL_SIZE: '1' } })
  const [left = ''] = readdirSync(scene.parent)
  t.match(checked.one('exchange'), {
    status: 'FAULT',
    found: new RegExp(`could not be removed: ${left}$`),
  })
  t.same(kept(scene.parent), ['staging'])
})

await t.test('check reports the lock of another user', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  const lock = join(scene.parent, namesFor('certs').lock)
  execFileSync('install', ['-m', '600', '-o', '1234', '/dev/null', lock])
  t.match((await scene.check(t)).one('target'), {
    status: 'FAULT',
    found: /is not a regular file of root or of this user/,
  })
})
