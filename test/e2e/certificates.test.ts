/** Go judges what holdfast takes for a certificate, a bundle of them, or a pair with its key: no consumer in Go may read less. */
import { hash } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { bundleProblem, certificateBlocks, keyPairProblem } from '../../src/x509/certificates.js'
import { makeCertificate, makeKey, openssl, toDer } from '../directories/make-certificates.js'
import { GoReader, goReadings } from '../fuzz/go-readings.js'
import { replaying, seed } from '../seed.js'
import { flat, parsed, pem, written, type Node } from '../x509/der-tree.js'
import { counted } from './kubelet-judge.js'

/** Of each seed. */
const count = Number(process.env.HOLDFAST_CERTIFICATES ?? '3000')
const seeds = replaying ? [seed] : [1, seed]
const go = new GoReader(goReadings())
t.teardown(() => go.close())

const ec = (curve: string, more = '') => `EC -pkeyopt ec_paramgen_curve:${curve}${more}`
const compressed = (key: string) => openssl('ec -in IN -conv_form compressed -out OUT', key).toString()
const dsa = () => openssl('genpkey -paramfile IN -out OUT', openssl('dsaparam -out OUT 1024')).toString()

/** Whether Go reads a certificate of this kind, and serves with its key. */
const kinds: Readonly<Record<string, { key: () => string; parses: boolean; serves: boolean }>> = {
  'RSA, 1,024 bits': { key: () => makeKey('RSA -pkeyopt rsa_keygen_bits:1024'), parses: true, serves: true },
  'RSA, 2,048 bits': { key: () => makeKey('RSA -pkeyopt rsa_keygen_bits:2048'), parses: true, serves: true },
  'RSA, PKCS #1': { key: () => openssl('genrsa -traditional -out OUT 2048').toString(), parses: true, serves: true },
  'RSA, exponent 3': {
    key: () => makeKey('RSA -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_pubexp:3'),
    parses: true,
    serves: true,
  },
  'RSA, three primes': {
    key: () => makeKey('RSA -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_primes:3'),
    parses: true,
    serves: true,
  },
  'RSA-PSS': { key: () => makeKey('RSA-PSS -pkeyopt rsa_keygen_bits:2048'), parses: true, serves: false },
  'P-224': { key: () => makeKey(ec('P-224')), parses: true, serves: true },
  'P-256': { key: () => makeKey(ec('P-256')), parses: true, serves: true },
  'P-384': { key: () => makeKey(ec('P-384')), parses: true, serves: true },
  'P-521': { key: () => makeKey(ec('P-521')), parses: true, serves: true },
  'P-256, SEC 1': {
    key: () => openssl('ecparam -name prime256v1 -genkey -noout -out OUT').toString(),
    parses: true,
    serves: true,
  },
  'P-224, compressed': { key: () => compressed(makeKey(ec('P-224'))), parses: false, serves: false },
  'P-256, compressed': { key: () => compressed(makeKey(ec('P-256'))), parses: false, serves: false },
  'explicit parameters': {
    key: () => makeKey(ec('P-256', ' -pkeyopt ec_param_enc:explicit')),
    parses: false,
    serves: false,
  },
  P192: { key: () => makeKey(ec('prime192v1')), parses: false, serves: false },
  secp256k1: { key: () => makeKey(ec('secp256k1')), parses: false, serves: false },
  brainpoolP256r1: { key: () => makeKey(ec('brainpoolP256r1')), parses: false, serves: false },
  sect571r1: { key: () => makeKey(ec('sect571r1')), parses: false, serves: false },
  Ed25519: { key: () => makeKey('ED25519'), parses: true, serves: true },
  Ed448: { key: () => makeKey('ED448'), parses: true, serves: false },
  DSA: { key: dsa, parses: true, serves: false },
}

/** What holdfast refuses and Go takes, by its words. */
const stricter = [/another algorithm than RSA/]

