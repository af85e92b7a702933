/** Who uses a target: real processes, on this machine's own procfs. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceDirectory, replaceFile, usesOf } from '../../../src/durable/index.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { holder } from '../../check/holders.js'
import { scratch, scratchWith } from '../scratch.js'

const notRoot = process.getuid?.() === 0 ? false : 'needs root to mount'

type Use = Awaited<ReturnType<typeof usesOf>>['uses'][number][number]

/** `WHAT live|retired` of a process, and how many. */
function seen(uses: readonly Use[], pid: number): string[] {
  return uses
    .filter((use) => use.pid === pid)
    .map(({ what, retired, count }) => `${what} ${retired ? 'retired' : 'live'} ${count}`)
    .sort()
}

async function usesNow(target: string): Promise<readonly Use[]> {
  return (await usesOf([target])).uses[0] ?? []
}

async function scene(t: Test): Promise<{ root: string; target: string; publish: (text: string) => Promise<unknown> }> {
  const [root, target] = scratchWith(t, 'certs')
  const publish = (text: string) => replaceDirectory(target, { files: { 'tls.crt': text, 'sub/tls.key': text } })
  await publish('1')
  return { root, target, publish }
}

await t.test('a descriptor and a working directory: of the present content, then of old content', async (t) => {
  const { root, target, publish } = await scene(t)
  const reader = await holder(t, `exec 3< ${target}/tls.crt 4< ${target}/sub/tls.key; hold`)
  const worker = await holder(t, 'hold', [], join(target, 'sub'))
  const [one, two] = [join(root, 'one'), join(root, 'two')]
  const foreign = join(root, namesFor('certs').quarantine('0123456789abcdef'))
  for (const path of [one, two, foreign]) {
    mkdirSync(path)
    writeFileSync(join(path, 'certs'), '')
  }
  const other = await holder(t, `exec 3< ${root} 4< ${two}/certs; hold`)
  const taken = await holder(t, `exec 3< ${foreign}/certs; hold`)
  const before = await usesNow(target)
  t.strictSame(seen(before, reader), ['fd live 2'])
  t.strictSame(seen(before, worker), ['cwd live 1'])
  t.strictSame(seen(before, other), [], 'the parent is not the target')
  t.strictSame(seen(before, taken), ['fd retired 1'], 'what is kept for somebody else is old, too')
  t.strictSame(
    seen(await usesNow(join(one, 'certs')), other),
    [],
    'another directory has the same name, and is as long',
  )
  t.match(
    before.find(({ pid }) => pid === reader),
    { command: 'sh', path: join(target, 'tls.crt'), cgroup: /^\d+:/ },
  )
  await publish('2')
  const after = await usesNow(target)
  t.strictSame(seen(after, reader), ['fd retired 2'])
  t.strictSame(seen(after, worker), ['cwd retired 1'])
  const beside = join(root, 'other')
  await replaceDirectory(beside, { files: { a: '1' } })
  t.strictSame(await usesNow(beside), [], 'old content is told apart by the target that it was of')
})

await t.test('a file that was replaced', async (t) => {
  const file = join(scratch(t), 'ca.crt')
  await replaceFile(file, '1')
  const reader = await holder(t, `exec 3< ${file}; hold`)
  t.strictSame(seen(await usesNow(file), reader), ['fd live 1'])
  await replaceFile(file, '2')
  t.strictSame(seen(await usesNow(file), reader), ['fd retired 1'])
})

await t.test('the symlink form: an old generation', async (t) => {
  const target = join(scratch(t), 'certs')
  const publish = (text: string) => replaceDirectory(target, { publish: 'symlink', files: { a: text } })
  await publish('1')
  const reader = await holder(t, `exec 3< ${target}/a; hold`)
  t.strictSame(seen(await usesNow(target), reader), ['fd live 1'])
  await publish('2')
  t.strictSame(seen(await usesNow(target), reader), ['fd retired 1'])
})

