/*
 * Another program changes the disk between staging and exchange: strace stops the program in its first barrier, until the test has made its
 * change. The program loses no foreign file, writes to no other place, and answers truly.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contents, kept, scratch } from '../../durable/scratch.js'
import { goOn, isStopped, stoppedAt, until } from '../held.js'
import { environment, executable } from '../syscalls/distribution.js'

t.setTimeout(300_000)

const skip = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'

interface Answer {
  readonly code: number | null
  readonly error: { reason?: string; code?: string; published?: boolean; message?: string }
}

interface Stage {
  readonly root: string
  readonly parent: string
  readonly target: string
  /** Runs the program; `act` is done while it is stopped before its exchange. */
  readonly publish: (act: () => void) => Promise<Answer>
  readonly again: (...options: string[]) => Promise<Answer>
}

function stage(t: Test, form: 'replace' | 'write', old = true): Stage {
  const root = scratch(t)
  const [parent, from] = [join(root, 'parent'), join(root, 'from')]
  const target = join(parent, 'target')
  for (const path of [parent, from, join(root, 'victim')]) mkdirSync(path)
  writeFileSync(join(root, 'victim/precious'), 'precious')
  writeFileSync(join(from, 'file'), 'new')
  if (old && form === 'write') writeFileSync(target, 'old')
  if (old && form === 'replace') {
    mkdirSync(target)
    writeFileSync(join(target, 'file'), 'old')
  }
  const run = async (act?: () => void, options: readonly string[] = []): Promise<Answer> => {
    const args = form === 'replace' ? ['replace', target, '--from', from] : ['write', target]
    const log = join(root, 'strace.log')
    const holdfast = [process.execPath, executable(root), ...args, ...options, '-o', 'json']
    const [name = '', ...rest] = act === undefined ? holdfast : stoppedAt('io_getevents', holdfast, log)
    const child = spawn(name, rest, { env: environment, stdio: 'pipe' })
    child.stdin.end('new')
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
    child.stderr.resume()
    const closed = once(child, 'close') as Promise<[number | null]>
    if (act !== undefined) {
      await until('the program is stopped', () => isStopped(log))
      act()
      // And at each of these calls that follows.
      await until('it has ended', () => {
        goOn(child.pid)
        return child.exitCode !== null
      })
    }
    const [code] = await closed
    return { code, error: (JSON.parse(stdout) as { error?: Answer['error'] }).error ?? {} }
  }
  return {
    root,
    parent,
    target,
    again: (...options) => run(undefined, options),
    publish: (act) => run(act),
  }
}

const make = {
  directory: (path: string) => {
    mkdirSync(path)
    writeFileSync(join(path, 'theirs'), 'theirs')
  },
  file: (path: string) => writeFileSync(path, 'theirs'),
  link: (path: string) => symlinkSync('../victim', path),
}

for (const [kind, put] of Object.entries(make)) {
  for (const old of [true, false]) {
    const what = old ? `replaced by a ${kind}` : `created as a ${kind}`
    await t.test(`the target is ${what} meanwhile`, { skip }, async (t) => {
      const { target, parent, publish } = stage(t, 'replace', old)
      const { code, error } = await publish(() => {
        if (old) renameSync(target, join(parent, 'moved-away'))
        put(target)
      })
      t.equal(code, 1)
      t.match(error, { published: false, reason: 'TargetForeign' })
      const stats = lstatSync(target)
      if (kind === 'directory') t.same(contents(target), { theirs: 'theirs' }, 'what they put there is left alone')
      else if (kind === 'file') t.equal(readFileSync(target, 'utf8'), 'theirs', 'what they put there is left alone')
      else t.ok(stats.isSymbolicLink(), 'their link is left alone')
      if (old) t.same(contents(join(parent, 'moved-away')), { file: 'old' })
      t.notOk(kept(parent).includes('staging'), 'what was staged is gone')
    })
  }
}

await t.test('a file’s target becomes a directory meanwhile', { skip }, async (t) => {
  const { target, parent, publish } = stage(t, 'write')
  const { code, error } = await publish(() => {
    rmSync(target)
    make.directory(target)
  })
  t.equal(code, 1)
  t.equal(error.published, false)
  t.same(contents(target), { theirs: 'theirs' })
  t.notOk(kept(parent).includes('staging'))
})

await t.test('a file’s target becomes a link meanwhile: it is replaced, not followed', { skip }, async (t) => {
  const { root, target, publish } = stage(t, 'write')
  const { code } = await publish(() => {
    rmSync(target)
    symlinkSync('../victim/precious', target)
  })
  t.equal(code, 0)
  t.equal(readFileSync(target, 'utf8'), 'new')
  t.ok(lstatSync(target).isFile())
  t.equal(readFileSync(join(root, 'victim/precious'), 'utf8'), 'precious')
})

for (const form of ['replace', 'write'] as const) {
  await t.test(`${form}: the target vanishes meanwhile`, { skip }, async (t) => {
    const { target, parent, publish, again } = stage(t, form)
    const { code, error } = await publish(() => rmSync(target, { recursive: true }))
    if (form === 'write') t.equal(code, 0, 'a rename does not need it')
    else {
      t.equal(code, 1)
      t.equal(error.published, false, 'there is nothing to exchange with')
      t.notOk(existsSync(target))
    }
    t.equal((await again()).code, 0)
    t.same(kept(parent), ['lock', 'record'])
  })

  await t.test(`${form}: a link takes the parent’s place meanwhile`, { skip }, async (t) => {
    const { root, parent, publish, again } = stage(t, form)
    const moved = join(root, 'moved')
    const { code, error } = await publish(() => {
      renameSync(parent, moved)
      symlinkSync('victim', parent)
    })
    t.equal(code, 3, 'the path leads elsewhere: nothing is called published there')
    t.match(error, { published: true, reason: 'DurabilityUnknown' })
    const target = join(moved, 'target')
    t.equal(readFileSync(form === 'write' ? target : join(target, 'file'), 'utf8'), 'new', 'it worked where it opened')
    t.same(readdirSync(join(root, 'victim')), ['precious'], 'nothing is written where the link leads')
    rmSync(parent)
    renameSync(moved, parent)
    t.equal((await again()).code, 0, 'back in its place, it is published')
    t.same(kept(parent), ['lock', 'record'])
  })

  await t.test(`${form}: the parent is removed meanwhile`, { skip }, async (t) => {
    const { parent, publish, again } = stage(t, form)
    const { code, error } = await publish(() => rmSync(parent, { recursive: true }))
    t.equal(code, 1)
    t.equal(error.published, false)
    t.notOk(existsSync(parent))
    t.equal((await again()).code, 1, 'the next run does not make it')
    t.equal((await again('--parents')).code, 0, 'unless it is told to')
    t.same(kept(parent), ['lock', 'record'])
  })
}