await t.test('holdfast takes the kinds of keys and curves that Go takes', async (t) => {
  for (const [name, { key: make, parses, serves }] of Object.entries(kinds)) {
    const key = make()
    const certificate = makeCertificate(key)
    const both = certificate + key
    const [bundle, pair] = await Promise.all([goBundle(certificate), goPair(both)])
    t.equal(bundle.error === undefined, parses, `${name}: Go: ${bundle.error ?? 'takes the certificate'}`)
    t.equal(pair.error === undefined, serves, `${name}: Go: ${pair.error ?? 'serves with the key'}`)
    const [own, ownPair] = [bundleProblem(Buffer.from(certificate)), keyPairProblem(Buffer.from(both))]
    t.equal(
      own === undefined || stricter.some((words) => words.test(own)),
      parses,
      `${name}: ${own ?? 'holdfast takes it'}`,
    )
    t.equal(
      ownPair === undefined,
      serves && name !== 'RSA, three primes',
      `${name}: ${ownPair ?? 'holdfast takes the pair'}`,
    )
  }
})

async function goBundle(text: string | Buffer) {
  const [answer = {}] = await go.read('bundle', [Buffer.from(text)])
  return answer
}

async function goPair(text: string | Buffer) {
  const [answer = {}] = await go.read('pair', [Buffer.from(text)])
  return answer
}

const key = makeKey()
const certificate = makeCertificate(key)
function extensionsOf(...all: readonly string[]): string {
  const words = all.map((one) => `-addext ${one}`).join(' ')
  return openssl(`req -x509 -new -key IN -subj /CN=x ${words} -days 30 -out OUT`, key).toString()
}

/** Certificates with something in each of their parts, to be changed. */
const whole = [
  certificate,
  makeCertificate(makeKey('RSA -pkeyopt rsa_keygen_bits:1024')),
  makeCertificate(makeKey('ED25519')),
  makeCertificate(makeKey(ec('P-521'))),
  extensionsOf('subjectAltName=DNS:a.example,email:a@b.example,IP:10.0.0.1,IP:::1,URI:spiffe://a.example/b,RID:1.2.3'),
  extensionsOf(
    'keyUsage=critical,digitalSignature,keyCertSign',
    'extendedKeyUsage=serverAuth,clientAuth,1.2.3.4',
    'certificatePolicies=1.2.3,1.2.4',
    'policyConstraints=requireExplicitPolicy:3,inhibitPolicyMapping:2',
    'inhibitAnyPolicy=2',
    'policyMappings=1.2.3:1.2.4',
  ),
  extensionsOf(
    'nameConstraints=critical,permitted;DNS:.example,permitted;IP:10.0.0.0/255.0.0.0,excluded;email:a@b.example,permitted;URI:.example',
    'crlDistributionPoints=URI:http://a.example/l.crl',
    'authorityInfoAccess=OCSP;URI:http://a.example,caIssuers;URI:http://a.example/ca',
  ),
]

const texts = [
  '',
  '\x00',
  '\xff',
  '\x80',
  '\x7f\xff',
  'é',
  'a@b',
  'a b',
  '.example',
  'example.',
  'a..b',
  'http://[::1]:8/',
  'http://a b/',
  'http://a:b/',
  '%zz:/',
  'x:%zz',
  '//a',
  'a:b',
  '1.2.3.4',
  '10.0',
  '490101000000Z',
  '500101000000Z',
  '20490101000000Z',
  '4901010000Z',
  '490101000000+0100',
  '230230000000Z',
  '\x00\x01',
  '\xd8\x00',
  '\xff\xfe',
  '\x05\x00',
  '"a"@b',
  '.a@b',
  'a@.b',
]
const oids = [
  '2a864886f70d010101',
  '2a864886f70d01010a',
  '2a8648ce3d0201',
  '2a8648ce3d030107',
  '2b81040021',
  '2b8104000a',
  '2b6570',
  '2b656e',
  '2b6571',
  '551d0e',
  '551d0f',
  '551d11',
  '551d13',
  '551d1e',
  '551d1f',
  '551d20',
  '551d21',
  '551d23',
  '551d24',
  '551d25',
  '551d36',
  '2b06010505070101',
  '8037',
  '2a80',
  '2a8f8f8f8f8f7f',
  '2a8888888800',
  '',
]
const otherTags = [
  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0c, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18, 0x1c, 0x1e, 0x30, 0x31, 0x80, 0x81,
  0x82, 0x86, 0x87, 0xa0, 0xa1, 0xa3,
]

