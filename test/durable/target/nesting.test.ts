/** No target lies in another: each call, on the outer or on the inner one, is refused, and both stay unchanged. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { OverlappingTargets } from '../../../src/durable/errors.js'
import { setHold, letGo } from '../../../src/durable/operator/hold.js'
import {
  adoption,
  readRecord,
  removePublished,
  replaceDirectories,
  replaceDirectory,
  replaceFile,
  history,
} from '../../../src/durable/index.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { messageOf } from '../../../src/errors.js'
import { failure, intercepted } from '../intercepted.js'
import { contents, scratch, scratchWith } from '../scratch.js'

const needsRoot = { skip: process.geteuid?.() === 0 ? false : 'needs root (chown)' }
const real = new NodeFileSystem()
const files = { a: '1' }
const hold = { reason: '', since: 0, until: null }

/** What a call is refused with; undefined where it is not. */
const refusal = (call: Promise<unknown>): Promise<string | undefined> =>
  call.then(
    () => undefined,
    (error: unknown) => messageOf(error),
  )

/** All entries of a directory, with their content. */
const all = (directory: string): unknown => [readdirSync(directory, { recursive: true }).sort(), contents(directory)]

/** Each call on a target. */
const calls: Readonly<Record<string, (target: string) => Promise<unknown>>> = {
  replaceDirectory: (target) => replaceDirectory(target, { files: { a: '2' } }),
  'the same content': (target) => replaceDirectory(target, { files }),
  batch: async (target) => {
    const [outcome] = await replaceDirectories([{ target, files: { a: '2' } }])
    if (outcome && 'error' in outcome) throw outcome.error
  },
  hold: (target) => setHold(real, target, hold, {}),
  remove: (target) => removePublished(target),
  'remove --force': (target) => removePublished(target, { force: true }),
  rollback: (target) => history.rollBack(target, { to: 1, pin: { reason: '', until: 'released' } }),
}

/** Two targets, one in the other, as 0.2.0 let them be published: the outer one's record is put away meanwhile. */
async function nested(parent: string, held?: typeof hold) {
  const [outer, inner] = [join(parent, 'outer'), join(parent, 'outer/sub/inner')]
  const history = { keep: 2, maxAge: null }
  await replaceDirectory(outer, { files: { 'sub/x': '0' }, history })
  await replaceDirectory(outer, { files: { ...files, 'sub/x': '1' }, history })
  await setHold(real, outer, held, {})
  const record = join(
    parent,
    readdirSync(parent).find((name) => namesFor('outer').sequenceOf(name) !== undefined) ?? '',
  )
  const text = readFileSync(record)
  rmSync(record)
  await replaceDirectory(inner, { files: { a: '0' }, history })
  await replaceDirectory(inner, { files, history })
  await setHold(real, inner, hold, {})
  writeFileSync(record, text, { mode: 0o600 })
  return { outer, inner, record }
}

for (const [name, call] of Object.entries(calls)) {
  await t.test(`${name} refuses a target that holds another, and a target that lies in another`, async (t) => {
    const parent = scratch(t)
    const { outer, inner, record } = await nested(parent)
    const before = all(parent)
    const above = (await refusal(call(outer))) ?? 'it is done'
    t.match(above, inner)
    t.match(above, /remove its record/)
    const below = (await refusal(call(inner))) ?? 'it is done'
    t.match(below, ` lies in ${outer}, which holdfast publishes as a whole; nothing was changed`)
    t.match(below, record)
    t.same(all(parent), before, 'nothing is touched')
    t.match((await readRecord(inner))?.hold, hold)
  })
}

await t.test('a removal names the target below before the hold', async (t) => {
  const { outer, inner } = await nested(scratch(t), hold)
  t.match(await refusal(removePublished(outer)), inner)
})

await t.test('no call publishes in a target, held or not, by any path', async (t) => {
  const [parent, outer] = scratchWith(t, 'outer')
  await replaceDirectory(outer, { files: { ...files, 'sub/x': '1' } })
  symlinkSync('outer/sub', join(parent, 'link'))
  const before = all(parent)
  const refuse = async (path: string, call: (path: string) => Promise<unknown>): Promise<void> => {
    t.match((await refusal(call(path))) ?? 'it is done', ` lies in ${outer}, which holdfast`)
  }
  const inside = ['inner', 'sub/inner', 'new/deep/inner'].map((path) => join(outer, path))
  for (const path of [...inside, `${parent}/./outer//sub/../inner`, join(parent, 'link/inner')]) {
    await refuse(path, (target) => replaceDirectory(target, { files }))
    await refuse(path, (target) => replaceFile(target, 'x'))
    await refuse(path, (target) => adoption.examine({ target, files }, { replace: false }))
  }
  t.same(all(parent), before, 'not even the directories above it are made')
  await setHold(real, outer, hold, {})
  await refuse(join(outer, 'inner'), (target) => replaceFile(target, 'x'))
  const both = [outer, join(outer, 'inner')].map((target) => ({ target, files }))
  t.ok((await replaceDirectories(both).catch((error: unknown) => error)) instanceof OverlappingTargets)
})

