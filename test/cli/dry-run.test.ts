/** --dry-run of replace, write, remove and rollback: it says what the command then does, ends with the code of that, and touches nothing. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { setHold } from '../../src/durable/index.js'
import { executableForOthers } from '../project.js'
import { scratch, scratchWith } from '../durable/scratch.js'
import { holdfast, Node, type Ended } from './holdfast.js'

const quiet = ['--log-level', 'error']

/** What any call that changes something would change: names, inodes, and the times of their changes, of a directory and all below. */
function stateOf(root: string): string[] {
  const names = ['', ...readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()]
  return names.map((name) => {
    const { ino, mode, uid, size, mtimeNs, ctimeNs } = lstatSync(join(root, name), { bigint: true })
    return [name, ino, mode, uid, size, mtimeNs, ctimeNs].join(' ')
  })
}

interface Trial {
  readonly what: string
  readonly args: readonly string[]
  readonly input?: string
  /** What the dry run says: on standard output, and where it refuses, on standard error. */
  readonly says: RegExp
}

/** Runs it dry, and then in earnest: equal exit codes, and nothing touched before. Answers what the real one said. */
async function tryBoth(t: Test, root: string, { what, args, input = '', says }: Trial): Promise<Ended> {
  const before = stateOf(root)
  const dry = await holdfast([...args, '--dry-run', ...quiet], { input })
  t.strictSame(stateOf(root), before, `${what}: nothing was touched`)
  t.match(dry.code === 0 ? dry.stdout : dry.stderr, says, `${what}: ${dry.stderr}`)
  const real = await holdfast([...args, ...quiet], { input })
  t.equal(dry.code, real.code, `${what}: the exit code of the real run (${real.stderr})`)
  if (real.code === 0) t.notSame(stateOf(root), before, `${what}: the real run does something`)
  return real
}

/** The line of a result, without the words of a dry run and the changes below it. */
function resultIn({ stdout }: Ended): string | undefined {
  return stdout.split('\n', 1)[0]?.replace(/^would be /, '')
}

function sourceIn(root: string, files: Readonly<Record<string, string>>): string {
  const from = join(root, 'from')
  rmSync(from, { recursive: true, force: true })
  mkdirSync(from)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(from, name), content)
  return from
}

await t.test('replace --dry-run says what replace then does', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  const replace = ['replace', target, '--from', sourceIn(root, { a: '1', b: '2' })]
  const created = new RegExp(`^would be created ${target} sha256:[0-9a-f]{64}\\n {2}\\+ a\\n {2}\\+ b\\n$`)
  await tryBoth(t, root, { what: 'a new target', args: replace, says: created })

  const same = stateOf(root)
  const unchanged = await holdfast([...replace, '--dry-run', '-o', 'json', ...quiet])
  t.match(unchanged.code, 0)
  const document = JSON.parse(unchanged.stdout) as object
  t.match(document, { dryRun: true, outcome: 'unchanged', path: target, digest: /^sha256:/ })
  t.same((document as { changes: unknown }).changes, [])
  t.strictSame(stateOf(root), same)

  sourceIn(root, { a: '1', b: 'other', c: '3' })
  const dry = await holdfast([...replace, '--dry-run', ...quiet])
  t.match(dry.stdout, /^would be replaced .*\n {2}~ b\n {2}\+ c\n$/)
  const real = await tryBoth(t, root, { what: 'other content', args: replace, says: /^would be replaced / })
  t.equal(resultIn(dry), resultIn(real), 'outcome, path and digest')

  sourceIn(root, { a: '1' })
  chmodSync(target, 0o700)
  const warned = await holdfast([...replace, '--dry-run'])
  t.match(warned.stdout, /\n {2}- b\n {2}- c\n/)
  t.match(warned.stderr, /mode would change from 0700 to 0755 \(--keep-attributes keeps mode and owner\)/)
})

