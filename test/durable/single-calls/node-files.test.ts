import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { read } from '../../../src/durable/single-calls/node-files.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { messageOf } from '../../../src/errors.js'
import { failing } from '../intercepted.js'
import { scratch } from '../scratch.js'

await t.test('read answers a small regular file, and names what stands in its place', async (t) => {
  const root = scratch(t)
  const at = (name: string) => join(root, name)
  mkdirSync(at('directory'))
  symlinkSync('small', at('link'))
  symlinkSync('loop', at('loop'))
  symlinkSync('directory', at('to-directory'))
  writeFileSync(at('small'), 'abc')
  writeFileSync(at('large'), 'abcd')
  const cases: [string, boolean, string | undefined][] = [
    ['small', false, 'abc'],
    ['link', true, 'abc'],
    ['none', false, undefined],
    ['link', false, `${at('link')} is a symbolic link: name the file itself`],
    // Its size in the file system is more than `largest`.
    ['directory', false, `${at('directory')} is not a regular file`],
    ['large', false, `${at('large')} is larger than 3 bytes`],
    [
      'small/below',
      false,
      `${at('small')} is not a directory; holdfast left ${at('small/below')} as it was; name a path in which each part above the last is a directory`,
    ],
    ...['loop', 'directory', 'large', 'to-directory'].map((name): [string, boolean, undefined] => [
      name,
      true,
      undefined,
    ]),
  ]
  for (const [name, follow, answer] of cases) {
    const found = await read(new NodeFileSystem(), at(name), { largest: 3, ...(follow && { follow }) }).then(
      (bytes) => bytes && Buffer.from(bytes).toString(),
      messageOf,
    )
    t.equal(found, answer, `${name}, ${follow ? 'followed' : 'as it is'}`)
  }
})

await t.test('a read that fails names the call and its errno, what is left and what to do', async (t) => {
  const path = join(scratch(t), 'file')
  writeFileSync(path, 'abc')
  await t.rejects(read(failing('openFile', 'EIO', 'openat2').fs, path, { largest: 3 }), {
    name: 'DurableWriteError',
    code: 'EIO',
    published: false,
    message: `could not read ${path}: openat2 ${path}: EIO; holdfast left ${path} as it was; the disk failed: check the kernel log`,
  })
})
