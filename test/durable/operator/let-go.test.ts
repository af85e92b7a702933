/** An agent that keeps a target no more says so; nesting.test.ts and symlink-form.test.ts have what comes of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { letGo } from '../../../src/durable/operator/hold.js'
import { readPublication, replaceDirectory, setHold } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { isKind } from '../../crash/judge/names.js'
import { scratchWith } from '../scratch.js'

const fs = new NodeFileSystem()
const files = { a: '1' }
const byOne = { publisher: 'agent', agent: 'one' } as const

async function published(t: Test, options: PublicationOptions) {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files, ...options })
  const records = () =>
    readdirSync(parent)
      .filter(isKind('record'))
      .map((name) => readFileSync(join(parent, name), 'utf8'))
  return { target, records }
}

await t.test('letGo marks the record of an agent that keeps the target, once', async (t) => {
  const { target, records } = await published(t, byOne)
  await setHold(target, { reason: 'INC-1', since: Date.now(), until: null })
  const began = fs.now()
  t.equal(await letGo(fs, target, { agent: 'one' }), true)
  const { letGo: since, hold } = (await readPublication(target)) ?? {}
  t.ok(since !== undefined && since.getTime() >= began && since.getTime() <= fs.now())
  t.match(hold, { reason: 'INC-1' }, 'what an operator has said stays')
  const marked = records()
  t.equal(await letGo(fs, target, { agent: 'one' }), false, 'it does not keep it any more')
  t.strictSame(records(), marked)
})

await t.test('letGo answers false, and writes nothing, where this agent does not keep the target', async (t) => {
  const rows: readonly [PublicationOptions, string | undefined, string][] = [
    [{}, 'one', 'no agent has published it'],
    [{ ...byOne, agent: 'two' }, 'one', 'another agent keeps it'],
    [byOne, undefined, 'an agent without an identity'],
  ]
  for (const [options, agent, why] of rows) {
    const { target, records } = await published(t, options)
    const before = records()
    t.equal(await letGo(fs, target, { agent }), false, why)
    t.strictSame(records(), before, why)
  }
  const [parent, target] = scratchWith(t, 'missing')
  t.equal(await letGo(fs, target, { agent: 'one' }), false, 'nothing was published')
  t.strictSame(readdirSync(parent), [])
})

await t.test('letGo marks a record of an agent that had no identity, on behalf of any agent', async (t) => {
  const { target } = await published(t, { publisher: 'agent' })
  t.equal(await letGo(fs, target, { agent: 'one' }), true)
})