await t.test('replace --dry-run refuses what replace refuses', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  const from = sourceIn(root, { a: '1' })
  await holdfast(['replace', target, '--from', from, ...quiet])
  sourceIn(root, { a: '2' })
  const replace = ['replace', target, '--from', from]
  const deep = ['replace', join(root, 'none/deep'), '--from', from]
  await tryBoth(t, root, { what: 'a missing parent', args: deep, says: /none does not exist.*--parents/ })
  await tryBoth(t, root, {
    what: 'a target below a target',
    args: ['replace', join(target, 'below'), '--from', from],
    says: /inside|below/,
  })
  const file = join(root, 'file')
  writeFileSync(file, '')
  await tryBoth(t, root, { what: 'a file', args: ['replace', file, '--from', from], says: /is not a directory/ })
  await setHold(target, { since: 1, until: null, reason: 'INC-7' })
  await tryBoth(t, root, { what: 'a held target', args: replace, says: /is held since .*INC-7/ })

  const lock = readdirSync(root).find((name) => name.endsWith('.lock')) ?? ''
  const holder = spawn('flock', [join(root, lock), 'sh', '-c', 'echo locked; exec cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  t.teardown(() => holder.kill('SIGKILL'))
  await new Promise((resolve) => holder.stdout.once('data', resolve))
  const real = await tryBoth(t, root, { what: 'a locked target', args: replace, says: /publishing .* holds its lock/ })
  t.equal(real.code, 75)
  const waits = holdfast([...replace, '--release', '--dry-run', '--lock-timeout', '60s', ...quiet])
  holder.stdin.end()
  t.match(await waits, { code: 0, stdout: /^would be replaced / }, 'it waits for the lock as a real run would')
  await tryBoth(t, root, { what: 'a released one', args: [...replace, '--release'], says: /^would be replaced / })
  await tryBoth(t, root, { what: 'missing parents', args: [...deep, '--parents'], says: /^would be created / })
})

await t.test('replace and write refuse a target of an agent, also in a dry run', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }])
  node.put('Secret', 'web', { key: '1' })
  t.match(await node.run('sync'), { code: 0 })
  const args = ['replace', node.path('disk/web'), '--from', sourceIn(node.root, { a: '1' })]
  await tryBoth(t, node.root, { what: "an agent's", args, says: /an agent or "holdfast sync" publishes .*--force/ })
  await tryBoth(t, node.root, {
    what: 'by force',
    args: [...args, '--force'],
    says: /^would be replaced .*\n {2}\+ a\n/,
  })
})

await t.test('a dry run refuses a file system on which durability is not proven, as the command does', async (t) => {
  const root = scratch(t, '/dev/shm')
  const from = sourceIn(root, { a: '1' })
  const strict = ['--require-proven']
  const deep = ['replace', join(root, 'none/target'), '--from', from, '--parents']
  await tryBoth(t, root, {
    what: 'replace',
    args: [...deep, ...strict],
    says: /durability is not proven .*requireProven/,
  })
  const warned = await holdfast([...deep, '--dry-run', '-o', 'json'])
  t.match(JSON.parse(warned.stdout), { outcome: 'created', unproven: true })
  t.match(warned.stderr, /durability is not proven/)
  const file = join(root, 'file')
  await tryBoth(t, root, { what: 'write', args: ['write', file, ...strict], input: 'x', says: /is not proven/ })
  await holdfast(['write', file, ...quiet], { input: 'x' })
  await tryBoth(t, root, { what: 'remove', args: ['remove', file, '--force', ...strict], says: /is not proven/ })
})

await t.test('write --dry-run judges its content, and starts no command', async (t) => {
  const [root, file] = scratchWith(t, 'ca.crt')
  const write = ['write', file]
  await tryBoth(t, root, { what: 'empty', args: write, says: /the content is empty; --allow-empty/ })
  const pem = ['--validate', 'pem']
  await tryBoth(t, root, { what: 'no PEM', args: [...write, ...pem], input: 'x', says: /fails --validate pem/ })
  const expect = ['--expect', `sha256:${'0'.repeat(64)}`]
  await tryBoth(t, root, {
    what: 'other',
    args: [...write, ...expect],
    input: 'x',
    says: /has the digest .* not sha256:0/,
  })
  const from = join(root, 'other')
  writeFileSync(from, 'from a file')
  await tryBoth(t, root, { what: 'other file', args: [...write, '--from', from, ...expect], says: /has the digest/ })
  await tryBoth(t, root, { what: 'new', args: write, input: '1', says: /^would be created \S+ca\.crt sha256:\w+\n$/ })
  // More than what a stream keeps in memory.
  const long = 'x'.repeat(3 << 20)
  await tryBoth(t, root, { what: 'changed', args: write, input: long, says: /^would be replaced / })
  t.match(await holdfast([...write, '--dry-run', ...quiet], { input: long }), { code: 0, stdout: /^unchanged \S+ca/ })
  await tryBoth(t, root, { what: 'from a file', args: [...write, '--from', from], says: /^would be replaced / })
  t.equal(readFileSync(file, 'utf8'), 'from a file')

  const made = join(root, 'made')
  const command = await holdfast([...write, '--dry-run', '--', 'touch', made])
  t.match(command, { code: 2, stderr: /--dry-run starts no command: pipe what it prints/ })
  t.notOk(existsSync(made))
})

