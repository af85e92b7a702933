/** Staged content at its target's own path: the view of one thread, and that of all others. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { showInPlace } from '../../../src/durable/posix/show-in-place.js'
import { codeOf } from '../../../src/errors.js'
import { scratch, scratchWith } from '../scratch.js'
import type { Order, Seen } from './in-own-namespace.js'

const skip = process.geteuid?.() === 0 ? false : 'a mount namespace needs root: run by CI'

async function shown(directory: string, target: string, ...paths: string[]): Promise<Seen> {
  const workerData: Order = { content: { directory, target, digest: 'sha256:0' }, paths }
  const worker = new Worker(new URL('in-own-namespace.js', import.meta.url), { workerData })
  const [seen] = (await once(worker, 'message')) as [Seen]
  await worker.terminate()
  return seen
}

/** What this process sees mounted below a directory. Other tests mount elsewhere at any time. */
function mountsBelow(root: string): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return lines.filter((line) => `${line.split(' ')[4] ?? ''}/`.startsWith(`${root}/`))
}

await t.test('showInPlace covers published content', { skip }, async (t) => {
  const root = scratch(t)
  // As systemd makes all mounts: a mount below shows in every namespace that shares it.
  execFileSync('mount', ['--bind', '--make-shared', root, root])
  t.teardown(() => execFileSync('umount', ['--lazy', root]))
  const [staged, target] = [join(root, '.staged'), join(root, 'web')]
  for (const [path, text] of [
    [staged, 'new'],
    [target, 'old'],
  ] as const) {
    mkdirSync(path)
    writeFileSync(join(path, 'conf'), text)
  }
  const before = mountsBelow(root)
  const seen = await shown(staged, target, join(target, 'conf'), root)
  t.match(seen, { shown: true, paths: { [join(target, 'conf')]: 'new', [root]: '700 .staged web' }, open: 0 })
  t.strictSame(
    seen.mounts.filter((mount) => mount.startsWith(root)),
    [`${root} private`, `${target} private`],
  )
  t.strictSame(
    seen.mounts.filter((mount) => mount.endsWith(' shared')),
    [],
    'nothing that is mounted there shows here',
  )
  t.strictSame(mountsBelow(root), before)
  t.equal(readFileSync(join(target, 'conf'), 'utf8'), 'old')
})

await t.test('under a name that its parent does not have yet, with all that is beside it', { skip }, async (t) => {
  const [root, parent] = scratchWith(t, 'etc')
  const [staged, target] = [join(parent, '.staged'), join(parent, 'web')]
  mkdirSync(staged, { recursive: true })
  mkdirSync(join(parent, 'beside'))
  writeFileSync(join(staged, 'conf'), 'new')
  writeFileSync(join(parent, 'beside/file'), 'beside')
  writeFileSync(join(parent, 'plain'), 'plain')
  symlinkSync('plain', join(parent, 'link'))
  symlinkSync('nowhere', join(parent, 'dangling'))
  const before = mountsBelow(root)
  const names = ['', 'web/conf', '.staged', 'beside', 'beside/file', 'plain', 'link', 'dangling']
  const seen = await shown(staged, target, ...names.map((name) => join(parent, name)))
  t.match(seen, { shown: true, open: 0 })
  t.strictSame(
    names.map((name) => seen.paths[join(parent, name)]),
    [
      '755 .staged beside dangling link plain web',
      'new',
      '755 conf',
      '755 file',
      'beside',
      'plain',
      '-> plain',
      '-> nowhere',
    ],
  )
  t.strictSame(
    seen.mounts.filter((mount) => mount.startsWith(root)).sort(),
    ['', '/.staged', '/beside', '/plain', '/web'].map((name) => `${parent}${name} private`),
  )
  t.strictSame(mountsBelow(root), before)
  t.strictSame(readdirSync(parent).sort(), ['.staged', 'beside', 'dangling', 'link', 'plain'])
})

