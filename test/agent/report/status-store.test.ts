/** What is written of a status, and what its readers make of it. */
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readAgentStatus, readStatusFile } from '../../../src/agent/report/read-status.js'
import type { DirectoryStatus } from '../../../src/agent/report/status-file.js'
import { StatusStore, type CurrentStatus } from '../../../src/agent/report/status-store.js'
import { failure, intercepted } from '../../durable/intercepted.js'
import { scratch } from '../../durable/scratch.js'

const startedAt = '2026-01-01T00:00:00.000Z'
const path = (index: number): string => `/srv/directories/d${index}`

function directoryAt(index: number, more: Partial<DirectoryStatus> = {}): DirectoryStatus {
  const object = { kind: 'Secret', namespace: 'demo', name: `secret-${index}`, uid: 'u', resourceVersion: '1' }
  const condition = {
    status: 'True',
    reason: 'Published',
    message: 'as it was published',
    lastTransitionTime: startedAt,
  } as const
  return {
    path: path(index),
    conditions: [
      { type: 'Published', ...condition },
      { type: 'Fresh', ...condition },
    ] as const,
    objects: [object],
    digest: `sha256:${'0'.repeat(64)}`,
    publishedAt: startedAt,
    confirmedAt: startedAt,
    pendingHooks: [],
    ...more,
  }
}

/** Of so many directories, some of them other than usual; `second`: of the day. */
function status(count: number, second: number, changed: Record<number, Partial<DirectoryStatus>> = {}): CurrentStatus {
  return {
    agent: { version: '9.9.9', node: 'n1', pid: 1, startedAt, writtenAt: time(second) },
    directories: Array.from({ length: count }, (_, index) => directoryAt(index, changed[index])),
    operations: [],
  }
}

const time = (second: number): string => new Date(Date.parse(startedAt) + second * 1000).toISOString()

/** A store in a directory, with what was written and synced since the last look; `fail`: the next write fails. */
function watched(t: Test) {
  const state = join(scratch(t), 'state')
  const seen = { bytes: 0, syncs: 0, fail: false }
  const { fs } = intercepted((call, args) => {
    if (call === 'sync') seen.syncs += 1
    if (call !== 'write') return
    if (seen.fail) {
      seen.fail = false
      throw failure('ENOSPC', 'write')
    }
    seen.bytes += (args[1] as Uint8Array).length
  })
  const look = () => {
    const { bytes, syncs } = seen
    Object.assign(seen, { bytes: 0, syncs: 0 })
    return { bytes, syncs }
  }
  return {
    state,
    store: new StatusStore(state, fs),
    seen,
    look,
    file: join(state, 'status.json'),
    lines: join(state, 'status.lines'),
  }
}

const nothing = { bytes: 0, syncs: 0 }
const many = 1000

await t.test('few directories stand in status.json, which is written when something has changed', async (t) => {
  const { state, store, look, file, lines } = watched(t)
  t.equal(await store.write(status(8, 1), false), true)
  t.strictSame(JSON.parse(readFileSync(file, 'utf8')), status(8, 1))
  t.notOk(existsSync(lines))
  look()
  t.equal(await store.write(status(8, 2), false), false)
  t.equal(await store.write(status(8, 3, { 1: { confirmedAt: time(3) } }), false), false)
  t.strictSame(look(), nothing, 'a newer confirmation is no reason')
  t.equal(await store.write(status(8, 4, { 1: { confirmedAt: time(3) } }), true), true, 'but the sign of life has it')
  t.strictSame(await readStatusFile(state), status(8, 4, { 1: { confirmedAt: time(3) } }))
  t.equal(await store.write(status(8, 5, { 2: { digest: null } }), false), true)
  t.strictSame(await readStatusFile(state), status(8, 5, { 2: { digest: null } }))
})

await t.test('of many directories, a change writes the one that has changed, in half the barriers', async (t) => {
  const { state, store, look } = watched(t)
  await store.write(status(many, 1), false)
  t.strictSame(await readStatusFile(state), status(many, 1))
  t.ok(look().bytes > 400 * many)

  const changed = { 500: { digest: 'sha256:1', publishedAt: time(2) } }
  t.equal(await store.write(status(many, 2, changed), false), false)
  const change = look()
  t.comment(`one change of ${many}: ${change.bytes} bytes`)
  t.ok(change.bytes < 1000)
  t.equal(change.syncs, 1, 'a file that is replaced takes two')
  t.strictSame(await readStatusFile(state), status(many, 2, changed))

  const confirmed = { ...changed, 7: { confirmedAt: time(3) } }
  await store.write(status(many, 3, confirmed), false)
  t.strictSame(look(), nothing, 'a newer confirmation is no reason')
  const conditions = directoryAt(9).conditions.map((each) =>
    each.type === 'Fresh' ? { ...each, status: 'False' as const } : each,
  )
  const stale = { ...confirmed, 9: { conditions } }
  await store.write(status(many, 4, stale), false)
  t.strictSame(await readStatusFile(state), status(many, 4, { ...changed, 9: stale[9] }), 'a changed Fresh is one')
  look()

  t.equal(await store.write(status(many, 5, stale), true), true)
  const sign = look()
  t.comment(`the sign of life of ${many}: ${sign.bytes} bytes`)
  t.ok(sign.bytes < 20_000)
  t.strictSame(await readStatusFile(state), status(many, 5, stale), 'with the newest confirmations')
  const work = { name: 'publish /x', state: 'running', since: time(6), attempt: 1, nextTry: null } as const
  await store.write({ ...status(many, 6, stale), operations: [work] }, false)
  t.strictSame((await readStatusFile(state))?.operations, [work])
})

