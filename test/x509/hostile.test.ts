import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { certificateBlocks, leafCertificate, pemProblem, privateKey } from '../../src/x509/certificates.js'
import { render } from '../../src/directories/render.js'
import { makeCertificate, makeKey, openssl } from '../directories/make-certificates.js'
import { configMap, directoryOf, lookup, present, secret, whole } from '../directories/objects.js'
import { der, pem } from './der-tree.js'

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts)
const integer = (...bytes: readonly number[]) => der(0x02, Buffer.from(bytes))
const number = (bits: number) => der(0x02, Buffer.alloc(1), Buffer.alloc(bits / 8, 0xff))
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const [rsa, ec, p256] = ['2a864886f70d010101', '2a8648ce3d0201', '2a8648ce3d030107']

/** A certificate around the key. Its signature is empty: OpenSSL does not check it. */
function certificateOf(algorithm: Uint8Array, key: Uint8Array): string {
  const signature = sequence(oid('2a8648ce3d040302'))
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from('x')))))
  const dates = sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('490101000000Z')))
  const subject = sequence(algorithm, der(0x03, Buffer.alloc(1), key))
  const signed = sequence(der(0xa0, integer(2)), integer(1), signature, name, dates, name, subject)
  return pem('CERTIFICATE', sequence(signed, signature, der(0x03, Buffer.alloc(9, 0))))
}

const rsaCertificate = (bits: number) =>
  certificateOf(sequence(oid(rsa), der(5)), sequence(number(bits), integer(1, 0, 1)))
const rsaKey = (bits: number, count = 9) =>
  sequence(integer(0), number(bits), ...Array.from({ length: count - 2 }, () => integer(3)))

/** A curve over a prime p for which OpenSSL takes square roots slowly: p - 1 is divisible by 2 so many times. */
function slowCurve(): string {
  const p = 141n * (1n << 640n) + 1n
  const bytes = (value: bigint) => Buffer.from(value.toString(16).padStart(162, '0'), 'hex')
  const prime = der(0x02, Buffer.alloc(1), bytes(p))
  const point = Buffer.concat([bytes(3n), bytes(5n)])
  // y² = x³ + b, through (3, 5).
  const b = (((25n - 27n) % p) + p) % p
  const field = sequence(oid('2a8648ce3d0101'), prime)
  const coefficients = sequence(der(0x04, bytes(0n)), der(0x04, bytes(b)))
  const parameters = [integer(1), field, coefficients, der(0x04, Buffer.from([4]), point)]
  const whole = sequence(...parameters, prime, integer(1))
  return certificateOf(sequence(oid(ec), whole), Buffer.concat([Buffer.from([3]), bytes(3n)]))
}

const explicit = openssl('ecparam -name prime256v1 -param_enc explicit -genkey -noout -out OUT').toString()
const explicitDer = openssl('ec -in IN -outform DER -param_enc explicit -out OUT', explicit)
const dsa = openssl('genpkey -paramfile IN -out OUT', openssl('dsaparam -out OUT 1024')).toString()
const curve = (name: string) => openssl(`ecparam -name ${name} -genkey -noout -out OUT`).toString()

const unnamed = /has an elliptic curve that is not named, or none that Go knows: P-224, P-256, P-384, P-521/
const unknown = /has another algorithm than RSA, EC, Ed25519, Ed448, X25519 or X448/
const unserved = /has another algorithm than RSA, ECDSA or Ed25519: a server in Go cannot use it/
const large = /has an RSA key with a number of more than 16,384 bits/
const damaged = /is damaged or of an unknown algorithm/

/** As Go's crypto/x509 marks one, whose curve is slow to decompress. */
const compressed = openssl('ec -in IN -conv_form compressed -out OUT', curve('secp224r1')).toString()
/** Each element is two bytes. */
const names = der(0x30, Buffer.alloc(200_000, Buffer.from([0x82, 0])))
const nested = Array.from({ length: 2000 }).reduce<Buffer>((inside) => der(0x30, inside), Buffer.of())

