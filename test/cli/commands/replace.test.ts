import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { replaceDirectory } from '../../../src/durable/index.js'
import { openBelow } from '../../durable/scratch.js'
import { until } from '../../until.js'
import { holdfastInJson as holdfast, scratch } from '../holdfast.js'

const canary = 'CANARY-4f1d'

await t.test('replace publishes a tree, reports its work, and does nothing twice', async (t) => {
  const root = scratch(t)
  const from = join(root, 'from')
  const target = join(root, 'deep', 'target')
  mkdirSync(join(from, 'sub'), { recursive: true })
  writeFileSync(join(from, 'a'), canary)
  writeFileSync(join(from, 'sub', 'b'), Buffer.of(0, 255, 254))
  writeFileSync(join(from, '__proto__'), 'a name like another')
  const args = ['replace', target, '--from', from, '--mode', '0750', '--file-mode', '0640', '--log-level', 'error']
  const parentless = await holdfast(args)
  t.equal(parentless.code, 1)
  t.match(
    parentless.stderr,
    `${join(root, 'deep')} does not exist, and ${target} would be in it; nothing was changed; make this directory`,
  )
  t.strictSame(readdirSync(root), ['from'], 'it made nothing')
  args.push('--parents')
  const first = await holdfast(args)
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, new RegExp(`^created ${target} sha256:[0-9a-f]{64}\n$`))
  t.equal(first.stderr, '')
  t.strictSame(readdirSync(target).sort(), ['__proto__', 'a', 'sub'])
  t.strictSame([...readFileSync(join(target, 'sub', 'b'))], [0, 255, 254])
  t.equal(statSync(target).mode & 0o7777, 0o750)
  t.equal(statSync(join(target, 'a')).mode & 0o7777, 0o640)

  const second = await holdfast([...args, '-o', 'json'])
  const result = JSON.parse(second.stdout) as Record<string, unknown>
  t.match(result, { outcome: 'unchanged', path: target, digest: first.stdout.trim().split(' ')[2] })
  rmSync(join(from, 'a'))
  const third = await holdfast(args)
  t.match(third.stdout, /^replaced /)
  t.strictSame(readdirSync(target).sort(), ['__proto__', 'sub'], 'what the source does not hold any more is gone')
  for (const { stdout, stderr } of [first, second, third]) t.notMatch(stdout + stderr, canary)
})

await t.test('replace publishes from a volume as kubelet mounts it, in the form that its readers see', async (t) => {
  const root = scratch(t)
  const volume = join(root, 'volume')
  const target = join(root, 'target')
  for (const [version, content] of [
    ['..2026_01_01', 'old'],
    ['..2026_01_02', 'new'],
  ] as const) {
    mkdirSync(join(volume, version, 'sub'), { recursive: true })
    writeFileSync(join(volume, version, 'tls.crt'), content)
    writeFileSync(join(volume, version, 'sub', 'tls.key'), content)
  }
  symlinkSync('..2026_01_02', join(volume, '..data'))
  for (const name of ['tls.crt', 'sub']) symlinkSync(`..data/${name}`, join(volume, name))
  const published = await holdfast(['replace', target, '--from', volume])
  t.equal(published.code, 0, published.stderr)
  t.strictSame(readdirSync(target, { recursive: true }).sort(), ['sub', 'sub/tls.key', 'tls.crt'])
  t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), 'new')
  t.equal(readFileSync(join(target, 'sub', 'tls.key'), 'utf8'), 'new')

  rmSync(join(volume, '..data'))
  symlinkSync('/etc', join(volume, '..data'))
  const refused = await holdfast(['replace', target, '--from', volume])
  t.match(refused, { code: 2, stderr: /is a symbolic link: holdfast publishes regular files only/ })
})

await t.test('replace takes nothing of another program away without --replace-foreign', async (t) => {
  const root = scratch(t)
  const [from, target] = [join(root, 'from'), join(root, 'target')]
  for (const directory of [from, target]) mkdirSync(directory)
  writeFileSync(join(from, 'a'), 'new')
  for (const name of ['a', 'theirs']) writeFileSync(join(target, name), 'old')
  const replace = (...flags: string[]) => holdfast(['replace', target, '--from', from, '-o', 'json', ...flags])
  for (const flags of [[], ['--dry-run'], ['--force', '--release']]) {
    const { code, stdout } = await replace(...flags)
    t.equal(code, 1, flags.join(' '))
    const { error } = JSON.parse(stdout) as { error: unknown }
    t.match(error, { reason: 'TargetForeign', published: false, message: /\(theirs\).*--replace-foreign/ })
    t.strictSame(readdirSync(target), ['a', 'theirs'])
    t.equal(readFileSync(join(target, 'a'), 'utf8'), 'old')
  }
  t.match(await replace('--replace-foreign', '--dry-run'), { code: 0 })
  t.strictSame(readdirSync(target), ['a', 'theirs'])
  t.match(await replace('--replace-foreign'), { code: 0, stdout: /"replaced"/ })
  t.strictSame(readdirSync(target), ['a'])
  rmSync(join(from, 'a'))
  writeFileSync(join(from, 'b'), 'new')
  t.match(await replace(), { code: 0 }, 'now holdfast has published it')
  t.strictSame(readdirSync(target), ['b'])
})

