/** A pid file never leads a hook to a process that another user chose: by a link, a directory, a number or a thread. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { linkSync } from 'node:fs'
import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { ended, Node } from '../cli/holdfast.js'
import { executable } from '../project.js'
import { until } from '../until.js'
import { messageOf, policy } from './hook-outcome.js'

const user = 12_345
const other = 12_346
const skip = process.getuid?.() === 0 ? false : 'needs root'

const hookFor = (pidFile: string) => ({
  type: 'signal' as const,
  name: 'signal',
  signal: 'SIGHUP' as const,
  pidFile,
  ...policy,
})

/** A directory of root, directly in a directory that everybody may write to and that is sticky. */
async function rootDirectory(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-pid-'))
  await chmod(directory, 0o755)
  t.teardown(() => rm(directory, { recursive: true }))
  return directory
}

async function directoryOf(t: Test, uid: number, mode = 0o755): Promise<string> {
  const directory = join(await rootDirectory(t), 'own')
  await mkdir(directory)
  await chown(directory, uid, uid)
  await chmod(directory, mode)
  return directory
}

/** A process, with setpriv(1)'s way to become a user: all four IDs. */
async function sleeper(t: Test, uid = 0, program = '/bin/sleep'): Promise<ChildProcess & { pid: number }> {
  const child = spawn(program, ['300'], { uid, gid: uid, stdio: 'ignore', argv0: 'sleep' })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await once(child, 'spawn')
  return child as ChildProcess & { pid: number }
}

async function pidFile(directory: string, pid: number | string, uid: number, mode = 0o644): Promise<string> {
  const path = join(directory, 'x.pid')
  await writeFile(path, `${pid}\n`)
  await chown(path, uid, uid)
  await chmod(path, mode)
  return path
}

const alive = (child: ChildProcess) => child.exitCode === null && child.signalCode === null

/** The hook fails with a message that matches, and the process runs on. */
async function refuses(t: Test, path: string, expected: RegExp, ...victims: ChildProcess[]): Promise<void> {
  t.match(await messageOf(hookFor(path)), expected)
  for (const victim of victims) t.ok(alive(victim), 'nobody was signalled')
}

async function signals(t: Test, path: string, child: ChildProcess): Promise<void> {
  const ended: Promise<unknown[]> = once(child, 'exit')
  t.equal(await messageOf(hookFor(path)), undefined)
  t.same(await ended, [null, 'SIGHUP'])
}

await t.test(
  'a pid file may not be a link to the name of a process, which belongs to root by itself',
  { skip },
  async (t) => {
    const victim = await sleeper(t)
    const directory = await directoryOf(t, user)
    // A program that its user may run and not read cannot be dumped, and root owns its /proc/PID; `comm` is its file's name.
    const program = join(directory, String(victim.pid))
    await copyFile('/bin/sleep', program)
    await chown(program, user, user)
    await chmod(program, 0o111)
    const chosen = await sleeper(t, user, program)
    const comm = `/proc/${chosen.pid}/comm`
    await until('the number is there', async () => (await readFile(comm, 'utf8')) === `${victim.pid}\n`)
    t.match(await stat(comm), { uid: 0, mode: 0o100644 })
    const path = join(directory, 'x.pid')
    await symlink(comm, path)
    await refuses(
      t,
      path,
      /does not follow the symbolic link .*\/own\/x\.pid: the link and its directory must belong to root/,
      victim,
    )
    await refuses(t, comm, /: \/proc lies on procfs, /, victim)
    // A link that root made is followed, but not into procfs.
    const rootLink = join(dirname(directory), 'root.pid')
    await symlink(comm, rootLink)
    await refuses(t, rootLink, /: \/proc lies on procfs, /, victim)
    const through = join(dirname(directory), 'through')
    await symlink(`/proc/${chosen.pid}`, through)
    await refuses(t, join(through, 'comm'), /: \/proc lies on procfs, /, victim)
  },
)

await t.test('a pid file may not be a file of sysfs', { skip }, (t) =>
  refuses(t, '/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan', /: \/sys lies on sysfs, /),
)

