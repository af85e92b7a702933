import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { syncParents } from '../../src/durable/index.js'
import { exchange, replaceFile, syncPath } from '../../src/index.js'
import { contents, kept, modeOf, scratch } from './scratch.js'

await t.test('exchange: files, directories, two parents', async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'one'))
  writeFileSync(join(parent, 'one', 'a'), '1')
  mkdirSync(join(parent, 'sub'))
  writeFileSync(join(parent, 'sub', 'b'), '2')
  await exchange(join(parent, 'one'), join(parent, 'sub', 'b'))
  t.same(contents(parent), { one: '2', 'sub/b/a': '1' })
  await t.rejects(exchange(join(parent, 'one'), join(parent, 'missing')), {
    code: 'ENOENT',
    published: false,
    path: join(parent, 'missing'),
  })
  await t.rejects(exchange(join(parent, 'sub'), join(parent, 'sub', 'b')), {
    code: 'EINVAL',
    published: false,
  })
})

await t.test('syncPath', async (t) => {
  const parent = scratch(t)
  writeFileSync(join(parent, 'file'), '')
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
  await t.rejects(syncPath('/proc/self/status'), { code: 'EINVAL', syscall: 'fsync' })
  await syncParents([join(parent, 'file'), join(parent, 'none', 'x')])
})

await t.test('replaceFile', async (t) => {
  const parent = scratch(t)
  const path = join(parent, 'made', 'pod.yaml')
  t.match(await replaceFile(path, 'one', { mode: 0o644 }), { outcome: 'created', path })
  t.match(await replaceFile(path, Buffer.from('one'), { mode: 0o644 }), { outcome: 'unchanged' })
  t.match(await replaceFile(path, 'one'), { outcome: 'replaced' })
  t.equal(modeOf(path), '600')
  writeFileSync(path, 'edited')
  t.match(await replaceFile(path, 'one'), { outcome: 'replaced' })
  t.same(kept(join(parent, 'made')), ['lock', 'record'])
})
