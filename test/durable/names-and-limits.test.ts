import { hash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readPublication, replaceDirectory, replaceFile } from '../../src/durable/index.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { pruneHistory } from '../../src/durable/look/read-history.js'
import { endRelocation } from '../../src/durable/move/relocation.js'
import { setHold, letGo } from '../../src/durable/operator/hold.js'
import { rollBack } from '../../src/durable/operator/rollback.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import { intercepted } from './intercepted.js'
import { contents, scratch, scratchWith } from './scratch.js'
import { isKind } from '../crash/judge/names.js'

await t.test('a label that is equal already is not set again: that would need the right to relabel', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  let set = 0
  class Labelled extends NodeFileSystem {
    override async label(): Promise<Uint8Array> {
      return Promise.resolve(Buffer.from('system_u:object_r:cert_t:s0\0'))
    }
    override async setLabel(): Promise<void> {
      set += 1
      return Promise.resolve()
    }
  }
  t.match(await publish([directoryPublication(new Labelled(), { target, files: { a: 'new' } })]), [
    { outcome: 'replaced' },
  ])
  t.equal(set, 0)
})

/** Each call that changes a published target, or its files beside the target. */
const changes: Readonly<Record<string, (fs: NodeFileSystem, target: string) => Promise<unknown>>> = {
  publication: (_, target) => replaceDirectory(target, { files: { a: 'new' } }),
  rollback: (fs, target) => rollBack(fs, target, { pin: { reason: '', until: 'released' } }),
  hold: (fs, target) => setHold(fs, target, { reason: '', since: 0, until: null }, {}),
  release: (fs, target) => setHold(fs, target, undefined, {}),
  'end of a move': (fs, target) => endRelocation(fs, target, {}),
  'letting go': (fs, target) => letGo(fs, target, { agent: undefined }),
  'pruning of the history': (fs, target) => pruneHistory(fs, target, { keep: 0, maxAge: null }, {}),
  removal: (fs, target) => removePublished(fs, target, {}),
}

await t.test('no change of a target goes past a record of a newer version, and all stays as it was', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const history = { keep: 1, maxAge: null }
  for (const a of ['older', 'old']) await replaceDirectory(target, { files: { a }, history, publisher: 'agent' })
  const name = readdirSync(parent).find(isKind('record')) ?? ''
  const [line = ''] = readFileSync(join(parent, name), 'utf8').split('\n')
  const bodies: [string, object][] = [
    ['version 2', { ...(JSON.parse(line.slice(65)) as object), version: 2 }],
    ['something that is required', { ...(JSON.parse(line.slice(65)) as object), requires: ['time-travel'] }],
  ]
  for (const [what, body] of bodies) {
    const json = JSON.stringify(body)
    writeFileSync(join(parent, name.replace(/\d+$/, '9')), `${hash('sha256', json)} ${json}\n`, { mode: 0o600 })
    const before = contents(parent)
    for (const [change, make] of Object.entries(changes)) {
      await t.rejects(
        make(new NodeFileSystem(), target),
        { code: 'ENOTSUP', published: false, reason: 'TargetUnfit', message: /another version of holdfast/ },
        `${change}, ${what}`,
      )
      t.same(contents(parent), before, `${change}, ${what}`)
    }
  }
})

await t.test('a field of the record that this version does not know is carried into the next record', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const recordIn = (): string => join(parent, readdirSync(parent).find(isKind('record')) ?? '')
  const [line = '', ...rest] = readFileSync(recordIn(), 'utf8').split('\n')
  const json = JSON.stringify({ ...(JSON.parse(line.slice(65)) as object), later: { path: '/new' } })
  writeFileSync(recordIn(), [`${hash('sha256', json)} ${json}`, ...rest].join('\n'), { mode: 0o600 })
  t.equal((await replaceDirectory(target, { files: { a: 'new' } })).outcome, 'replaced')
  const body = JSON.parse((readFileSync(recordIn(), 'utf8').split('\n')[0] ?? '').slice(65)) as object
  t.match(body, { later: { path: '/new' } })
  t.same((await readPublication(target))?.differences, [])
})

await t.test('a lock file that was removed while a publisher holds it lets no second one in', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const lock = join(parent, readdirSync(parent).find((name) => name.endsWith('.lock')) ?? '')
  let removed = false
  // Between the opening of the lock file and the flock: the next caller makes another file of that name.
  const { fs } = intercepted(() => undefined)
  const unlinking = new Proxy(fs, {
    get: (real, property) =>
      property === 'tryLock'
        ? (descriptor: number) => {
            if (!removed) rmSync(lock)
            removed = true
            return real.tryLock(descriptor)
          }
        : (Reflect.get(real, property) as unknown),
  })
  const [result] = await publish([directoryPublication(unlinking, { target, files: { a: 'new' }, lockTimeout: 2000 })])
  t.match(result, { outcome: 'replaced' })
  t.ok(existsSync(lock), 'the lock that counts is the one that has the name')
})

await t.test('a record whose place is none is damaged, and keeps nothing from being published', async (t) => {
  for (const place of [null, {}, { within: '/x', parent: {}, target: null }]) {
    const [parent, target] = scratchWith(t, 'certs')
    await replaceDirectory(target, { files: { a: 'old' } })
    const name = readdirSync(parent).find(isKind('record')) ?? ''
    const [line = ''] = readFileSync(join(parent, name), 'utf8').split('\n')
    const json = JSON.stringify({ ...(JSON.parse(line.slice(65)) as object), place })
    writeFileSync(join(parent, name), `${hash('sha256', json)} ${json}\n`, { mode: 0o600 })
    t.equal((await replaceDirectory(target, { files: { a: 'new' } })).outcome, 'replaced', JSON.stringify(place))
    t.equal((await replaceDirectory(target, { files: { a: 'new' } })).outcome, 'unchanged')
  }
})

await t.test('a name that holdfast keeps for itself is no target: a neighbour would remove it', async (t) => {
  const parent = scratch(t)
  await replaceDirectory(join(parent, 'certs'), { files: { a: 'old' } })
  const id = (readdirSync(parent).find((name) => name.endsWith('.lock')) ?? '').replace('.lock', '')
  for (const name of [`${id}-0123456789abcdef`, `${id}.lock`, `${id}.1`, `${id}-0123456789abcdef.foreign`]) {
    const refusal = { name: 'TypeError', message: /reserves for its own files/ }
    await t.rejects(replaceDirectory(join(parent, name), { files: { a: 'x' } }), refusal, name)
    await t.rejects(replaceFile(join(parent, name), 'x'), refusal, name)
  }
})
