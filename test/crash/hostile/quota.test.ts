/*
 * Limits that end a write half-way: a quota, a limit of file sizes. The kernel takes a part of the bytes, and then no more: the program
 * names the remedy, and leaves nothing torn or behind. The quota is a real one, of a btrfs subvolume: that needs root, and mkfs.btrfs.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contents, kept, scratch, scratchWith } from '../../durable/scratch.js'
import { environment, executable } from '../syscalls/distribution.js'

const old = { 'tls.crt': 'old', 'tls.key': 'old' }

interface Said {
  readonly code: number | null
  readonly error: { readonly code?: string; readonly message?: string; readonly advice?: string }
}

/** The program under a limit of so many KiB for each file; answers its output. */
function holdfast(root: string, args: readonly string[], kibibytes: number | 'unlimited', input = ''): Said {
  const program = [process.execPath, executable(root), ...args, '-o', 'json']
  // In units of 512 bytes.
  const limit = typeof kibibytes === 'number' ? `${2 * kibibytes}` : kibibytes
  const command = ['-c', 'ulimit -f "$1"; shift; exec "$@"', 'sh', limit, ...program]
  const { status, stdout } = spawnSync('sh', command, { env: environment, input, encoding: 'utf8' })
  return { code: status, error: (JSON.parse(stdout) as { error?: Said['error'] }).error ?? {} }
}

/** Both forms to publish of the program fail half-way, and say so; the old content stays. */
function failsHalfWay(t: Test, at: string, kibibytes: number | 'unlimited', code: string, advice: RegExp): void {
  const target = join(at, 'certs')
  const file = join(at, 'pod.yaml')
  const [root, from] = scratchWith(t, 'from')
  const fill = (content: Record<string, string>): void => {
    execFileSync('rm', ['-rf', from])
    mkdirSync(from)
    for (const [name, text] of Object.entries(content)) writeFileSync(join(from, name), text)
  }
  const publish = (limit: number | 'unlimited', text: string): [string, Said][] => [
    ['directory', holdfast(root, ['replace', target, '--from', from], limit)],
    ['file', holdfast(root, ['write', file], limit, text)],
  ]
  const states = () => [contents(target), contents(at)['pod.yaml'], kept(at)]
  fill(old)
  for (const [form, { code: exit }] of publish('unlimited', 'old')) t.equal(exit, 0, form)
  const before = states()
  fill({ 'tls.crt': 'new', 'tls.key': 'x'.repeat(3_000_000) })
  for (const [form, said] of publish(kibibytes, 'x'.repeat(3_000_000))) {
    t.equal(said.code, 1, form)
    t.match(said.error, { code, published: false, message: advice }, form)
  }
  t.same(states(), before, 'all is as it was, and nothing is left')
  fill({ 'tls.crt': 'new' })
  for (const [form, { code: exit }] of publish(kibibytes, 'new')) t.equal(exit, 0, `${form}: what fits is published`)
  t.same(contents(target), { 'tls.crt': 'new' })
}

await t.test('a limit of file sizes', async (t) => {
  failsHalfWay(t, scratch(t), 1000, 'EFBIG', /ulimit -f/)
})

const missing = [
  ...(process.geteuid?.() === 0 ? [] : ['root']),
  ...['mkfs.btrfs', 'btrfs'].filter((program) => spawnSync(program, ['--version']).status !== 0),
]

await t.test('a quota', { skip: missing.length > 0 && `needs ${missing.join(', ')}` }, async (t) => {
  const directory = scratch(t)
  const [image, mounted] = [join(directory, 'image'), join(directory, 'mounted')]
  const at = join(mounted, 'limited')
  writeFileSync(image, '')
  truncateSync(image, 256 * 2 ** 20)
  mkdirSync(mounted)
  execFileSync('mkfs.btrfs', ['-q', image])
  execFileSync('mount', ['-o', 'loop', image, mounted])
  t.teardown(() => execFileSync('umount', [mounted]))
  execFileSync('btrfs', ['subvolume', 'create', at], { stdio: 'ignore' })
  execFileSync('btrfs', ['quota', 'enable', mounted])
  execFileSync('btrfs', ['qgroup', 'limit', '2M', at])
  failsHalfWay(t, at, 'unlimited', 'EDQUOT', /raise the quota/)
  t.equal(readdirSync(at).filter((name) => name.endsWith('.foreign')).length, 0)
})
