import { hash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readPublication, replaceDirectory, replaceFile } from '../../src/durable/index.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { intercepted } from './intercepted.js'
import { contents, scratch, scratchWith } from './scratch.js'

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

await t.test('a publication keeps a record of a newer version, and refuses to publish over it', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const name = readdirSync(parent).find((entry) => /^\.holdfast-[0-9a-f]{16}\.\d+$/.test(entry)) ?? ''
  const path = join(parent, name)
  const [line = ''] = readFileSync(path, 'utf8').split('\n')
  const bodies: [string, object][] = [
    ['version 2', { ...(JSON.parse(line.slice(65)) as object), version: 2 }],
    ['something that is required', { ...(JSON.parse(line.slice(65)) as object), requires: ['time-travel'] }],
  ]
  for (const [what, body] of bodies) {
    const json = JSON.stringify(body)
    writeFileSync(path, `${hash('sha256', json)} ${json}\n`, { mode: 0o600 })
    await t.rejects(
      replaceDirectory(target, { files: { a: 'new' } }),
      { code: 'ENOTSUP', published: false, reason: 'TargetUnfit', message: /newer version of holdfast/ },
      what,
    )
    t.ok(existsSync(path), 'the record is kept')
    t.same(contents(target), { a: 'old' })
  }
})

await t.test('a field of the record that this version does not know is carried into the next record', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const recordIn = (): string =>
    join(parent, readdirSync(parent).find((entry) => /^\.holdfast-[0-9a-f]{16}\.\d+$/.test(entry)) ?? '')
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
    const name = readdirSync(parent).find((entry) => /^\.holdfast-[0-9a-f]{16}\.\d+$/.test(entry)) ?? ''
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
