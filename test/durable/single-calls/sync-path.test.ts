import { mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { syncParents } from '../../../src/durable/index.js'
import { codeOf } from '../../../src/errors.js'
import { exchange, replaceFile, syncPath } from '../../../src/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { failure } from '../intercepted.js'
import { contents, kept, modeOf, scratch } from '../scratch.js'

await t.test('exchange: files, directories, two parents', async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'one'))
  writeFileSync(join(parent, 'one', 'a'), '1')
  mkdirSync(join(parent, 'sub'))
  writeFileSync(join(parent, 'sub', 'b'), '2')
  await exchange(join(parent, 'one'), join(parent, 'sub', 'b'))
  t.same(contents(parent), { one: '2', 'sub/b/a': '1' })
  for (const path of ['missing', 'none/missing'].map((name) => join(parent, name))) {
    const message = `${path} does not exist; nothing was changed`
    const refused = { name: 'DurableWriteError', code: 'ENOENT', published: false, path, message }
    await t.rejects(exchange(join(parent, 'one'), path), refused)
    await t.rejects(exchange(path, join(parent, 'one')), refused)
  }
  await t.rejects(exchange(join(parent, 'sub'), join(parent, 'sub', 'b')), {
    code: 'EINVAL',
    published: false,
  })
})

await t.test('syncPath', async (t) => {
  const parent = scratch(t)
  writeFileSync(join(parent, 'file'), '')
  for (const name of ['none', 'none/file']) {
    const answer: unknown = await syncPath(join(parent, name)).catch(codeOf)
    t.equal(answer, 'ENOENT', `${name}, whose last part is a name beside it`)
  }
  await syncPath(parent)
  await syncPath(join(parent, 'file'))
  for (const path of ['/', '.', '..', `${parent}/`, `${parent}/.`]) await syncPath(path)
  symlinkSync('file', join(parent, 'link'))
  await t.rejects(syncPath(join(parent, 'link')), { code: 'ELOOP', published: false })
  await t.rejects(syncPath(join(parent, 'none')), {
    code: 'ENOENT',
    syscall: 'open',
    message: `${parent}/none does not exist; nothing was changed`,
  })
  await t.rejects(syncPath('/proc/self/status'), { code: 'EINVAL', syscall: 'fsync', published: false })
  await syncParents([join(parent, 'file'), join(parent, 'none', 'x')])
})

await t.test(
  'syncParents syncs each parent, and each target that is a directory, and passes over missing ones',
  async (t) => {
    const root = scratch(t)
    for (const name of ['one', 'one/certs', 'two', 'two/certs']) mkdirSync(join(root, name))
    writeFileSync(join(root, 'two', 'file'), '')
    const synced: string[] = []
    const sync = Reflect.get<NodeFileSystem, 'sync'>(NodeFileSystem.prototype, 'sync')
    t.teardown(() => (NodeFileSystem.prototype.sync = sync))
    let failing: string | undefined
    NodeFileSystem.prototype.sync = async function (descriptors) {
      const paths = descriptors.map((descriptor) => readlinkSync(`/proc/self/fd/${descriptor}`).slice(root.length))
      synced.push(...paths)
      const outcomes = await sync.call(this, descriptors)
      return outcomes.map((outcome, index) => (paths[index] === failing ? failure('EIO', 'fsync') : outcome))
    }
    const targets = ['one/certs', 'two/certs', 'two/file', 'two/none', 'none/certs'].map((name) => join(root, name))
    await syncParents(targets)
    t.same(synced.sort(), ['/one', '/one/certs', '/two', '/two/certs'])
    for (const path of ['/one', '/two', '/two/certs']) {
      failing = path
      await t.rejects(syncParents(targets), { code: 'EIO', published: false, path: targets[0] }, path)
    }
    failing = undefined
    const before = synced.length
    await exchange(join(root, 'one', 'certs'), join(root, 'two', 'file'))
    t.same(synced.slice(before, before + 3), ['/one', '/two', ''], 'exchange: both parents, and what is above')
    for (const path of ['/one', '/two']) {
      failing = path
      const again = exchange(join(root, 'one', 'certs'), join(root, 'two', 'file'))
      await t.rejects(again, { code: 'EIO', published: true }, `exchange: ${path}`)
    }
    await t.rejects(syncParents([join(root, 'one', 'certs', 'x')]), { code: 'ENOTDIR', published: false })
    await syncParents([])
  },
)

await t.test(
  'requireProven: refused where durability is not proven, nothing synced and nothing exchanged',
  async (t) => {
    const parent = scratch(t)
    const [a, b] = [join(parent, 'a'), join(parent, 'b')]
    writeFileSync(a, '1')
    writeFileSync(b, '2')
    const mount = Reflect.get<NodeFileSystem, 'mount'>(NodeFileSystem.prototype, 'mount')
    const sync = Reflect.get<NodeFileSystem, 'sync'>(NodeFileSystem.prototype, 'sync')
    t.teardown(() => Object.assign(NodeFileSystem.prototype, { mount, sync }))
    let syncs = 0
    NodeFileSystem.prototype.sync = async function (descriptors) {
      syncs += 1
      return sync.call(this, descriptors)
    }
    for (const proven of [false, true]) {
      NodeFileSystem.prototype.mount = async function (descriptor) {
        return { ...(await mount.call(this, descriptor)), proven }
      }
      for (const call of [(options: object) => syncPath(a, options), (options: object) => exchange(a, b, options)]) {
        for (const requireProven of [true, false]) {
          const before = syncs
          const outcome: unknown = await call({ requireProven }).then(() => 'done', codeOf)
          const isRefused = requireProven && !proven
          t.equal(outcome, isRefused ? 'ENOTSUP' : 'done')
          t.equal(syncs > before, !isRefused)
        }
      }
    }
    t.same(contents(parent), { a: '2', b: '1' }, 'exchanged three times')
    NodeFileSystem.prototype.mount = async function (descriptor) {
      return { ...(await mount.call(this, descriptor)), proven: false }
    }
    const none = exchange(a, join(parent, 'none'), { requireProven: true })
    t.equal(await none.catch(codeOf), 'ENOENT', 'what is missing is said before that')
  },
)

await t.test('replaceFile', async (t) => {
  const parent = scratch(t)
  const path = join(parent, 'made', 'pod.yaml')
  t.match(await replaceFile(path, 'one', { mode: 0o644, parents: true }), { outcome: 'created', path })
  t.match(await replaceFile(path, Buffer.from('one'), { mode: 0o644 }), { outcome: 'unchanged' })
  t.match(await replaceFile(path, 'one', { attributes: 'set' }), { outcome: 'replaced' })
  t.equal(modeOf(path), '600')
  writeFileSync(path, 'edited')
  t.match(await replaceFile(path, 'one'), { outcome: 'replaced' })
  t.same(kept(join(parent, 'made')), ['lock', 'record'])
})