await t.test('where it cannot be, all is as it was', { skip }, async (t) => {
  const [root, staged] = scratchWith(t, 'etc/.staged')
  mkdirSync(staged, { recursive: true })
  mkdirSync(join(root, 'file'))
  const target = join(root, 'etc/web')
  const none = (seen: Seen): string[] => seen.mounts.filter((mount) => mount.startsWith(root))
  // A file is no place for a directory: ENOTDIR, which is no missing name.
  writeFileSync(target, 'a file')
  const overFile = await shown(staged, target, target)
  t.match(overFile, { shown: false, paths: { [target]: 'a file' }, open: 0 })
  t.strictSame(none(overFile), [])
  // The staged content is gone: the parent is uncovered again.
  const other = join(root, 'etc/other')
  const gone = await shown(join(root, 'etc/gone'), other, join(root, 'etc'))
  t.match(gone, { shown: false, paths: { [join(root, 'etc')]: '755 .staged web' }, open: 0 })
  t.strictSame(none(gone), [])
  const noParent = await shown(staged, join(root, 'missing/web'), root)
  t.match(noParent, { shown: false, paths: { [root]: '700 etc file' }, open: 0 })
  t.strictSame(none(noParent), [])
  // A process that stands in the root already does not see a mount over it.
  t.match(await shown(staged, '/holdfast-no-such-name', root), { shown: false, paths: { [root]: '700 etc file' } })
  t.notOk(existsSync('/holdfast-no-such-name'))
})

await t.test('beside a thousand entries, and not beside more', { skip }, async (t) => {
  const root = scratch(t)
  const parent = join(root, 'etc')
  mkdirSync(join(parent, '.staged'), { recursive: true })
  // New links cost less than a mount each.
  for (let index = 1; index < 1000; index++) symlinkSync('nowhere', join(parent, `${index}`))
  const target = join(parent, 'web')
  t.match(await shown(join(parent, '.staged'), target), { shown: true, open: 0 })
  symlinkSync('nowhere', join(parent, 'one more'))
  const more = await shown(join(parent, '.staged'), target)
  t.match(more, { shown: false, open: 0 })
  t.notOk(existsSync(target))
})

await t.test('what stands beside it is shown as a whole, or nothing is', { skip }, async (t) => {
  const [root, parent] = scratchWith(t, 'etc')
  mkdirSync(join(parent, '.staged'), { recursive: true })
  // A page for each, and more of them than the copy of the parent has.
  for (let index = 0; index < 300; index++) symlinkSync('x'.repeat(200), join(parent, `${index}`))
  const seen = await shown(join(parent, '.staged'), join(parent, 'web'), parent)
  t.match(seen, { shown: false, open: 0 })
  t.strictSame(
    seen.mounts.filter((mount) => mount.startsWith(root)),
    [],
  )
})

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined
  } catch (error) {
    return codeOf(error)
  }
}

// The program of a kernel thread: a listed name with nothing behind it, as of an entry that another process removes in that moment.
const goes = '/proc/2/exe'
const hasThread = existsSync('/proc/2/comm') && linkAt(goes) === 'ENOENT'
const without = skip || (!hasThread && 'needs a kernel thread')

await t.test('what goes while it is shown again is passed over', { skip: without }, async (t) => {
  const staged = join(scratch(t), 'staged')
  mkdirSync(staged)
  writeFileSync(join(staged, 'conf'), 'new')
  const seen = await shown(staged, '/proc/2/web', '/proc/2/web/conf', '/proc/2/comm', goes)
  t.match(seen, { shown: true, paths: { '/proc/2/web/conf': 'new', '/proc/2/comm': 'kthreadd\n', [goes]: 'ENOENT' } })
  t.equal(linkAt('/proc/2/web'), 'ENOENT', 'nobody else sees it')
})

await t.test(
  'showInPlace without CAP_SYS_ADMIN shows nothing; it takes a defect for no refusal',
  { skip },
  async (t) => {
    const root = scratch(t)
    process.seteuid?.(65534)
    try {
      t.equal(showInPlace({ directory: root, target: join(root, 'web'), digest: 'sha256:0' }), false)
    } finally {
      process.seteuid?.(0)
    }
    const mistaken = await shown(7 as unknown as string, join(root, 'web'))
    t.equal(typeof mistaken.thrown, 'string', 'it is thrown')
  },
)
