/** PEM text taken apart: it reads its own output again, reports a cut, and passes only text that OpenSSL accepts. */
import { X509Certificate } from 'node:crypto'
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { certificateBlocks } from '../../src/x509/certificates.js'
import { looksLikeDer, pemBlocks } from '../../src/x509/pem.js'
import { edited, makeCertificate, makeKey, toDer } from '../directories/make-certificates.js'
import { holds } from '../property.js'

const label = fc.constantFrom(
  'CERTIFICATE',
  'PRIVATE KEY',
  'EC PRIVATE KEY',
  'X509 CRL',
  'A',
  'PKCS#11 PROVIDER URI',
  'a-b/c',
)
const block = fc.record({
  label,
  der: fc.uint8Array({ minLength: 1, maxLength: 200 }),
  width: fc.integer({ min: 1, max: 100 }),
})
/** A line of what stands around the blocks. */
const noise = fc
  .string({ unit: 'binary', maxLength: 30 })
  .filter((text) => !text.includes('\n') && !text.trimStart().startsWith('-----BEGIN '))
const documents = fc.record({
  parts: fc.array(fc.oneof(block, noise), { maxLength: 6 }),
  newline: fc.constantFrom('\n', '\r\n'),
})

type Part = string | { label: string; der: Uint8Array; width: number }

function linesOf(part: Part): string[] {
  if (typeof part === 'string') return [part]
  const base64 = Buffer.from(part.der).toString('base64')
  const body = base64.match(new RegExp(`.{1,${part.width}}`, 'g')) ?? []
  return [`-----BEGIN ${part.label}-----`, ...body, `-----END ${part.label}-----`]
}

/** The text, and the blocks that are in it. */
function written(parts: readonly Part[], newline: string) {
  const lines: string[] = []
  const blocks: object[] = []
  for (const part of parts) {
    if (typeof part !== 'string') {
      const der = Buffer.from(part.der)
      blocks.push({ label: part.label, line: lines.length + 1, encrypted: false, der, problem: undefined })
    }
    lines.push(...linesOf(part))
  }
  return { text: Buffer.from(lines.map((line) => line + newline).join('')), blocks }
}

await t.test('pemBlocks finds fault with empty lines and headers of which OpenSSL or Go reads nothing', async (t) => {
  const certificate = makeCertificate(makeKey())
  const at = (index: number, ...added: string[]) => edited(certificate, (lines) => lines.toSpliced(index, 0, ...added))
  const problems = (text: string) => pemBlocks(Buffer.from(text)).map(({ problem }) => problem)
  const [empty, proc] = ['it has an empty line inside', 'its headers do not begin with Proc-Type']
  const cases: [text: string, problem: string | undefined][] = [
    [certificate, undefined],
    [at(1, ''), undefined],
    [at(1, '', ''), empty],
    [at(3, ''), empty],
    [at(3, ' \t'), empty],
    [at(-1, ''), empty],
    [edited(certificate, (lines) => lines.with(-1, `${lines.at(-1)}\f`)), 'its END line has other text after it'],
    [edited(certificate, (lines) => lines.with(2, `${lines.at(2)}\v`)), 'its body is not base64'],
    [at(1, 'Proc-Type: -----BEGIN', ''), proc],
    [at(1, 'Comment: x', ''), proc],
    [at(1, 'Proc-Type: 4,ENCRYPTED', 'DEK-Info: x', 'more', ''), 'its headers do not end with an empty line'],
    [at(1, 'Proc-Type: 4,ENCRYPTED', 'DEK-Info: x'), 'its headers do not end with an empty line'],
    [at(1, 'Proc-Type: 4,ENCRYPTED', 'DEK-Info: x', ''), undefined],
    [edited(at(1, 'Proc-Type: 4,ENCRYPTED', 'DEK-Info: x', ''), (lines) => lines.toSpliced(6, 0, '')), empty],
  ]
  for (const [text, problem] of cases) {
    const [found, ...others] = problems(text)
    t.same(others, [])
    if (problem === undefined) t.equal(found, undefined, text)
    else t.match(found, problem, text)
    // Node's OpenSSL reads none of what is faulty; what is encrypted it cannot read without its passphrase.
    const reads = (): unknown => new X509Certificate(text)
    if (found === undefined && !text.includes('Proc-Type')) t.doesNotThrow(reads, text)
    // OpenSSL passes over more kinds of spaces than Go.
    else if (!/[\f\v]/.test(text)) t.throws(reads, text)
    const isRead = certificateBlocks(Buffer.from(text))[0]?.certificate !== undefined
    t.equal(isRead, found === undefined && !text.includes('Proc-Type'), text)
  }
})