await t.test('remove --dry-run says what remove then does', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  // Not all processes can be looked at wherever this runs.
  const remove = ['remove', target, '--force', '--state-directory', join(root, 'state')]
  await tryBoth(t, root, { what: 'nothing published', args: remove, says: /has published nothing at/ })
  await holdfast(['replace', target, '--from', sourceIn(root, { a: '1' }), ...quiet])
  writeFileSync(join(target, 'more'), '')
  await tryBoth(t, root, {
    what: 'a changed one',
    args: remove.filter((word) => word !== '--force'),
    says: /is not what holdfast published: more \(unexpected\)/,
  })
  rmSync(join(target, 'more'))
  await holdfast(['hold', target, '--reason', 'INC-9'])
  await tryBoth(t, root, { what: 'a held one', args: remove, says: /is held since .*INC-9/ })
  await holdfast(['release', target])
  const user = spawn('sleep', ['600'], { cwd: target, stdio: 'ignore' })
  await new Promise((resolve) => user.once('spawn', resolve))
  await tryBoth(t, root, { what: 'a used one', args: remove, says: /is in use: process \d+/ })
  user.kill('SIGKILL')
  await new Promise((resolve) => user.once('close', resolve))
  const dry = await holdfast([...remove, '--dry-run', '-o', 'json', ...quiet])
  t.match(JSON.parse(dry.stdout), { dryRun: true, path: target, removed: true })
  await tryBoth(t, root, { what: 'a free one', args: remove, says: new RegExp(`^would be removed ${target}\\n$`) })
  t.notOk(existsSync(target))
})

await t.test('rollback --dry-run says what rollback then does', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }])
  const path = node.path('disk/web')
  for (const key of ['1', '2']) {
    node.put('Secret', 'web', { key })
    t.match(await node.run('sync'), { code: 0 })
  }
  const back = ['rollback', path, '--state-directory', node.path('none'), '--no-check']
  await tryBoth(t, node.root, { what: 'no such content', args: [...back, '--to', '77'], says: /no earlier content 77/ })
  await tryBoth(t, node.root, { what: 'the present one', args: [...back, '--to', '2'], says: /holds this content/ })
  const dry = await holdfast([...back, '--dry-run', '-o', 'json', ...quiet])
  t.match(JSON.parse(dry.stdout), {
    dryRun: true,
    ...{ path, outcome: 'replaced', sequence: 1, pin: 'newer' },
    changes: [{ path: 'key', change: 'change' }],
  })
  const says =
    /^would be rolled back \S+web to 1 sha256:\w+\n {2}~ key\nwould be pinned until an object is newer than those that were rolled back from\n$/
  const real = await tryBoth(t, node.root, { what: 'an earlier one', args: back, says })
  t.match(real.stdout, /^rolled back \S+web to 1 /)
  t.equal(node.read('disk/web/key'), '1')
})

const isRoot = process.geteuid?.() === 0

await t.test(
  'a dry run refuses where this user may not write',
  { skip: isRoot && spawnSync('setpriv', ['--version']).status !== 0 && 'needs root with setpriv' },
  async (t) => {
    const root = scratch(t, tmpdir())
    chmodSync(root, 0o755)
    const from = sourceIn(root, { a: '1' })
    chmodSync(join(root, 'from/a'), 0o644)
    const [closed, file] = [join(root, 'closed'), join(root, 'closed/file')]
    mkdirSync(closed)
    chmodSync(closed, 0o555)
    const as = isRoot ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'] : ['env']
    const [command, ...words] = [...as, process.execPath, executableForOthers(root)]
    for (const args of [
      ['replace', join(closed, 'target'), '--from', from],
      ['replace', join(closed, 'deep/target'), '--from', from, '--parents'],
      ['write', file, '--from', join(from, 'a')],
    ]) {
      const [dry, real] = [['--dry-run'], []].map((more) =>
        spawnSync(command, [...words, ...args, ...more], { encoding: 'utf8' }),
      )
      t.match(dry, { status: 1, stdout: '', stderr: /EACCES/ }, `${args[0]}: ${dry?.stderr}`)
      t.match(real, { status: 1, stderr: /EACCES/ })
    }
    t.strictSame(readdirSync(closed), [])
    await Promise.resolve()
  },
)