const hostileCertificates: readonly (readonly [string, string, RegExp])[] = [
  ['explicit parameters', makeCertificate(explicit), unnamed],
  ['a slow curve', slowCurve(), unnamed],
  ['a compressed point', makeCertificate(compressed), /its key is a compressed point of an elliptic curve: Go refuses/],
  ['a curve of a binary field', makeCertificate(curve('sect571r1')), unnamed],
  ['no parameters', certificateOf(sequence(oid(ec)), Buffer.alloc(65, 4)), unnamed],
  ['DSA', makeCertificate(dsa), unknown],
  ['RSA, 16,392 bits', rsaCertificate(16_392), large],
  ['RSA, 400,000 bits', rsaCertificate(400_000), large],
  ['many names', pem('CERTIFICATE', sequence(names, names, names)), /its serial number is malformed|not a cert/],
  ['many levels', pem('CERTIFICATE', nested), /its serial number is malformed|not a cert/],
]

await t.test('no certificate goes to OpenSSL whose key may cost much time', async (t) => {
  for (const [what, certificate, reason] of hostileCertificates) {
    t.match(leafCertificate(Buffer.from(certificate)), reason, what)
    t.match(pemProblem(Buffer.from(certificate)), reason, what)
    const b = configMap('b')
    const published = (validate: readonly 'certificates'[]) =>
      render(directoryOf([whole(b)], { validate }), lookup([present(b, { 'ca.crt': certificate })]), () => undefined)
    t.match(await published([]), { ready: true, warnings: [{ reason: 'CertificateInvalid', message: reason }] })
    t.match(await published(['certificates']), {
      ready: false,
      findings: [{ reason: 'CertificateInvalid', message: reason }],
    })
  }
  t.equal(typeof leafCertificate(Buffer.from(rsaCertificate(16_384))), 'object', 'the longest RSA key')
})

const pkcs8 = (algorithm: Uint8Array, key: Uint8Array) =>
  pem('PRIVATE KEY', sequence(integer(0), algorithm, der(0x04, key)))

const hostileKeys: readonly (readonly [string, string, RegExp])[] = [
  ['explicit parameters', explicit, unnamed],
  ['explicit parameters, PKCS #8', openssl('pkcs8 -topk8 -nocrypt -in IN -out OUT', explicit).toString(), unnamed],
  ['explicit ones behind a named curve', pkcs8(sequence(oid(ec), oid(p256)), explicitDer), unnamed],
  ['a curve of a binary field', curve('sect571r1'), unnamed],
  ['DSA', dsa, unserved],
  ['DH', makeKey('DH -pkeyopt group:ffdhe2048'), unserved],
  ['RSA, 16,392 bits', pem('RSA PRIVATE KEY', rsaKey(16_392)), large],
  ['RSA, 400,000 bits, PKCS #8', pkcs8(sequence(oid(rsa), der(5)), rsaKey(400_000)), large],
  ['RSA of many primes', pem('RSA PRIVATE KEY', rsaKey(2048, 12)), damaged],
  [
    'a long scalar',
    pkcs8(sequence(oid(ec), oid(p256)), sequence(integer(1), der(4, Buffer.alloc(90_000, 1)))),
    damaged,
  ],
  ['another encoding than its label says', pem('EC PRIVATE KEY', rsaKey(2048)), damaged],
  ...['RSA-PSS', 'ED448', 'X25519', 'X448'].map((kind) => [kind, makeKey(kind), unserved] as const),
  ...['secp256k1', 'brainpoolP384r1'].map((name) => [name, curve(name), unnamed] as const),
]

await t.test('no private key goes to OpenSSL that may cost much time', async (t) => {
  for (const [what, key, reason] of hostileKeys) {
    t.match(privateKey(Buffer.from(key)), reason, what)
    t.match(pemProblem(Buffer.from(key)), reason, what)
  }
  for (const name of ['prime256v1', 'secp384r1', 'secp521r1', 'secp224r1'])
    t.equal(typeof privateKey(Buffer.from(curve(name))), 'object', name)
})

