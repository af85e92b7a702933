/** Only a look says what a rename has done: not its answer. */
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { isAt, isVisible, makeVisible } from '../../../src/durable/publish/visible-rename.js'
import { failure, intercepted } from '../intercepted.js'
import { scratch } from '../scratch.js'

/** A staged file and, unless there is none, an old one; `before` comes in front of each call. */
async function exchange(t: Test, mode: 'exchange' | 'noreplace', before: (call: string, at: string) => void) {
  const at = scratch(t)
  writeFileSync(join(at, 'staged'), 'new')
  if (mode === 'exchange') writeFileSync(join(at, 'target'), 'old')
  const { fs } = intercepted((call) => before(call, at))
  const directory = await fs.openPath(at)
  const [staged, old] = [await real.look(directory, 'staged'), await real.look(directory, 'target')]
  const seen: unknown[] = []
  const mount = await fs.mount(directory)
  const path = join(at, 'target')
  const answer = await makeVisible({
    fs,
    directory,
    from: 'staged',
    to: 'target',
    mode,
    old,
    path,
    mount,
    ...(staged && { staged }),
    blind: (error) => void seen.push(error),
  } as Parameters<typeof makeVisible>[0]).catch((error: unknown) => error)
  await fs.close(directory)
  return { at, answer, seen }
}

const { fs: real }: { fs: FileSystem } = intercepted(() => undefined)

await t.test('an exchange that took out the old one, and a rename into a free place', async (t) => {
  t.equal((await exchange(t, 'exchange', () => {})).answer, true)
  t.equal((await exchange(t, 'noreplace', () => {})).answer, false)
})

await t.test('an entry that is not visible afterwards was refused, or another program was quicker', async (t) => {
  const refused = await exchange(t, 'noreplace', (call) => {
    if (call === 'rename') throw failure('EIO', 'renameat2')
  })
  t.match(refused.answer, { code: 'EIO', syscall: 'renameat2' })
  t.same(refused.seen, [])
  let renamed = false
  const replaced = await exchange(t, 'exchange', (call, at) => {
    if (renamed && call === 'look') {
      mkdirSync(join(at, 'moved'), { recursive: true })
      for (const name of readdirSync(at)) if (name !== 'moved') renameSync(join(at, name), join(at, 'moved', name))
    }
    renamed ||= call === 'rename'
  })
  t.match(replaced.answer, {
    reason: 'TargetForeign',
    published: false,
    message: `another program replaced ${replaced.at}/target in the same instant; holdfast left its content alone`,
  })
})

await t.test('makeVisible reports content as possibly visible where a stat fails', async (t) => {
  let renamed = false
  const blind = await exchange(t, 'exchange', (call) => {
    if (renamed && call === 'look') throw failure('EIO', 'fstatat')
    renamed ||= call === 'rename'
  })
  t.equal(blind.answer, false, 'nobody knows that it took out the old one')
  t.match(blind.seen, [{ code: 'EIO' }])
  t.equal(
    await isVisible(
      () => Promise.resolve(false),
      () => t.fail('it can see'),
    ),
    false,
  )
})

await t.test('an inode number says nothing of another device', async (t) => {
  const at = scratch(t)
  writeFileSync(join(at, 'file'), '')
  const directory = await real.openPath(at)
  const attributes = await real.look(directory, 'file')
  if (!attributes) throw new Error('there is no file')
  t.equal(await isAt(real, directory, 'file', attributes), true)
  t.equal(await isAt(real, directory, 'file', { ...attributes, device: attributes.device + 1 }), false)
  t.equal(await isAt(real, directory, 'none', attributes), false)
  await real.close(directory)
})

await t.test('makeVisible believes the disk, and not the answer of the rename', async (t) => {
  const told = await exchange(t, 'noreplace', (call, at) => {
    if (call !== 'rename') return
    renameSync(join(at, 'staged'), join(at, 'target'))
    throw failure('EIO', 'renameat2')
  })
  t.equal(told.answer, false)
  t.same(readdirSync(told.at), ['target'])
})
