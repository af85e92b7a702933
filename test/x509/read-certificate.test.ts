/** What Go's crypto/x509 refuses, in holdfast's words. Go itself judges in test/e2e/certificates.test.ts. */
import t from 'tap'
import { bundleProblem, certificateBlocks } from '../../src/x509/certificates.js'
import { readCertificate } from '../../src/x509/read-certificate.js'
import { makeCertificate, makeKey, openssl, toDer } from '../directories/make-certificates.js'
import { flat, parsed, written, type Node } from './der-tree.js'

const key = makeKey()
const request = (more: string) =>
  openssl(`req -x509 -new -key IN -subj /CN=x ${more} -days 30 -out OUT`, key).toString()
const certificate = makeCertificate(key)

/** The problem of the certificate once a part of it is changed. */
function changed(change: (nodes: readonly Node[], tree: Node[]) => void, text = certificate): string | undefined {
  const tree = parsed(toDer(text))
  change(flat(tree), tree)
  return readCertificate(written(tree)).problem
}

const withOid = (nodes: readonly Node[], oid: string) =>
  nodes.filter(
    ({ body }) => Array.isArray(body) && body[0]?.body instanceof Buffer && body[0].body.toString('hex') === oid,
  )

/** The value of a leaf with this tag, of which there may be several. */
const leaf = (nodes: readonly Node[], tag: number, which = 0) =>
  nodes.filter((node) => node.tag === tag && !Array.isArray(node.body))[which] as Node

await t.test('a certificate that Go refuses is refused with what is wrong in it', (t) => {
  const rsa = makeCertificate(makeKey('RSA -pkeyopt rsa_keygen_bits:2048'))
  const names = request('-addext subjectAltName=DNS:a.example,IP:10.0.0.1,URI:spiffe://a.example/b')
  const rows: [string, string | undefined, RegExp | undefined][] = [
    ['nothing changed', changed(() => undefined), undefined],
    [
      'a negative serial number',
      readCertificate(toDer(request('-set_serial -5'))).problem,
      /^its serial number is negative/,
    ],
    ['version 4', changed((nodes) => (leaf(nodes, 0x02).body = Buffer.of(3))), /^its version is malformed/],
    [
      'another algorithm outside',
      changed((nodes) => (leaf(nodes, 0x06).body = Buffer.from('2a8648ce3d040303', 'hex'))),
      /^the signature algorithms inside and outside/,
    ],
    ['a name that is no UTF-8', changed((nodes) => (leaf(nodes, 0x0c).body = Buffer.of(0xff))), /^its issuer is malf/],
    [
      'an underscore in a PrintableString',
      changed((nodes) => Object.assign(leaf(nodes, 0x0c, 1), { tag: 0x13, body: Buffer.from('a_b') })),
      /^its subject is malformed/,
    ],
    [
      'no such day',
      changed((nodes) => (leaf(nodes, 0x17).body = Buffer.from('260230000000Z'))),
      /^its validity is malf/,
    ],
    [
      'no NULL',
      changed((nodes) => (withOid(nodes, '2a864886f70d010101')[0]?.body as Node[]).pop(), rsa),
      /no NULL param/,
    ],
    [
      'a point beside its curve',
      changed((nodes) => (leaf(nodes, 0x03).body as Buffer).fill(1, 40, 44)),
      /^its key is no point/,
    ],
    [
      'an extension twice',
      changed((nodes) => {
        const list = nodes.find(({ body }) => Array.isArray(body) && withOid(body, '551d13').length > 0)?.body as Node[]
        list.push(...withOid(list, '551d13'))
      }),
      /^it has an extension twice/,
    ],
    [
      'a critical key identifier',
      changed((nodes) => (withOid(nodes, '551d0e')[0]?.body as Node[]).splice(1, 0, { tag: 1, body: Buffer.of(0xff) })),
      /^its subject key identifier is marked as critical/,
    ],
    [
      'a name in UTF-8',
      changed((nodes) => (leaf(nodes, 0x82).body = Buffer.from('ä')), names),
      /^its list of alternative/,
    ],
    ['an address of five bytes', changed((nodes) => (leaf(nodes, 0x87).body = Buffer.alloc(5)), names), /alternative/],
    [
      'a URI with no host',
      changed((nodes) => (leaf(nodes, 0x86).body = Buffer.from('x://a^b/')), names),
      /alternative/,
    ],
    [
      'more behind the signature',
      changed((_, [all]) => (all?.body as Node[]).push({ tag: 5, body: Buffer.of() })),
      /not a/,
    ],
  ]
  for (const [what, problem, words] of rows) {
    if (words === undefined) t.equal(problem, undefined, what)
    else t.match(problem, words, what)
  }
  t.end()
})

await t.test('the dates of a certificate that Go refuses are known all the same', (t) => {
  const [block] = certificateBlocks(Buffer.from(request('-set_serial -5')))
  t.match(block, { problem: /negative/, dates: { notBefore: Date, notAfter: Date } })
  t.end()
})

await t.test('a bundle that loses a certificate in Go is refused', (t) => {
  const one = certificate.trimEnd().split('\n')
  const second = (change: (lines: string[]) => string[]) =>
    bundleProblem(Buffer.from(`${certificate}${change([...one]).join('\n')}\n`))
  const before = (mark: string) => second(([begin = '', ...lines]) => [mark + begin, ...lines])
  for (const mark of ['\ufeff', '\u00a0', '\u200b'])
    t.match(before(mark), /its BEGIN line has invisible characters before it: Go reads nothing of it/)
  for (const mark of ['ca: ', 'x', '-', '\ufeff# '])
    t.match(before(mark), /its BEGIN line has text before it: Go reads nothing of it/, mark)
  t.match(before('\t'), /its BEGIN line has spaces before it: Go reads nothing of it/)
  t.match(
    second((lines) => lines.slice(1)),
    /its END line has no BEGIN line: Go reads nothing of it/,
  )
  t.match(
    second((lines) => ['----BEGIN CERTIFICATE-----', ...lines.slice(1)]),
    /its END line has no BEGIN line/,
  )
  t.match(
    second((lines) => ['-----BEGIN ', ...lines.slice(1)]),
    /its END line has no BEGIN line/,
  )
  t.match(
    second(([begin = '', ...lines]) => [begin, 'Proc-Type: 4,MIC-CLEAR', '', ...lines]),
    /it has headers/,
  )
  for (const label of ['TRUSTED CERTIFICATE', 'X509 CERTIFICATE'])
    t.match(
      second((lines) => lines.map((line) => line.replace('CERTIFICATE', label))),
      /its label is not CERTIFICATE alone/,
    )
  t.equal(certificateBlocks(Buffer.from(`-----BEGIN \t${certificate.slice(11)}`)).length, 1, 'one block, one fault')
  t.equal(
    second((lines) => lines.map((line) => `# ${line}`)),
    undefined,
    'one that is commented out',
  )
  t.equal(
    second((lines) => ['# CN=x', ...lines]),
    undefined,
  )
  t.end()
})