await t.test(
  'pemBlocks counts an indented block behind others, which OpenSSL does not read, and none of YAML',
  async (t) => {
    const pem = linesOf({ label: 'CERTIFICATE', der: new Uint8Array([48, 0]), width: 64 }).join('\n')
    const indented = pem.replaceAll(/^/gm, '  ')
    const problems = (text: string) =>
      pemBlocks(Buffer.from(text)).map(({ label, line, problem }) => [label, line, problem])
    t.same(problems(`${pem}\n${indented}\n`), [
      ['CERTIFICATE', 1, undefined],
      ['CERTIFICATE', 4, 'its BEGIN line has spaces before it: Go reads nothing of it'],
    ])
    t.same(problems(`ca: |\n${indented}\n`), [])
  },
)

await t.test('pemBlocks reads blocks back between any text, with any line width and line end', async (t) => {
  const property = fc.property(documents, ({ parts, newline }) => {
    const { text, blocks } = written(parts, newline)
    assert.deepEqual(pemBlocks(text), blocks)
  })
  await holds(t, 'round trip', property)
})

await t.test(
  'a text that is cut anywhere gives its complete blocks, and at most one more, with its problem',
  async (t) => {
    const property = fc.property(documents, fc.double({ min: 0, max: 1, noNaN: true }), ({ parts, newline }, at) => {
      const { text, blocks } = written(parts, newline)
      const found = pemBlocks(text.subarray(0, Math.floor(at * text.length)))
      const sound = found.filter(({ problem }) => problem === undefined)
      assert.deepEqual(sound, blocks.slice(0, sound.length))
      assert.ok(found.length - sound.length <= 1)
      assert.ok(
        found.slice(0, -1).every(({ problem }) => problem === undefined),
        'the problem is in the last one',
      )
    })
    await holds(t, 'truncation', property)
  },
)

await t.test(
  'pemBlocks of any text gives each block its bytes or a problem without content, and a line number',
  async (t) => {
    const canary = 'Q0FOQVJZ'
    const marks = ['-----BEGIN A-----', '-----END A-----', '-----END B-----', '-----BEGIN A', 'Proc-Type: 4,ENCRYPTED']
    const bodies = ['', canary, `${canary}=`, `Key: ${canary}`, ` ${canary} `, `${canary}*`]
    const lines = fc.array(fc.constantFrom(...marks, ...bodies), { maxLength: 12 })
    const property = fc.property(lines, (lines) => {
      const found = pemBlocks(Buffer.from(lines.join('\n')))
      const begun = lines.flatMap((line, index) => (line.startsWith('-----BEGIN ') ? [index + 1] : []))
      assert.deepEqual(
        found.map(({ line }) => line).filter((line) => !lines[line - 1]?.startsWith('-----END ')),
        begun,
        'none is passed over in silence',
      )
      for (const { der, problem } of found) {
        assert.notEqual(der === undefined, problem === undefined)
        assert.ok(!problem?.includes(canary))
      }
    })
    await holds(t, 'faults', property, { runs: 1000 })
  },
)

await t.test('a certificate with any byte changed: what passes here, OpenSSL reads as the same', async (t) => {
  const pem = Buffer.from(makeCertificate(makeKey()))
  let sound = 0
  const changed = fc.tuple(fc.nat({ max: pem.length - 1 }), fc.nat({ max: 255 }))
  const property = fc.property(changed, ([at, byte]) => {
    const text = Buffer.from(pem)
    text[at] = byte
    for (const { certificate } of certificateBlocks(text)) {
      if (certificate === undefined) continue
      sound++
      assert.deepEqual(new X509Certificate(text).raw, certificate.der)
    }
  })
  await holds(t, 'agreement with OpenSSL', property, { runs: 500 })
  t.ok(sound > 0, `${sound} were certificates still: the property is about something`)
})

await t.test('looksLikeDer knows DER by the length in its head', async (t) => {
  const der = toDer(makeCertificate(makeKey()))
  t.ok(looksLikeDer(der))
  const property = fc.property(
    fc.integer({ min: 0, max: der.length - 1 }),
    fc.uint8Array({ minLength: 1 }),
    (cut, more) => {
      assert.ok(!looksLikeDer(der.subarray(0, cut)))
      assert.ok(!looksLikeDer(Buffer.concat([der, more])))
    },
  )
  await holds(t, 'cut or longer, it is not', property)
})
