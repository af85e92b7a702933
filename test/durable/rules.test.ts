/**
 * Rules with little or no use of a disk: how one content stands to another, taken-over content, and the size of a directory.
 */
import { contentsOf } from '../../src/durable/adopt/adoption-rules.js'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { usageBy, usageOf } from '../../src/durable/look/fitness.js'
import {
  isSameContent,
  isTakenOver,
  relationOf,
  takenOverAs,
  withTakenOver,
} from '../../src/durable/record/taken-over.js'
import { intercepted } from './intercepted.js'
import { scratch } from './scratch.js'

await t.test('how an old content stands to a new one', async (t) => {
  const tree = (files: Record<string, string>) =>
    ({ entries: Object.entries(files).map(([path, sha256]) => ({ path, type: 'file', sha256 })) }) as never
  const relation = (old: Record<string, string>, desired: Record<string, string>) =>
    relationOf(tree(old), tree(desired)).text
  t.equal(relation({ a: '1' }, { a: '1' }), 'equal')
  t.equal(relation({ a: '1', b: '1' }, { a: '1' }), 'superset: it has b besides')
  t.equal(relation({ a: '1' }, { a: '1', b: '1' }), 'subset: it lacks b')
  t.equal(relation({ a: '1' }, { a: '2' }), 'other versions: it has another a')
  t.equal(relation({ a: '1', b: '1' }, { a: '2' }), 'different: it has b besides and has another a')
  t.equal(relation({ b: '1' }, { a: '1' }), 'different: it has b besides and lacks a')
  const many = { a: '1', b: '1', c: '1', d: '1' }
  t.equal(relation(many, {}), 'superset: it has a, b, c and 1 more besides')
  t.equal(relation({}, many), 'subset: it lacks a, b, c and 1 more')
  t.equal(
    relation(many, { a: '2', b: '2', c: '2', d: '2' }),
    'other versions: it has another a, b, c and 1 more',
    'three of each are named',
  )
  t.equal(relation({ a: '1' }, { a: '2', b: '1' }), 'other versions: it has another a and lacks b')
  const type = (kind: string) => ({ entries: [{ path: 'a', type: kind, sha256: '' }] }) as never
  t.equal(relationOf(type('directory'), type('other')).text, 'other versions: it has another a')
  t.strictSame(relationOf(tree({ a: '1', b: '1' }), tree({ a: '1' })).more, ['b'])
  t.ok(isSameContent(tree({ a: '1' }), tree({ a: '1' })))
  t.notOk(isSameContent(tree({ a: '1' }), tree({ a: '2' })))
})

await t.test('taken-over content is content 0, and stays beyond all limits while it is the newest', async (t) => {
  t.strictSame(
    takenOverAs((sequence) => `content ${sequence}`, { digest: 'a', entries: [] }, 5),
    { name: 'content 0', sequence: 0, digest: 'a', publishedAt: 5, replacedAt: 5, why: 'adopted', objects: [] },
  )
  const [zero, one] = [{ sequence: 0 }, { sequence: 1 }]
  t.strictSame([zero, one].map(isTakenOver), [true, false])
  t.strictSame(withTakenOver([], [zero]), [zero])
  t.strictSame(withTakenOver([], [one, zero]), [], 'something was published after it')
  t.strictSame(withTakenOver([one], [one, zero]), [one])
  t.strictSame(withTakenOver([zero], [zero]), [zero])
  t.strictSame(withTakenOver([], []), [])
})

await t.test('contentsOf reads content in memory, and files of at most 4 MiB', async (t) => {
  const mode = 0o600
  const planned = [
    { path: '', mode },
    { path: 'tls.key', content: Buffer.from('key'), mode },
    { path: 'large', content: { path: '/etc/hostname' } as never, mode },
  ]
  const coming = contentsOf({ planned })
  t.strictSame(coming.paths, ['tls.key'])
  t.equal(Buffer.from(await coming.read('tls.key')).toString(), 'key')
  t.strictSame(await coming.read('large'), new Uint8Array(), 'what is not in memory is no key')

  const target = scratch(t)
  mkdirSync(join(target, 'sub'))
  writeFileSync(join(target, 'sub/tls.key'), 'key')
  const { fs, open } = intercepted(() => undefined)
  const opened = await fs.openPath(target)
  const entry = (path: string, type: string, size?: number) => ({ path, type, ...(size !== undefined && { size }) })
  const most = 4 * 1024 * 1024
  const entries = [entry('sub', 'directory'), entry('sub/tls.key', 'file', most), entry('log', 'file', most + 1)]
  const there = contentsOf({ fs, opened, tree: { digest: '', entries: entries as never } })
  t.strictSame(there.paths, ['sub/tls.key'])
  t.equal(Buffer.from(await there.read('sub/tls.key')).toString(), 'key')
  t.strictSame([...open], [opened], 'reading leaves nothing open')
  await fs.close(opened)
})

await t.test('a directory takes a block for each directory, and whole blocks for each file', async (t) => {
  t.strictSame(usageBy([0, 1, 4096, 4097], 3, 4096), { bytes: 7 * 4096, inodes: 7 })
  const target = scratch(t)
  mkdirSync(join(target, 'sub/deep'), { recursive: true })
  writeFileSync(join(target, 'sub/one'), 'x'.repeat(4097))
  writeFileSync(join(target, 'two'), 'x')
  const fs = new NodeFileSystem()
  const opened = await fs.openPath(target)
  t.strictSame(await usageOf(fs, opened, 4096), { bytes: 6 * 4096, inodes: 5 })
  const { fs: late } = intercepted((call, [, name]) => {
    if (call === 'look' && name === 'two') rmSync(join(target, 'two'))
  })
  t.strictSame(await usageOf(late, opened, 4096), { bytes: 5 * 4096, inodes: 5 }, 'what goes meanwhile takes no bytes')
  await fs.close(opened)
})