await t.test('a fault ends replace with exit 1, a line on standard error, and with -o json a document', async (t) => {
  const root = scratch(t)
  const file = join(root, 'file')
  writeFileSync(file, 'in the way')
  const from = join(root, 'from')
  mkdirSync(from)
  writeFileSync(join(from, 'a'), canary)
  const target = join(file, 'target')
  const text = await holdfast(['replace', target, '--from', from])
  t.match(text, { code: 1, stdout: '' })
  t.match(JSON.parse(text.stderr), {
    level: 'error',
    code: 'ENOTDIR',
    published: false,
    msg: new RegExp(file),
  })
  const json = await holdfast(['replace', target, '--from', from, '-o', 'json'])
  t.match(JSON.parse(json.stdout), { error: { code: 'ENOTDIR', published: false, reason: 'TargetUnfit' } })
  t.notMatch(text.stderr + json.stdout + json.stderr, canary)
  t.equal(readFileSync(file, 'utf8'), 'in the way')
})

await t.test('another holder of the lock makes replace exit with 75, or wait', async (t) => {
  const root = scratch(t)
  const file = join(root, 'file')
  t.equal((await holdfast(['write', file], { input: '1' })).code, 0)
  const lock = readdirSync(root).find((name) => name.endsWith('.lock'))
  if (lock === undefined) throw new Error('no lock')
  const holder = spawn('flock', [join(root, lock), 'sh', '-c', 'echo held; read line'], { stdio: 'pipe' })
  const gone = once(holder, 'close')
  t.teardown(() => holder.kill())
  await once(holder.stdout, 'data')
  const busy = await holdfast(['write', file], { input: '2' })
  t.equal(busy.code, 75)
  t.match(JSON.parse(busy.stderr), { reason: 'Busy', code: 'EAGAIN', syscall: 'flock' })
  const waiting = holdfast(['write', file, '--lock-timeout', '30s'], { input: '3' })
  await until('it waits for the lock', () => openBelow(join(root, lock)).length > 0)
  t.equal(readFileSync(file, 'utf8'), '1')
  holder.stdin.end('\n')
  await gone
  t.equal((await waiting).code, 0)
  t.equal(readFileSync(file, 'utf8'), '3')
})

await t.test('replace keeps the execute bits of --from, unless --file-mode says otherwise', async (t) => {
  const root = scratch(t)
  const [from, target] = [join(root, 'from'), join(root, 'target')]
  mkdirSync(join(from, 'bin'), { recursive: true })
  for (const [name, mode] of [
    ['bin/tool', 0o755],
    ['data', 0o644],
    ['owned', 0o500],
  ] as const) {
    writeFileSync(join(from, name), name)
    chmodSync(join(from, name), mode)
  }
  const modes = () => ['bin/tool', 'data', 'owned'].map((name) => statSync(join(target, name)).mode & 0o7777)
  t.equal((await holdfast(['replace', target, '--from', from])).code, 0)
  t.strictSame(modes(), [0o700, 0o600, 0o700])
  t.equal((await holdfast(['replace', target, '--from', from, '--file-mode', '0640'])).code, 0)
  t.strictSame(modes(), [0o640, 0o640, 0o640])
})

await t.test('replace from a directory of holdfast takes its modes, owner and form', async (t) => {
  const root = scratch(t)
  const [content, old] = [join(root, 'content'), join(root, 'old')]
  mkdirSync(join(content, 'sub'), { recursive: true })
  for (const name of ['a', 'sub/b']) writeFileSync(join(content, name), name)
  const isRoot = process.geteuid?.() === 0
  const owner = isRoot ? { uid: 7, gid: 8 } : { uid: process.geteuid?.(), gid: process.getegid?.() }
  const look = (target: string) =>
    ['', 'a', 'sub', 'sub/b'].map((name) => {
      const { mode, uid, gid } = statSync(join(target, name))
      return { mode: (mode & 0o7777).toString(8), uid, gid }
    })
  const all = (directory: string, file: string) =>
    [directory, file, directory, file].map((mode) => ({ mode, ...owner }))
  const args = ['--mode', '0750', '--file-mode', '0640', ...(isRoot ? ['--owner', '7:8'] : [])]
  t.match(await holdfast(['replace', old, '--from', content, ...args]), { code: 0 })
  const moved = join(root, 'moved')
  t.match(await holdfast(['replace', moved, '--from', old, '--log-level', 'error']), { code: 0, stderr: '' })
  t.strictSame(look(moved), all('750', '640'))
  t.match(await holdfast(['replace', moved, '--from', old]), { code: 0, stdout: /^unchanged / })
  t.match(await holdfast(['replace', moved, '--from', old, '--mode', '0700', '--file-mode', '0600']), { code: 0 })
  t.strictSame(look(moved), all('700', '600'), 'unless flags say otherwise')

  const linked = join(root, 'linked')
  const files = { a: { content: 'a', mode: 0o440 }, 'sub/b': { content: 'b', mode: 0o440 } }
  await replaceDirectory(linked, {
    files,
    mode: 0o711,
    publish: 'symlink',
    ...(isRoot && { owner: { uid: 7, gid: 8 } }),
  })
  t.match(await holdfast(['replace', join(root, 'next'), '--from', linked, '--log-level', 'error']), {
    code: 0,
    stderr: '',
  })
  t.equal(readlinkSync(join(root, 'next/a')), '..data/a')
  t.strictSame(look(join(root, 'next')), all('711', '440'))
  t.match(await holdfast(['replace', join(root, 'next'), '--from', linked]), { code: 0, stdout: /^unchanged / })
  t.match(await holdfast(['replace', moved, '--from', linked]), { code: 0 }, 'a target that is there keeps its form')
  t.ok(lstatSync(join(moved, 'a')).isFile())

  const user = spawn('sleep', ['600'], { cwd: old, stdio: 'ignore' })
  t.teardown(() => user.kill('SIGKILL'))
  const remove = ['remove', old, '--force', '--state-directory', join(root, 'none')]
  t.match(await holdfast(remove), { code: 1, stderr: new RegExp(`process ${user.pid} \\(sleep\\)`) })
  user.kill('SIGKILL')
  await once(user, 'exit')
  t.match(await holdfast(remove), { code: 0, stdout: `removed ${old}\n` })
})