await t.test('a file that is a target keeps the directory around it', async (t) => {
  const [parent, file] = scratchWith(t, 'd/pod.yaml')
  await replaceFile(file, 'x', { parents: true })
  const before = all(parent)
  t.match(await refusal(replaceDirectory(join(parent, 'd'), { files })), `${file}, which holdfast publishes by itself`)
  t.match(await refusal(replaceDirectory(parent, { files })), file)
  rmSync(join(parent, namesFor('d').lock))
  t.same(all(parent), before, 'beside the lock, which every publication makes')
  t.match((await adoption.examine({ target: join(parent, 'd'), files }, { replace: true })).checks, [
    { verdict: 'passed' },
    { verdict: 'refused', message: new RegExp(`^${file}, which holdfast publishes`) },
  ])
})

await t.test('in the symbolic-link form, too', async (t) => {
  const [parent, other] = scratchWith(t, 'outer')
  await replaceDirectory(other, { files, publish: 'symlink' })
  t.match(await refusal(replaceFile(join(other, 'x'), 'x')), ` lies in ${other}`)
  t.match(await refusal(replaceFile(join(other, '..data/x'), 'x')), ` lies in ${other}`)
  // As 0.2.0 let it be published.
  const record = join(
    parent,
    readdirSync(parent).find((name) => namesFor('outer').sequenceOf(name) !== undefined) ?? '',
  )
  const text = readFileSync(record)
  rmSync(record)
  await replaceFile(join(other, '..data/x'), 'x')
  writeFileSync(record, text, { mode: 0o600 })
  const again = replaceDirectory(other, { files: { a: '2' }, publish: 'symlink' })
  t.match(await refusal(again), `${join(other, 'x')}, which holdfast publishes by itself`)
  t.match(readFileSync(join(other, '..data/x'), 'utf8'), 'x')
})

await t.test('the leftovers of a target do not keep others out for ever', async (t) => {
  const [parent, outer] = scratchWith(t, 'outer')
  await replaceDirectory(outer, { files })
  await removePublished(outer, { force: true })
  t.match(await replaceDirectory(join(outer, 'inner'), { files }), { outcome: 'created' }, 'its lock alone')
  // Names that only look like a record; and a record that came with a copy of its directory.
  const copied = join(parent, 'copied')
  cpSync(outer, copied, { recursive: true })
  mkdirSync(join(parent, 'strange'))
  writeFileSync(join(parent, 'strange', namesFor('x').record(7)), 'not one')
  for (const name of ['copied', 'strange']) {
    t.match(await replaceDirectory(join(parent, name), { files }), { outcome: 'replaced' }, name)
  }
  // As the error says.
  const { outer: held, inner, record } = await nested(join(scratch(t)))
  rmSync(record)
  t.match(await replaceDirectory(inner, { files, held: 'release' }), { outcome: /unchanged|replaced/ })
  const message = (await refusal(replaceDirectory(held, { files }))) ?? ''
  rmSync(/remove its record (\S+)$/.exec(message)?.[1] ?? '')
  t.match(await replaceDirectory(held, { files }), { outcome: 'replaced' })
})

await t.test('a target that was let go is another program’s, whether it is the outer or the inner one', async (t) => {
  const parent = scratch(t)
  const [outer, inner] = [join(parent, 'outer'), join(parent, 'outer/inner')]
  const agent = 'a'.repeat(32)
  const publish = (target: string) =>
    replaceDirectory(target, { files, publisher: 'agent', agent, foreign: 'same-names' })
  const release = async (target: string) => t.equal(await letGo(real, target, { agent }), true, `${target} is let go`)
  await publish(outer)
  t.match(await refusal(publish(inner)), /lies in/)
  await release(outer)
  await publish(inner)
  t.match(await refusal(publish(outer)), /which holdfast publishes by itself/)
  await setHold(real, inner, hold, {})
  await release(inner)
  t.match(await refusal(publish(outer)), /which holdfast publishes by itself/, 'its hold would go with it')
  await setHold(real, inner, undefined, {})
  t.match(await refusal(publish(outer)), /left the configuration at .* has changed since/)
  t.same(contents(inner), { a: '1' }, 'an adoption of the outer one decides what becomes of it')
})

