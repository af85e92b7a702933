import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { holdfast, scratch } from './holdfast.js'

const canary = 'CANARY-4f1d'

await t.test('replace publishes a tree, tells what it did, and does nothing twice', async (t) => {
  const root = scratch(t)
  const from = join(root, 'from')
  const target = join(root, 'deep', 'target')
  mkdirSync(join(from, 'sub'), { recursive: true })
  writeFileSync(join(from, 'a'), canary)
  writeFileSync(join(from, 'sub', 'b'), Buffer.of(0, 255, 254))
  writeFileSync(join(from, '__proto__'), 'a name like another')
  const args = ['replace', target, '--from', from, '--mode', '0750', '--file-mode', '0640', '--log-level', 'error']
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

await t.test('replace from a volume as kubelet mounts it: what its readers see', async (t) => {
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
  t.match(refused, { code: 2, stderr: /is a symbolic link: only files can be published/ })
})

await t.test('write publishes standard input, bytes as they are', async (t) => {
  const root = scratch(t)
  const file = join(root, 'file')
  const first = await holdfast(['write', file, '--mode', '0644'], { input: Buffer.of(0, 1, 255) })
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, new RegExp(`^created ${file} sha256:`))
  t.strictSame([...readFileSync(file)], [0, 1, 255])
  t.equal(statSync(file).mode & 0o7777, 0o644)
  const second = await holdfast(['write', file, '--mode', '0644', '-o', 'json'], { input: 'other' })
  t.match(JSON.parse(second.stdout), { outcome: 'replaced', path: file })
  t.match((await holdfast(['write', file, '--mode', '0644'], { input: 'other' })).stdout, /^unchanged /)
  t.equal((await holdfast(['write', join(root, 'empty'), '--allow-empty'], { input: '' })).code, 0)
  t.equal(readFileSync(join(root, 'empty'), 'utf8'), '')
})

await t.test('a fault is exit 1, a line on standard error, and with -o json a document', async (t) => {
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

await t.test('another holder of the lock: exit 75, or a wait', async (t) => {
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
  await new Promise((resolve) => setTimeout(resolve, 300))
  t.equal(readFileSync(file, 'utf8'), '1')
  holder.stdin.end('\n')
  await gone
  t.equal((await waiting).code, 0)
  t.equal(readFileSync(file, 'utf8'), '3')
})
