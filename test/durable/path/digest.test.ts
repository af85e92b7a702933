/** The digest of a publication is a format that records keep: it is the same on every machine, and in every version. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { Digest, type EntryHead } from '../../../src/durable/path/tree.js'
import { replaceDirectory } from '../../../src/durable/index.js'
import { scratch } from '../scratch.js'

const sha256 = (hex: string): string =>
  `sha256:${createHash('sha256')
    .update(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
    .digest('hex')}`

const id = { uid: 1, gid: 0x01020304 }
const ids = '01000000 04030201'

/** Each alone: the heads, with the content, and the bytes that are hashed. */
const entries: Record<string, readonly [EntryHead, readonly string[], string]> = {
  directory: [{ type: 'directory', path: '', mode: 0o755, ...id }, [], `64 0000000000000000 ed010000 ${ids}`],
  file: [
    { type: 'file', path: 'é', mode: 0o640, ...id },
    ['a', 'bc'],
    `66 0200000000000000 c3a9 a0010000 ${ids} 0300000000000000 616263`,
  ],
  'file that is empty': [
    { type: 'file', path: 'a', mode: 0o640, ...id },
    [],
    `66 0100000000000000 61 a0010000 ${ids} 0000000000000000`,
  ],
  'file of 12 GiB and 5 bytes': [
    { type: 'file', path: 'a', mode: 0o640, ...id },
    [],
    `66 0100000000000000 61 a0010000 ${ids} 0500000003000000`,
  ],
  symlink: [
    { type: 'symlink', path: 'l', mode: 0o777, ...id },
    ['t'],
    `6c 0100000000000000 6c ff010000 ${ids} 0100000000000000 74`,
  ],
  other: [{ type: 'other', path: 'o', mode: 0o600, ...id }, [], `6f 0100000000000000 6f 80010000 ${ids}`],
}

/** Of content that is not made here. */
const sizes: Record<string, number> = { 'file of 12 GiB and 5 bytes': 3 * 2 ** 32 + 5 }

for (const [what, [head, content, bytes]] of Object.entries(entries)) {
  await t.test(`an entry is hashed as the format says, byte for byte: ${what}`, async (t) => {
    const digest = new Digest()
    digest.entry(head, sizes[what] ?? content.join('').length)
    for (const part of content) digest.content(Buffer.from(part))
    t.equal(digest.text(), sha256(bytes))
  })
}

await t.test('a published directory is hashed in the byte order of its paths, itself first', async (t) => {
  const target = join(scratch(t), 'target')
  const { digest } = await replaceDirectory(target, {
    files: { 'a/b': '2', 'a.b': '1', A: '' },
    mode: 0o755,
    fileMode: 0o640,
  })
  const owner = Buffer.alloc(8)
  owner.writeUInt32LE(process.getuid?.() ?? 0, 0)
  owner.writeUInt32LE(process.getgid?.() ?? 0, 4)
  const file = `a0010000 ${owner.toString('hex')}`
  const directory = `ed010000 ${owner.toString('hex')}`
  const bytes = [
    `64 0000000000000000 ${directory}`,
    `66 0100000000000000 41 ${file} 0000000000000000`,
    `64 0100000000000000 61 ${directory}`,
    `66 0300000000000000 612e62 ${file} 0100000000000000 31`,
    `66 0300000000000000 612f62 ${file} 0100000000000000 32`,
  ]
  t.equal(digest, sha256(bytes.join('')))
})