await t.test('a record that cannot be trusted, or looked at, is no absent target', async (t) => {
  const { outer, inner } = await nested(scratch(t))
  const { fs } = intercepted((call, [path]) => {
    if (call === 'lookPath' && String(path).endsWith('.lock')) throw failure('EACCES', 'lstat')
  })
  t.match(await replaceDirectory(inner, { files }, fs).catch((error: unknown) => error), { code: 'EACCES' })
  const holder = dirname(inner)
  const record = join(
    holder,
    readdirSync(holder).find((name) => namesFor('inner').sequenceOf(name) !== undefined) ?? '',
  )
  chmodSync(record, 0o606)
  const before = all(holder)
  const refused = { reason: 'TargetUnfit', path: record }
  t.match(await replaceDirectory(outer, { files: { a: '2' } }).catch((error: unknown) => error), refused)
  t.same(all(holder), before)
})

await t.test("a service's own files in a target of its own stop no publication", needsRoot, async (t) => {
  const [, target] = scratchWith(t, 'certs')
  const nobody = 65_534
  const options = { files, owner: { uid: nobody, gid: nobody } }
  await replaceDirectory(target, options)
  const record = join(target, namesFor('x').record(7))
  for (const mode of [0o755, 0o1777]) {
    writeFileSync(record, 'theirs')
    chownSync(record, nobody, nobody)
    chmodSync(target, mode)
    t.match(await replaceDirectory(target, options), { outcome: 'replaced' })
  }
})

await t.test('it costs one look for each directory above, and no flush', async (t) => {
  const parent = join(scratch(t), 'a/b/c')
  mkdirSync(parent, { recursive: true })
  let looks = 0
  let syncs = 0
  const { fs } = intercepted((call, [path]) => {
    if (call === 'lookPath' && String(path).endsWith('.lock')) looks += 1
    if (call === 'sync') syncs += 1
  })
  const targets = ['one', 'two', 'three'].map((name) => ({ target: join(parent, name), files }))
  await replaceDirectories(targets, {}, fs)
  t.equal(looks, parent.split('/').length - 1, 'once for a parent, however many targets it has')
  t.equal(syncs, 2, 'the two barriers')
})

const missing = process.geteuid?.() === 0 && spawnSync('mkfs.btrfs', ['--version']).status === 0 ? '' : 'root, btrfs'

/** A directory of a new btrfs. */
function btrfs(t: Test): string {
  const root = scratch(t)
  const [image, at] = [join(root, 'image'), join(root, 'at')]
  writeFileSync(image, '')
  truncateSync(image, 256 * 1024 * 1024)
  execFileSync('mkfs.btrfs', ['-q', image])
  mkdirSync(at)
  execFileSync('mount', ['-o', 'loop', image, at])
  t.teardown(() => execFileSync('umount', [at]))
  return at
}

function makeSubvolume(path: string): void {
  execFileSync('btrfs', ['-q', 'subvolume', 'create', path])
  appendFileSync(join(path, 'theirs'), 'data')
}

await t.test(
  'a publication leaves a btrfs subvolume in its target alone',
  { skip: missing && `needs ${missing}` },
  async (t) => {
    const target = join(btrfs(t), 'certs')
    await replaceDirectory(target, { files })
    makeSubvolume(join(target, 'inner'))
    const before = all(target)
    for (const name of Object.keys(calls).filter((name) => name !== 'rollback')) {
      t.match((await refusal(calls[name]?.(target) ?? Promise.resolve())) ?? `${name} is done`, /is not on its device/)
    }
    t.same(all(target), before)
  },
)

const skip = missing && `needs ${missing}`
await t.test(
  'a subvolume that comes after the read of the target goes out with it, and keeps its content',
  { skip },
  async (t) => {
    const at = btrfs(t)
    const target = join(at, 'certs')
    await replaceDirectory(target, { files: { ...files, 'sub/x': '1' } })
    let isMade = false
    const { fs } = intercepted((call) => {
      if (call !== 'rename' || isMade) return
      isMade = true
      makeSubvolume(join(target, 'sub/inner'))
    })
    await replaceDirectory(target, { files: { a: '2' } }, fs)
    t.same(contents(target), { a: '2' })
    const left = readdirSync(at, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('inner/theirs'))
    t.matchOnly(left, [/^\.holdfast-.*sub\/inner\/theirs$/])
  },
)
