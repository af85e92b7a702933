/** The checks of certificates and keys before TLS gets them do not depend on the text around them. */
import assert from 'node:assert/strict'
import { createSecureContext } from 'node:tls'
import fc from 'fast-check'
import t from 'tap'
import { certificateProblem, keyMatches, notAfter, privateKeyProblem } from '../../src/x509/certificates.js'
import { holds } from '../property.js'
import { issue, makeAuthority } from '../kubernetes/connection/certificates.js'

const authority = makeAuthority('authority')
const pair = issue(authority, { name: 'client' })

/** Lines as tools write them around blocks, and as people do. */
const around = fc.array(
  fc.oneof(
    fc.constantFrom('Bag Attributes', '    friendlyName: ENCRYPTED', 'subject=CN = a - b'),
    fc.string({ maxLength: 20 }).filter((text) => !/^-----(?:BEGIN|END) /.test(text)),
  ),
  { maxLength: 4 },
)
const joined = (...parts: (string | readonly string[])[]) =>
  parts.map((part) => (typeof part === 'string' ? part : part.map((line) => `${line}\n`).join(''))).join('')

await t.test('text around the blocks changes nothing', async (t) => {
  const property = fc.property(around, around, around, (first, second, third) => {
    for (const [certificate, key] of [
      [joined(first, pair.certificate, second, authority.certificate), joined(third, pair.key, first)],
      // As kubelet-client-current.pem has it: both in one file, in either order.
      [joined(first, pair.key, second, pair.certificate, third), joined(first, pair.certificate, second, pair.key)],
    ] as const) {
      assert.equal(certificateProblem(certificate), undefined)
      assert.equal(privateKeyProblem(key), undefined)
      assert.ok(keyMatches(certificate, key))
      assert.deepEqual(notAfter(certificate), notAfter(pair.certificate))
    }
  })
  await holds(t, 'noise', property, { runs: 50 })
})

await t.test('certificateProblem names the number of a cut or damaged certificate in a bundle', async (t) => {
  const lines = pair.certificate.trimEnd().split('\n')
  const bundles = fc.record({
    before: fc.nat({ max: 2 }),
    after: fc.nat({ max: 2 }),
    /** Neither the BEGIN line, without which it is no certificate at all, nor nothing. */
    lost: fc.integer({ min: 1, max: lines.length - 1 }),
    cut: fc.boolean(),
  })
  const property = fc.property(bundles, ({ before, after, lost, cut }) => {
    const broken = `${(cut ? lines.slice(0, lost) : lines.filter((_, index) => index !== lost)).join('\n')}\n`
    const whole = authority.certificate
    const fault = certificateProblem(
      joined(Array<string>(before).fill(whole), broken, Array<string>(after).fill(whole)),
    )
    assert.match(String(fault), new RegExp(`^certificate ${before + 1} of ${before + 1 + after} cannot be parsed`))
  })
  await holds(t, 'bundles', property)
})

await t.test('TLS takes every key that passes here, with any byte changed', async (t) => {
  const changed = fc.tuple(fc.nat({ max: pair.key.length - 1 }), fc.string({ minLength: 1, maxLength: 1 }))
  const property = fc.property(changed, ([at, character]) => {
    const key = pair.key.slice(0, at) + character + pair.key.slice(at + 1)
    const fault = privateKeyProblem(key)
    if (fault !== undefined) {
      assert.ok(!fault.includes(pair.key.split('\n')[1]?.slice(0, 8) ?? ''), 'no content')
      return
    }
    // A change that makes another key fails as not matching; TLS takes the unchanged key.
    if (keyMatches(pair.certificate, key)) createSecureContext({ cert: pair.certificate, key })
  })
  await holds(t, 'keys', property, { runs: 300 })
})

await t.test('the checks of PEM name the fault', async (t) => {
  t.match(certificateProblem(''), /^holds no certificate in PEM form/)
  t.match(certificateProblem(pair.key), /^holds no certificate in PEM form/)
  t.match(privateKeyProblem(pair.certificate), /^holds no private key, only CERTIFICATE/)
  const encrypted = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'
  t.match(privateKeyProblem(encrypted), /^is encrypted with a passphrase/)
  const headers = 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00'
  const traditional = `-----BEGIN RSA PRIVATE KEY-----\n${headers}\n\nAAAA\n-----END RSA PRIVATE KEY-----\n`
  t.match(privateKeyProblem(traditional), /^is encrypted with a passphrase/)
})
