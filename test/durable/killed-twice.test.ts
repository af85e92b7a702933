/*
 * Killed twice: the first process after its exchange, which may not be durable; the second before its exchange, so that its record alone
 * seems to vouch for the target. A power cut may still undo the first exchange and bring the old content back, so that must stay whole
 * until a later publication is committed.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { intercepted, Killed } from './intercepted.js'
import { contents, kept, scratchWith } from './scratch.js'

const old = { a: 'old', b: 'old' }
const second = { a: 'second' }
const third = { a: 'third', c: 'third' }

await t.test('nothing is removed before both barriers of a third one', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const killed = async (files: Record<string, string>, when: 'before' | 'after'): Promise<void> => {
    let dead = false
    const { fs } = intercepted((call) => {
      if (dead) throw new Killed()
      if (call !== 'rename') return
      dead = true
      if (when === 'before') throw new Killed()
    })
    await publish([directoryPublication(fs, { target, files })]).catch(() => undefined)
  }
  await publish([directoryPublication(new NodeFileSystem(), { target, files: old })])
  await killed(second, 'after')
  await killed(third, 'before')
  t.same(contents(target), second, 'the first exchange is visible, the second never came')
  t.same(kept(parent), ['lock', 'record', 'record', 'record', 'staging', 'staging'])
  const staged = (): string[] => readdirSync(parent).filter((name) => /-[0-9a-f]{16}$/.test(name))
  t.same(
    staged()
      .map((name) => contents(join(parent, name)).a)
      .sort(),
    ['old', 'third'],
  )

  let barriers = 0
  const removals: number[] = []
  const { fs } = intercepted((call) => {
    if (call === 'sync') barriers += 1
    if (call.startsWith('remove')) removals.push(barriers)
  })
  t.match(await publish([directoryPublication(fs, { target, files: third })]), [{ outcome: 'replaced' }])
  t.ok(removals.length > 8, `${removals.length} removals`)
  t.ok(
    removals.every((after) => after >= 2),
    `each after both barriers: ${removals.join()}`,
  )
  t.same(contents(target), third)
  t.same(kept(parent), ['lock', 'record'])
})