interface Change {
  readonly at: number
  readonly kind: number
  readonly value: number
  readonly byte: number
}

const change = fc.record({ at: fc.nat(), kind: fc.nat({ max: 9 }), value: fc.nat(), byte: fc.nat({ max: 255 }) })

/** Changes one element of the tree. */
function apply(tree: Node[], { at, kind, value, byte }: Change): void {
  const all = flat(tree)
  const node = all[at % all.length]
  const parent = all.find(({ body }) => Array.isArray(body) && body.includes(node as Node))?.body
  if (node === undefined) return
  const siblings = Array.isArray(parent) ? parent : tree
  const index = siblings.indexOf(node)
  if (kind === 0) node.tag = otherTags[value % otherTags.length] ?? 0
  else if (kind === 1) siblings.splice(index, 1)
  else if (kind === 2) siblings.splice(index, 0, structuredClone(node))
  else if (kind === 3) siblings.splice(index, 2, ...siblings.slice(index, index + 2).reverse())
  else if (Array.isArray(node.body)) return
  else if (node.tag === 0x06) node.body = Buffer.from(oids[value % oids.length] ?? '', 'hex')
  else if (kind < 7) node.body = Buffer.from(texts[value % texts.length] ?? '', value % 2 === 0 ? 'latin1' : 'utf8')
  else {
    const bytes = [...node.body]
    bytes.splice(value % (bytes.length + 1), kind === 7 ? 0 : 1, ...(kind === 8 ? [] : [byte]))
    node.body = Buffer.from(bytes)
  }
}

/** structuredClone makes Uint8Arrays of Buffers; what is written is the same. */
function changed(content: Buffer, changes: readonly Change[]): Buffer {
  const tree = parsed(content)
  for (const one of changes) apply(tree, one)
  return written(tree)
}

/** What only one of both takes, in its words; a text that holdfast alone takes fails. */
async function judge(
  t: Test,
  as: 'bundle' | 'pair',
  inputs: readonly Buffer[],
  own: (input: Buffer) => string | undefined,
): Promise<void> {
  const answers = await go.read(as, inputs)
  const [milder, others, known]: [string[], string[], string[]] = [[], [], []]
  let both = 0
  for (const [index, input] of inputs.entries()) {
    const problem = own(input)
    const { error, value } = answers[index] ?? { error: 'no answer' }
    if (problem === undefined && error !== undefined) milder.push(`Go: ${error}\n${input.toString('latin1')}`)
    if (problem !== undefined && error === undefined) known.push(problem.replaceAll(/line \d+|\d+ bytes/g, '…'))
    if (problem !== undefined || error !== undefined) continue
    both++
    if (as === 'bundle' && String(value) !== String(readOf(input)))
      others.push(`${String(value)}\n${input.toString('latin1')}`)
  }
  t.strictSame(milder.slice(0, 5), [], `holdfast alone takes ${milder.length}`)
  t.strictSame(others.slice(0, 5), [], `both take ${others.length}, and Go reads others`)
  t.ok(both > 20, `both take ${both} of ${inputs.length}`)
  t.comment(`Go alone takes ${known.length}`, ...counted(known))
}

/** As go-readings says it. */
const readOf = (input: Buffer) =>
  certificateBlocks(input).map(({ certificate, dates }) => [
    hash('sha256', certificate?.der ?? ''),
    Number(dates?.notBefore) / 1000,
    Number(dates?.notAfter) / 1000,
  ])

const changes = fc.array(change, { minLength: 1, maxLength: 3 })