await t.test('replace warns in one line of each changed mode and owner', async (t) => {
  const root = scratch(t)
  const file = join(root, 'file')
  writeFileSync(file, 'old')
  chmodSync(file, 0o640)
  const warnings = ({ stderr }: { stderr: string }) =>
    stderr
      .split('\n')
      .filter((line) => line.includes('--keep-attributes'))
      .map((line) => (JSON.parse(line) as { msg: string }).msg)
  const changed = await holdfast(['write', file], { input: 'new' })
  t.equal(changed.code, 0, changed.stderr)
  t.strictSame(warnings(changed), [`${file}: mode changed from 0640 to 0600 (--keep-attributes keeps mode and owner)`])
  t.strictSame(warnings(await holdfast(['write', file], { input: 'newer' })), [], 'nothing changed')
  t.strictSame(warnings(await holdfast(['write', join(root, 'absent')], { input: 'x' })), [], 'nothing was there')
  t.strictSame(warnings(await holdfast(['write', file, '--mode', '0600'], { input: 'x' })), [], 'no change')
  const asked = await holdfast(['write', file, '--mode', '0644'], { input: 'x' })
  t.strictSame(warnings(asked), [], 'it was asked for')
  if (process.geteuid?.() === 0) {
    chownSync(file, 12, 34)
    t.strictSame(warnings(await holdfast(['write', file, '--mode', '0644'], { input: 'y' })), [
      `${file}: owner changed from 12:34 to 0:${process.getegid?.() ?? 0} (--keep-attributes keeps mode and owner)`,
    ])
  }

  const [from, target] = [join(root, 'from'), join(root, 'target')]
  for (const directory of [from, target]) mkdirSync(directory)
  for (const name of ['a', 'b', 'c']) writeFileSync(join(from, name), name)
  for (const name of ['a', 'b', 'gone']) writeFileSync(join(target, name), 'old', { mode: 0o644 })
  chmodSync(target, 0o750)
  const replaced = await holdfast(['replace', target, '--from', from, '--replace-foreign'])
  t.equal(replaced.code, 0, replaced.stderr)
  t.strictSame(warnings(replaced), [
    `${target}: mode changed from 0750 to 0755; 2 paths in it changed, the first is a: mode changed from 0644 to 0600 (--keep-attributes keeps mode and owner)`,
  ])
  t.strictSame(warnings(await holdfast(['replace', target, '--from', from])), [])
})

await t.test('--keep-attributes keeps the modes of the present target, and takes no others', async (t) => {
  const root = scratch(t)
  const [file, from, target] = [join(root, 'file'), join(root, 'from'), join(root, 'target')]
  for (const directory of [from, target]) mkdirSync(directory)
  for (const path of [file, join(target, 'a')]) writeFileSync(path, 'old', { mode: 0o640 })
  writeFileSync(join(from, 'a'), 'new')
  const write = (...flags: string[]) => holdfast(['write', file, '--keep-attributes', ...flags], { input: 'new' })
  const replace = (...flags: string[]) => holdfast(['replace', target, '--from', from, '--keep-attributes', ...flags])
  for (const done of [await write(), await replace()]) t.match(done, { code: 0, stdout: /^replaced / }, done.stderr)
  for (const path of [file, join(target, 'a')])
    t.strictSame([readFileSync(path, 'utf8'), statSync(path).mode & 0o7777], ['new', 0o640])
  for (const refused of [
    await write('--mode', '0644'),
    await write('--owner', '0:0'),
    await replace('--file-mode', '0600'),
  ])
    t.match(refused, { code: 2, stderr: /'--keep-attributes' cannot be used with option/ })
})
