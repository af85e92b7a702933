/** Certificates in a `diff`: which came, went or changed, and whether the key beside them belongs to them. */
import t from 'tap'
import { compareCertificates, type CertificateChange } from '../../src/directories/compare-certificates.js'
import { makeCertificate, makeKey } from './make-certificates.js'

const [key, otherKey] = [makeKey(), makeKey()]
const [server, renewed] = [makeCertificate(key), makeCertificate(key)]
const otherServer = makeCertificate(otherKey)

type Files = Readonly<Record<string, string>>

function changes(from: Files, to: Files): Record<string, CertificateChange[]> {
  const files = (side: Files) => new Map(Object.entries(side).map(([path, text]) => [path, Buffer.from(text)]))
  return Object.fromEntries(compareCertificates(files(from), files(to)))
}

const keysOf = (found: readonly CertificateChange[] = []) => found.map(({ from, to }) => [from?.key, to?.key])
const serialsOf = (found: readonly CertificateChange[] = []) => found.map(({ from, to }) => [from?.serial, to?.serial])
const serial = (certificate: string) => changes({}, { a: certificate }).a?.[0]?.to?.serial

await t.test('a renewed certificate is one change, with all facts that people ask for', async (t) => {
  const found = changes({ 'tls.crt': server, 'tls.key': key }, { 'tls.crt': renewed, 'tls.key': key })
  t.strictSame(Object.keys(found), ['tls.crt'])
  t.match(found['tls.crt'], [
    {
      from: { subject: /CN=/, issuer: /CN=/, serial: /^[0-9A-F]+$/, notBefore: /^20.*Z$/, notAfter: /^20.*Z$/ },
      to: { key: { path: 'tls.key', matches: true } },
    },
  ])
  t.not(found['tls.crt']?.[0]?.from?.serial, found['tls.crt']?.[0]?.to?.serial)
  t.strictSame(changes({ 'tls.crt': server }, { 'tls.crt': server }), {})
})

await t.test('a key that no longer belongs to its certificate is a change of the certificate', async (t) => {
  const found = changes({ 'tls.crt': server, 'tls.key': key }, { 'tls.crt': server, 'tls.key': otherKey })
  t.strictSame(keysOf(found['tls.crt']), [
    [
      { path: 'tls.key', matches: true },
      { path: 'tls.key', matches: false },
    ],
  ])
  const elsewhere = changes({}, { 'server.pem': server + key, 'b/web.crt': otherServer, 'b/private': otherKey })
  t.strictSame(keysOf(elsewhere['server.pem']), [[undefined, { path: 'server.pem', matches: true }]])
  t.strictSame(keysOf(elsewhere['b/web.crt']), [[undefined, { path: 'b/private', matches: true }]])
  t.strictSame(keysOf(changes({}, { 'ca.crt': server })['ca.crt']), [[undefined, null]])
})

await t.test('compareCertificates shows only the certificates of a bundle that came or went', async (t) => {
  const found = changes({ ca: server + renewed }, { ca: renewed + otherServer })
  t.strictSame(serialsOf(found.ca), [[serial(server), serial(otherServer)]])
  t.strictSame(serialsOf(changes({ ca: server + renewed }, { ca: server })['ca']), [[serial(renewed), undefined]])
  t.strictSame(serialsOf(changes({ ca: server }, {}).ca), [[serial(server), undefined]])
  t.strictSame(changes({ ca: 'no certificate' }, { ca: '-----BEGIN CERTIFICATE-----\nx' }), {})
})