for (const from of seeds) {
  await t.test(`no changed certificate that holdfast takes is refused by Go, HOLDFAST_SEED=${from}`, async (t) => {
    const ders = whole.map((one) => toDer(one))
    const drawn = fc.sample(fc.tuple(fc.nat({ max: ders.length - 1 }), changes), { seed: from, numRuns: count })
    const inputs = drawn.map(([which, changes]) =>
      Buffer.from(pem('CERTIFICATE', changed(ders[which] as Buffer, changes))),
    )
    await judge(t, 'bundle', inputs, bundleProblem)
  })
}

/** PKCS #1 is inside of PKCS #8. */
const keys = ['RSA -pkeyopt rsa_keygen_bits:1024', ec('P-256'), ec('P-521'), 'ED25519'].map((kind) => {
  const key = makeKey(kind)
  return { certificate: makeCertificate(key), der: openssl('pkcs8 -topk8 -nocrypt -in IN -outform DER -out OUT', key) }
})

for (const from of seeds) {
  await t.test(`no changed key that holdfast takes is refused by Go, HOLDFAST_SEED=${from}`, async (t) => {
    const drawn = fc.sample(fc.tuple(fc.nat({ max: keys.length - 1 }), changes), { seed: from, numRuns: count })
    const inputs = drawn.map(([which, changes]) => {
      const { certificate, der } = keys[which] as (typeof keys)[number]
      return Buffer.from(certificate + pem('PRIVATE KEY', changed(der, changes)))
    })
    await judge(t, 'pair', inputs, keyPairProblem)
  })
}

const marks = [
  '\ufeff',
  '\u00a0',
  '\u200b',
  'ca: ',
  ' ',
  '\t',
  '\r',
  '\n',
  '\r\n',
  '\0',
  '#',
  '# comment\n',
  '-----',
  '-----BEGIN ',
  '-----END CERTIFICATE-----\n',
  'é',
  '\u2028',
  '\f',
  '\v',
  'Proc-Type: 4,MIC-CLEAR\n\n',
  'x: y\n\n',
  'TRUSTED ',
  'X509 ',
  '=',
  'A',
]
const part = fc.record({
  which: fc.nat({ max: 2 }),
  line: fc.constantFrom(0, 0, 0, 1, 3, -1, -2, -2),
  noise: fc.array(fc.record({ mark: fc.constantFrom(...marks), place: fc.constantFrom(0, 0, 0, 11, 5, 1000) }), {
    maxLength: 2,
  }),
})
const bundles = fc.record({
  first: fc.constantFrom('', '', '\n', '# A\n'),
  parts: fc.array(part, { minLength: 2, maxLength: 4 }),
})
const authorities = [certificate, makeCertificate(makeKey(), { name: 'b' }), makeCertificate(makeKey(), { name: 'c' })]

/** A text with certificates, of which some are spoilt. */
function drawnBundle({ first, parts }: typeof bundles extends fc.Arbitrary<infer Bundle> ? Bundle : never): Buffer {
  const texts = parts.map(({ which, line, noise }) => {
    const lines = (authorities[which] as string).split('\n')
    const index = line < 0 ? lines.length + line : line
    for (const { mark, place } of noise) {
      const text = lines[index] ?? ''
      lines[index] = text.slice(0, place) + mark + text.slice(place)
    }
    return lines.join('\n')
  })
  return Buffer.from(first + texts.join(''))
}

for (const from of seeds) {
  await t.test(`of a bundle that holdfast takes, Go reads each certificate, HOLDFAST_SEED=${from}`, async (t) => {
    const drawn = fc.sample(bundles, { seed: from, numRuns: count })
    const inputs = drawn.map(drawnBundle)
    await judge(t, 'bundle', inputs, bundleProblem)
    const isLess = (input: Buffer, { parts }: { parts: readonly object[] }) =>
      bundleProblem(input) === undefined && certificateBlocks(input).length < parts.length
    const lost = inputs.filter((input, index) => isLess(input, drawn[index] ?? { parts: [] }))
    t.strictSame(lost.slice(0, 5).map(String), [], `${lost.length} bundles that holdfast takes have lost a certificate`)
  })
}
