import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { replaceDirectory, replaceFile } from '../../../src/durable/index.js'
import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { intercepted } from '../intercepted.js'
import { contents, kept, scratch, scratchWith } from '../scratch.js'

const files = { 'tls.crt': 'certificate', 'tls.key': 'key' }

/** Real paths of the directories that a publication syncs before anything becomes visible. */
async function syncedFirst(target: string, content: Record<string, string>): Promise<Set<string>> {
  const opened = new Map<number, string>()
  const synced = new Set<string>()
  let visible = false
  const { fs } = intercepted((call, args) => {
    if (call === 'rename') visible = true
    if (call !== 'sync' || visible) return
    for (const descriptor of args[0] as number[]) {
      opened.set(
        descriptor,
        execFileSync('readlink', [`/proc/${process.pid}/fd/${descriptor}`], { encoding: 'utf8' }).trim(),
      )
      synced.add(opened.get(descriptor) ?? '')
    }
  })
  await publish([directoryPublication(fs, { target, files: content })])
  return synced
}

await t.test('a publication syncs every ancestor, in spite of the record beside the target', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'a', 'p'), { recursive: true })
  await replaceDirectory(join(root, 'a', 'p', 't'), { files })
  // The record travels with the moved parent, and the rename itself is on no disk yet.
  renameSync(join(root, 'a'), join(root, 'b'))
  const synced = await syncedFirst(join(root, 'b', 'p', 't'), { 'tls.crt': 'newer' })
  for (const ancestor of [join(root, 'b', 'p'), join(root, 'b'), root]) t.ok(synced.has(ancestor), ancestor)
})

await t.test(
  'a publication syncs the directories that hold links on the way to it, and those above them',
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'real', 'p'), { recursive: true })
    mkdirSync(join(root, 'links', 'in'), { recursive: true })
    symlinkSync('../../real', join(root, 'links', 'in', 'here'))
    const synced = await syncedFirst(join(root, 'links', 'in', 'here', 'p', 't'), files)
    for (const directory of ['real/p', 'real', 'links/in', 'links', '.'])
      t.ok(synced.has(join(root, directory)), directory)
  },
)

await t.test(
  'unchanged content in a directory that was moved: the ancestors are synced, then it is unchanged',
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'a', 'p'), { recursive: true })
    await replaceDirectory(join(root, 'a', 'p', 't'), { files })
    renameSync(join(root, 'a'), join(root, 'b'))
    const target = join(root, 'b', 'p', 't')
    const { ino } = statSync(join(target, 'tls.crt'))
    const synced = await syncedFirst(target, files)
    for (const ancestor of [join(root, 'b', 'p'), join(root, 'b'), root]) t.ok(synced.has(ancestor), ancestor)
    t.equal(statSync(join(target, 'tls.crt')).ino, ino, 'the content was not written again')
    t.same([...(await syncedFirst(target, files))], [], 'the new place is recorded: nothing is synced a second time')
  },
)

await t.test(
  'a record that was copied with its directory proves nothing: the copy is published from fresh inodes',
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'original'))
    await replaceDirectory(join(root, 'original', 'certs'), { files })
    for (const copy of [
      ['cp', '-a'],
      ['rsync', '-a'],
    ]) {
      const [program = '', ...flags] = copy
      const parent = join(root, program)
      if (program === 'rsync' && !hasProgram('rsync')) continue
      execFileSync(program, [...flags, `${join(root, 'original')}/`, parent])
      const target = join(parent, 'certs')
      const { ino } = statSync(join(target, 'tls.crt'))
      const result = await replaceDirectory(target, { files })
      t.equal(result.outcome, 'replaced', program)
      t.not(statSync(join(target, 'tls.crt')).ino, ino, 'fresh inodes')
      t.equal((await replaceDirectory(target, { files })).outcome, 'unchanged', 'and now it is known to be durable')
    }
  },
)

await t.test('a file that was copied with its record is published again, too', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'original'))
  await replaceFile(join(root, 'original', 'pod.yaml'), 'content')
  execFileSync('cp', ['-a', join(root, 'original'), join(root, 'copy')])
  t.equal((await replaceFile(join(root, 'copy', 'pod.yaml'), 'content')).outcome, 'replaced')
  t.equal((await replaceFile(join(root, 'copy', 'pod.yaml'), 'content')).outcome, 'unchanged')
})

await t.test('a target that another program replaced by a copy of itself is published again', async (t) => {
  const root = scratch(t)
  const target = join(root, 'certs')
  await replaceDirectory(target, { files })
  execFileSync('cp', ['-a', target, `${target}.copy`])
  renameSync(target, `${target}.old`)
  renameSync(`${target}.copy`, target)
  t.equal((await replaceDirectory(target, { files })).outcome, 'replaced')
})

await t.test(
  'a parent that was renamed before the exchange: the call does not answer success for a path that is gone',
  async (t) => {
    for (const form of ['directory', 'file'] as const) {
      const [root, parent] = scratchWith(t, 'parent')
      const target = join(parent, 'target')
      mkdirSync(parent)
      const { fs } = intercepted((call) => {
        if (call === 'rename' && readdirSync(root).includes('parent')) renameSync(parent, join(root, 'moved'))
      })
      const publication =
        form === 'directory' ? directoryPublication(fs, { target, files }) : filePublication(fs, target, 'content', {})
      const [result] = await publish([publication])
      t.match(result, { error: { published: true, path: target } }, form)
      t.match(result, { error: { message: /moved|renamed/ } })
    }
  },
)

await t.test('a reboot alone is no reason to publish: recovery trusts the record of another boot', async (t) => {
  const [root, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files })
  const { fs } = intercepted(() => undefined)
  const rebooted = new Proxy(fs, {
    get: (real, property) =>
      property === 'bootId' ? () => Promise.resolve('another boot') : (Reflect.get(real, property) as unknown),
  })
  t.match(await publish([directoryPublication(rebooted, { target, files })]), [{ outcome: 'unchanged' }])
  t.same(contents(target), files)
  t.same(kept(root), ['lock', 'record'])
})

function hasProgram(name: string): boolean {
  try {
    execFileSync('which', [name], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