await t.test('what the agent says of itself is written at once', async (t) => {
  const { state, store } = watched(t)
  const now = status(many, 1)
  await store.write(now, false)
  t.equal(await store.write({ ...now, agent: { ...now.agent, stoppedAt: time(2) } }, false), true)
  t.equal((await readAgentStatus(state))?.stoppedAt, time(2))
})

await t.test('what is added is bounded, and directories may come and go', async (t) => {
  const { state, store, file, lines } = watched(t)
  for (let second = 1; second <= 400; second++)
    await store.write(status(20, second, { 3: { digest: `${second}` } }), false)
  t.ok(statSync(lines).size < 100 * 1024, `${statSync(lines).size} bytes`)
  t.strictSame(await readStatusFile(state), status(20, 400, { 3: { digest: '400' } }))
  for (const count of [21, 9, 8, 0, 20]) {
    await store.write(status(count, 500 + count), false)
    t.strictSame(await readStatusFile(state), status(count, 500 + count), `${count}`)
    t.equal(existsSync(lines), count > 8)
  }
  t.ok(statSync(file).size < 2000)
})

await t.test('a torn end says nothing; what is damaged before it, or missing, is never shown', async (t) => {
  const { state, store, file, lines } = watched(t)
  const changed = { 500: { digest: 'sha256:1' } }
  await store.write(status(many, 1), false)
  const before = statSync(lines).size
  await store.write(status(many, 2, changed), false)
  const whole = readFileSync(lines)
  for (let size = before; size < whole.length; size += 40) {
    truncateSync(lines, size)
    t.strictSame(
      (await readStatusFile(state))?.directories,
      status(many, 1).directories,
      `${size - before} bytes of it`,
    )
    writeFileSync(lines, whole)
  }
  writeFileSync(lines, Buffer.concat([whole.subarray(0, before), Buffer.alloc(300), Buffer.from('\n')]))
  t.strictSame((await readStatusFile(state))?.directories, status(many, 1).directories, 'sectors that did not come')

  const damaged = /status\.lines is damaged or missing: a running agent writes it again within five minutes/
  for (const [what, content] of [
    ['a bit in the middle', flipped(whole, Math.floor(before / 2))],
    ['the first line', flipped(whole, 70)],
    ['the line of one directory is gone', withoutLine(whole, 600)],
    ['half of it', whole.subarray(0, Math.floor(before / 2))],
    ['nothing', Buffer.alloc(0)],
  ] as const) {
    writeFileSync(lines, content)
    await t.rejects(readStatusFile(state), { message: damaged }, what)
  }
  rmSync(lines)
  await t.rejects(readStatusFile(state), { message: damaged })
  t.equal((await readAgentStatus(state))?.pid, 1, 'what the agent says of itself')
  await store.write(status(many, 3, changed), true)
  t.strictSame(await readStatusFile(state), status(many, 3, changed), 'the next sign of life writes it again')
  rmSync(file)
  t.equal(await readStatusFile(state), undefined)
})

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] ?? 0) ^ 1
  return copy
}

function withoutLine(bytes: Buffer, index: number): string {
  const lines = bytes.toString('utf8').split('\n')
  return lines.filter((_, at) => at !== index).join('\n')
}

await t.test('a write that has failed is made up for as a whole', async (t) => {
  const { state, store, seen, lines } = watched(t)
  await store.write(status(many, 1), false)
  const { ino } = statSync(lines)
  seen.fail = true
  await t.rejects(store.write(status(many, 2, { 1: { digest: 'a' } }), false), { code: 'ENOSPC' })
  t.strictSame(await readStatusFile(state), status(many, 1))
  await store.write(status(many, 3, { 1: { digest: 'a' } }), false)
  t.not(statSync(lines).ino, ino, 'nothing is added behind it')
  t.strictSame(await readStatusFile(state), status(many, 3, { 1: { digest: 'a' } }))
})