await t.test('a pid file may not name a thread, nor holdfast itself', { skip }, async (t) => {
  const directory = await rootDirectory(t)
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', env: {} })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const { pid = -1 } = child
  const threads = await until('it has threads', async () => {
    const others = (await readdir(`/proc/${pid}/task`)).map(Number).filter((id) => id !== pid)
    return others.length > 0 && others
  })
  const path = await pidFile(directory, threads[0] ?? -1, 0)
  await refuses(t, path, /: names thread \d+, which leads no process: /, child)
  const [own = -1] = (await readdir(`/proc/${process.pid}/task`)).map(Number).filter((id) => id !== process.pid)
  await refuses(t, await pidFile(directory, own, 0), /: names thread \d+, which leads no process: /)
  await refuses(t, await pidFile(directory, process.pid, 0), /: names holdfast itself$/)
})

await t.test(
  "a pid file of a user, or below that user's directory, signals processes of that user only",
  { skip },
  async (t) => {
    const root = await sleeper(t)
    const theirs = await pidFile(await rootDirectory(t), root.pid, user)
    await refuses(
      t,
      theirs,
      /x\.pid: belongs to user 12345, but process \d+ to user 0: holdfast does not signal it$/,
      root,
    )
    const directory = await directoryOf(t, user)
    const path = await pidFile(directory, root.pid, 0)
    await refuses(t, path, /own belongs to user 12345, but process \d+ to user 0: holdfast does not signal it$/, root)
    const below = join(directory, 'below')
    await mkdir(below)
    const deep = await pidFile(below, root.pid, 0)
    await refuses(t, deep, /own belongs to user 12345, but process \d+ to user 0/, root)
    const others = await sleeper(t, other)
    await refuses(
      t,
      await pidFile(directory, others.pid, user),
      /belongs to user 12345, but process \d+ to user 12346/,
      others,
    )
    const own = await sleeper(t, user)
    await signals(t, await pidFile(directory, own.pid, user), own)
  },
)

await t.test('a set-user-ID process does not belong to the user who runs it', { skip }, async (t) => {
  const directory = await directoryOf(t, user)
  const program = join(dirname(directory), 'set-user-id')
  await copyFile('/bin/sleep', program)
  await chmod(program, 0o4755)
  const child = await sleeper(t, user, program)
  await refuses(
    t,
    await pidFile(directory, child.pid, user),
    /own belongs to user 12345, but process \d+ to user 0/,
    child,
  )
})

await t.test('a pid file, and each directory above it, must not be writable by others', { skip }, async (t) => {
  const own = await sleeper(t, user)
  const root = await sleeper(t)
  const open = await directoryOf(t, 0, 0o777)
  await refuses(t, await pidFile(open, own.pid, user), /everybody may write to \S+own, which is not sticky$/, own)
  const directory = await directoryOf(t, 0)
  await refuses(
    t,
    await pidFile(directory, own.pid, 0, 0o666),
    /x\.pid: is writable by everybody: holdfast does not trust it$/,
    own,
  )
  await refuses(t, await pidFile(directory, root.pid, 0, 0o664), /: is writable by its group 0, which is not /, root)
  await chmod(directory, 0o775)
  await chown(directory, 0, other)
  await refuses(
    t,
    await pidFile(directory, own.pid, user),
    /own is writable by its group 12346, which is not that of process \d+/,
    own,
  )
  await chmod(directory, 0o755)
  const path = await pidFile(directory, own.pid, user)
  linkSync(path, join(directory, 'second'))
  await refuses(t, path, /: has 2 names \(hard links\)/, own)
})

