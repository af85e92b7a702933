import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { openNoSymlinks, walkNoSymlinks } from '../../src/durable/posix/open-path.js'
import { scratch } from './scratch.js'

// The walk stands in for openat2 on old kernels and under seccomp profiles: both must answer alike.
for (const [name, openPath] of [
  ['openat2', openNoSymlinks],
  ['the walk', walkNoSymlinks],
] as const) {
  await t.test(name, async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'a', 'b'), { recursive: true })
    writeFileSync(join(root, 'file'), '')
    symlinkSync('a', join(root, 'link'))
    for (const path of [join(root, 'a', 'b'), root, '/']) {
      const fd = await openPath(path)
      t.equal(readlinkSync(`/proc/self/fd/${fd}`), path)
      closeSync(fd)
    }
    await t.rejects(openPath(join(root, 'link')), { code: 'ELOOP' })
    await t.rejects(openPath(join(root, 'link', 'b')), { code: 'ELOOP' })
    await t.rejects(openPath(join(root, 'none')), { code: 'ENOENT' })
    await t.rejects(openPath(join(root, 'file')), { code: 'ENOTDIR' })
    await t.rejects(openPath(join(root, 'file', 'x')), { code: 'ENOTDIR' })
  })
}

await t.test('a directory on the way needs no right to be read', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'a', 'b'), { recursive: true })
  chmodSync(join(root, 'a'), 0o311)
  const source = new URL('../../src/durable/posix/open-path.js', import.meta.url).href
  const opens = `const ways = await import('${source}')
    for (const way of ['openNoSymlinks', 'walkNoSymlinks']) console.log(await ways[way](process.argv[1]) > 0)`
  // Without its capabilities, root has the rights of the directories' owner.
  const bare = process.geteuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
  const args = [...bare, process.execPath, '--input-type=module', '-e', opens, join(root, 'a/b')]
  t.equal(execFileSync('env', args, { encoding: 'utf8' }), 'true\ntrue\n')
  chmodSync(join(root, 'a'), 0o700)
})

await t.test('openNoSymlinks opens a name that is no text, and follows no link of such a name', async (t) => {
  const root = scratch(t)
  const named = (byte: number): Buffer => Buffer.concat([Buffer.from(`${root}/`), Buffer.of(byte)])
  mkdirSync(named(0xfe))
  symlinkSync(named(0xfe), named(0xff))
  writeFileSync(named(0xfc), '')
  symlinkSync(named(0xfc), named(0xfd))
  const system = new NodeFileSystem()
  const parent = await system.openPath(root)
  t.teardown(() => system.close(parent))
  // Each byte that is no UTF-8 stands as a lone surrogate.
  await system.close(await system.openDirectory(parent, '\udcfe'))
  await t.rejects(system.openDirectory(parent, '\udcff'), { code: /^(ELOOP|ENOTDIR)$/ })
  await system.close(await system.openFile(parent, '\udcfc'))
  await t.rejects(system.openFile(parent, '\udcfd'), { code: 'ELOOP' })
})