/** Milliseconds of the processor. */
function cost(work: () => void): number {
  work()
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

await t.test('an object of hostile certificates or keys takes no more time than one of ordinary ones', async (t) => {
  /** As many as an object may hold, or a file may have. */
  const certificates = (one: string) => {
    const content = Buffer.from(one.repeat(Math.ceil(Math.min(1000, 1_000_000 / one.length))))
    return cost(() => certificateBlocks(content))
  }
  const ordinary = certificates(makeCertificate(curve('secp521r1')))
  for (const [what, one] of hostileCertificates) {
    const other = certificates(one)
    t.ok(other <= 3 * ordinary + 50, `${what}: ${other} ms; ordinary ones take ${ordinary} ms`)
  }
  const keys = (one: string) => cost(() => Array.from({ length: 20 }, () => privateKey(Buffer.from(one))))
  const ordinaryKey = keys(curve('secp521r1'))
  for (const [what, one] of hostileKeys) {
    const other = keys(one)
    t.ok(other <= 3 * ordinaryKey + 50, `20 of ${what}: ${other} ms; ordinary ones take ${ordinaryKey} ms`)
  }
})

await t.test('of a file with thousands of faulty blocks, ten are told', async (t) => {
  const b = configMap('b')
  const latest = lookup([present(b, { 'ca.crt': '-----BEGIN CERTIFICATE-----\n'.repeat(30_000) })])
  const refused = await render(directoryOf([whole(b)], { validate: ['certificates'] }), latest, () => undefined)
  const messages = refused.ready ? [] : refused.findings.map(({ message }) => message)
  t.equal(messages.length, 10)
  t.match(messages.at(-1), /\(and 29990 more of this file\)$/)
  const published = await render(directoryOf([whole(b)]), latest, () => undefined)
  t.match(published, { ready: true, warnings: [{ message: /\(and 29999 more of this file\); holdfast publishes/ }] })
})

await t.test('a rendering serves the loop between two objects', async (t) => {
  const key = curve('secp521r1')
  const data = { 'tls.crt': makeCertificate(key), 'tls.key': key }
  const secrets = Array.from({ length: 50 }, (_, index) => secret(`s${index}`))
  const contents = secrets.map((one) => whole(one, { into: one.name }))
  const latest = lookup(secrets.map((one) => present(one, data)))
  for (const validate of [[], ['certificates']] as const) {
    let turns = 0
    let next = setImmediate(function count() {
      turns++
      next = setImmediate(count)
    })
    const rendering = await render(directoryOf(contents, { validate }), latest, () => undefined)
    clearImmediate(next)
    t.ok(rendering.ready)
    t.ok(turns >= secrets.length, `${turns} turns`)
  }
})

await t.test('a file has at most 1,000 certificates and keys; a public bundle passes whole', async (t) => {
  const certificate = makeCertificate(makeKey())
  const blocks = certificateBlocks(Buffer.from(certificate.repeat(1002)))
  const faulty = blocks.flatMap(({ problem }, index) => (problem === undefined ? [] : [`${index}: ${problem}`]))
  t.same(
    faulty,
    ['1000', '1001'].map((index) => `${index}: holdfast reads 1,000 certificates of a file`),
  )
  t.match(pemProblem(Buffer.from(makeKey().repeat(1001))), 'holds more than 1,000 certificates and private keys')
  const bundle = '/etc/ssl/certs/ca-certificates.crt'
  if (!existsSync(bundle)) return
  const all = certificateBlocks(readFileSync(bundle))
  t.ok(all.length > 50)
  t.same(
    all.filter(({ problem }) => problem !== undefined),
    [],
  )
  t.equal(pemProblem(readFileSync(bundle)), undefined)
  const [known, ordinary] = [readFileSync(bundle), Buffer.from(certificate.repeat(all.length))].map((content) =>
    cost(() => certificateBlocks(content)),
  )
  t.ok(Number(known) <= 3 * Number(ordinary) + 50, `${known} ms; as many ordinary ones take ${ordinary} ms`)
})