await t.test('pid files work in the places where daemons keep theirs', { skip }, async (t) => {
  const place = await rootDirectory(t)
  // nginx: below root's directory, also by the link that /var/run is.
  await mkdir(join(place, 'run'))
  await symlink('run', join(place, 'link'))
  const nginx = await sleeper(t)
  await pidFile(join(place, 'run'), nginx.pid, 0)
  await signals(t, join(place, 'link/x.pid'), nginx)
  // A process that runs as another user, and whose file is root's.
  const dropped = await sleeper(t, user)
  await signals(t, await pidFile(join(place, 'run'), dropped.pid, 0), dropped)
  // postgres, as Debian has it: its own directory, which its own group may write to.
  const postgres = await sleeper(t, user)
  const own = await directoryOf(t, user, 0o2775)
  await signals(t, await pidFile(own, postgres.pid, user), postgres)
  // In a sticky directory that everybody may write to: what belongs to a user stays that user's.
  const sticky = await directoryOf(t, 0, 0o1777)
  const temporary = await sleeper(t, user)
  await signals(t, await pidFile(sticky, temporary.pid, user), temporary)
  // A link of root's to the file itself.
  const linked = await sleeper(t)
  await pidFile(join(place, 'run'), linked.pid, 0)
  await symlink('run/x.pid', join(place, 'y.pid'))
  await signals(t, join(place, 'y.pid'), linked)
})

await t.test(
  'a directory that its owner exchanges all the time leads to no process of another user',
  { skip },
  async (t) => {
    const victim = await sleeper(t)
    const place = await rootDirectory(t)
    const attacker = join(place, 'attacker')
    await mkdir(attacker)
    for (const name of ['good', 'bad']) await mkdir(join(attacker, name))
    // Root keeps a file there with the number of a process of root's; the user's own names a process of the user's.
    await pidFile(join(attacker, 'bad'), victim.pid, 0)
    const own = await sleeper(t, user)
    const good = await pidFile(join(attacker, 'good'), own.pid, user)
    await chown(attacker, user, user)
    const current = join(attacker, 'current')
    let tries = 0
    const deadline = Date.now() + 2_000
    while (Date.now() < deadline && alive(own)) {
      const hook = messageOf(hookFor(join(current, 'x.pid')))
      await rename(join(attacker, 'good'), current)
      await rename(current, join(attacker, 'good'))
      await rename(join(attacker, 'bad'), current)
      await hook
      await rename(current, join(attacker, 'bad'))
      tries += 1
    }
    t.comment(`${tries} tries; the user's own process was ${alive(own) ? 'not ' : ''}signalled by ${good}`)
    t.ok(tries > 0)
    t.ok(alive(victim))
  },
)

const noStrace = spawnSync('strace', ['--version']).status === 0 ? false : 'needs strace'

await t.test('a kernel that cannot hold a process gets no signal sent', { skip: skip || noStrace }, async (t) => {
  const node = new Node(t, [])
  const run = async (path: string, code: string) => {
    node.configure([
      { path: './certs', contents: [{ secret: 'a' }], afterPublish: [{ signal: { name: 'SIGHUP', pidFile: path } }] },
    ])
    node.put('Secret', 'a', { key: String(Math.random()) })
    const injected = ['-f', '-qq', '-o', '/dev/null', '-e', `inject=pidfd_open:error=${code}`]
    const words = [...injected, process.execPath, executable, 'sync', '--hooks', '--config', node.configuration]
    return ended(spawn('strace', words, { stdio: 'pipe', env: { PATH: process.env.PATH } }))
  }
  const directory = await directoryOf(t, 0)
  for (const code of ['ENOSYS', 'EPERM']) {
    const child = await sleeper(t)
    const exit: Promise<unknown[]> = once(child, 'exit')
    const done = await run(await pidFile(directory, child.pid, 0), code)
    t.equal(done.code, 0, done.stderr)
    t.same(await exit, [null, 'SIGHUP'], code)
  }
  const own = await sleeper(t, user)
  const failed = await run(await pidFile(directory, own.pid, user), 'ENOSYS')
  t.match(failed.stdout + failed.stderr, /this kernel cannot hold process \d+ .*does not belong to root alone/)
  t.ok(alive(own))
  const threaded = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', env: {} })
  t.teardown(() => threaded.kill('SIGKILL'))
  const thread = await until('it has threads', async () =>
    (await readdir(`/proc/${threaded.pid}/task`)).map(Number).find((id) => id !== threaded.pid),
  )
  const refused = await run(await pidFile(directory, thread, 0), 'ENOSYS')
  t.match(refused.stdout + refused.stderr, /names thread \d+, which leads no process/)
  t.ok(alive(threaded))
})