await t.test('a program that runs out of old content has it mapped', async (t) => {
  const target = join(scratch(t), 'bin')
  const cat = readFileSync('/bin/cat')
  await replaceDirectory(target, { files: { cat: { content: cat, mode: 0o755 } } })
  const child = spawn(join(target, 'cat'), { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  child.stdin.write('running')
  await once(child.stdout, 'data')
  await replaceDirectory(target, { files: { cat: { content: cat, mode: 0o700 } } })
  t.matchOnly(seen(await usesNow(target), child.pid ?? -1), [/^map retired \d+$/])
  child.stdin.end()
  await ended
  t.strictSame(seen(await usesNow(target), child.pid ?? -1), [], 'it has ended')
})

await t.test(
  'usesOf finds a mount in another mount namespace, and a file open through it',
  { skip: notRoot },
  async (t) => {
    const { root, target, publish } = await scene(t)
    const place = join(root, 'elsewhere')
    mkdirSync(place)
    const own = ['unshare', '--mount', '--propagation', 'private', '--']
    const pid = await holder(t, `mount --bind ${target} ${place}; exec 3< ${place}/tls.crt; hold`, own)
    t.strictSame(seen(await usesNow(target), pid), ['fd live 1', 'mount live 1'])
    await publish('2')
    const after = await usesNow(target)
    t.strictSame(seen(after, pid), ['fd retired 1', 'mount retired 1'])
    t.match(
      after.find(({ what }) => what === 'mount'),
      { pid, path: place },
    )
  },
)

await t.test('a process whose root is the target', { skip: notRoot }, async (t) => {
  const { target, publish } = await scene(t)
  // perl changes its root after it has been loaded; a shell could not be started in there.
  const script = '$| = 1; chdir $ARGV[0]; chroot "." or die $!; print "held\\n"; <STDIN>'
  const pid = await holder(t, `exec perl -e '${script}' ${target}`)
  t.strictSame(seen(await usesNow(target), pid), ['cwd live 1', 'root live 1'])
  await publish('2')
  t.strictSame(seen(await usesNow(target), pid), ['cwd retired 1', 'root retired 1'])
})

await t.test('a holder that is in a chroot, and reads the target by a mount in there', { skip: notRoot }, async (t) => {
  const { root, target, publish } = await scene(t)
  mkdirSync(join(root, 'jail', 'certs'), { recursive: true })
  const own = ['unshare', '--mount', '--propagation', 'private', '--']
  const script =
    '$| = 1; chroot $ARGV[0] or die $!; chdir "/"; open F, "/certs/tls.crt" or die $!; print "held\\n"; <STDIN>'
  const mounting = `mount --bind ${target} ${root}/jail/certs`
  const pid = await holder(t, `${mounting}; exec perl -e '${script}' ${root}/jail`, own)
  t.strictSame(seen(await usesNow(target), pid), ['fd live 1', 'mount live 1'])
  await publish('2')
  t.strictSame(seen(await usesNow(target), pid), ['fd retired 1', 'mount retired 1'])
})

await t.test('usesOf finds a chroot in a mount namespace without any other process', { skip: notRoot }, async (t) => {
  const { target } = await scene(t)
  const script = `
    const { spawn } = await import('node:child_process')
    const { usesOf } = await import(${JSON.stringify(new URL('../../../src/durable/index.js', import.meta.url).href)})
    const jailed = spawn('perl', ['-e', '$| = 1; chdir $ARGV[0]; chroot "."; print "held"; <STDIN>', '${target}'])
    await new Promise((resolve) => jailed.stdout.once('data', resolve))
    const { uses: [uses] } = await usesOf(['${target}'])
    console.log(JSON.stringify(uses.map(({ pid, what }) => [pid === jailed.pid, what])))
    jailed.kill('SIGKILL')`
  const node = [process.execPath, '--input-type=module', '--eval', script]
  const { stdout, stderr } = spawnSync('unshare', ['--mount', ...node], { encoding: 'utf8' })
  t.equal(stderr, '')
  t.strictSame(JSON.parse(stdout), [
    [true, 'cwd'],
    [true, 'root'],
  ])
})

await t.test('names with spaces, newlines and what the kernel appends to removed names', async (t) => {
  const target = join(scratch(t), 'a b\nc (deleted)')
  await replaceDirectory(target, { files: { x: '1' } })
  const reader = await holder(t, 'exec 3< x; hold', [], target)
  t.strictSame(seen(await usesNow(target), reader), ['cwd live 1', 'fd live 1'])
})

await t.test(
  'usesOf finds a process that begins during the scan, after its parent has ended before its turn',
  async (t) => {
    const { root, target } = await scene(t)
    const script = `use POSIX; $| = 1; chdir $ARGV[0];
    $SIG{USR1} = sub { my $p = $$; fork and POSIX::_exit(0); 1 while getppid == $p;
      open F, ">", "$ARGV[1].new"; print F $$; close F; rename "$ARGV[1].new", $ARGV[1]; POSIX::pause() };
    print "held\\n"; <STDIN>`
    const first = join(root, 'child')
    const pid = await holder(t, `exec perl -e '${script}' ${target} ${first}`)
    // Up to the first answer of a process all is synchronous: the list of processes is there, and the scan has not reached the holder.
    const looking = usesOf([target])
    spawnSync('sh', ['-c', `kill -USR1 ${pid}; until [ -e ${first} ]; do :; done`])
    const child = Number(readFileSync(first, 'utf8'))
    t.teardown(() => process.kill(child, 'SIGKILL'))
    t.strictSame(seen((await looking).uses[0] ?? [], child), ['cwd live 1'])
  },
)
