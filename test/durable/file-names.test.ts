import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { decodeName, pathInside } from '../../src/durable/posix/calls.js'
import { readPublication, replaceDirectories, replaceDirectory } from '../../src/durable/index.js'
import { kept, scratchWith } from './scratch.js'

const bytes = (directory: string, name: number[]): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name)])

await t.test('every name comes back as the bytes that it was', async (t) => {
  const names = [
    [0x66, 0xff],
    [0x80],
    [0xf0, 0x90, 0x82, 0x80],
    [0xc3, 0xa9, 0xff, 0x41],
    [...Buffer.from('plain \u{10080} é')],
  ]
  for (const name of names) {
    t.same(Buffer.from(pathInside('/d', decodeName(Buffer.from(name)))), bytes('/d', name), String(name))
  }
  t.equal(pathInside('/d', '\u{10080}'), '/d/\u{10080}', 'a surrogate pair is text')
})

await t.test('a file whose name is no text is seen, foreign, and removed like any other', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  mkdirSync(target)
  writeFileSync(bytes(target, [0x66, 0xff]), 'precious')
  const request = { target, files: { a: 'x' }, foreign: 'same-names' as const }
  t.match(await replaceDirectories([request]), [{ error: { reason: 'TargetForeign' } }])
  t.match(await replaceDirectory(target, { files: { a: 'x' } }), { outcome: 'replaced' })
  t.same(kept(parent), ['lock', 'record'])
  mkdirSync(bytes(target, [0xfe]))
  writeFileSync(bytes(target, [0xff]), '')
  t.equal((await readPublication(target))?.differences.length, 2)
  t.match(await replaceDirectory(target, { files: { a: 'x' } }), { outcome: 'replaced' })
  t.same(readdirSync(target), ['a'])
  t.same(kept(parent), ['lock', 'record'])
})
