import t from 'tap'
import { render } from '../../src/directories/render.js'
import type { Rendering } from '../../src/directories/types.js'
import { absent, combine, configMap, directoryOf, keptOf, lookup, present, secret, whole } from './objects.js'
import { edited, makeCertificate, makeKey, openssl, toDer } from './make-certificates.js'

type Data = Readonly<Record<string, string | Uint8Array>>

const a = secret('a')
const b = configMap('b')
const key = makeKey()
const certificate = makeCertificate(key)
const otherKey = makeKey()
const other = makeCertificate(otherKey)
// Certificates made in this very second begin before it.
const now = new Date(Date.now() + 60_000)

function renderSecret(
  data: Data,
  validate: readonly 'certificates'[] = ['certificates'],
  at = now,
): Promise<Rendering> {
  return render(directoryOf([whole(a)], { validate }), lookup([present(a, data)]), () => undefined, at)
}

/** The messages of a rendering refused for its certificates; none of them holds content. */
async function refused(data: Data): Promise<string[]> {
  const rendering = await renderSecret(data)
  if (rendering.ready) return []
  const body = Object.values(data)
    .flatMap((content) => content.toString().split('\n'))
    .filter((line) => line.length > 15 && !line.startsWith('-----'))
  return rendering.findings.map(({ reason, message, reference }) => {
    t.equal(reason, 'CertificateInvalid')
    t.same(reference, a, 'whose fault it is')
    t.notOk(
      body.some((line) => message.includes(line)),
      'no content',
    )
    return message
  })
}

const pkcs1 = openssl('genrsa -traditional -out OUT 2048').toString()
const sec1 = openssl('ecparam -name prime256v1 -genkey -out OUT').toString()

await t.test('validate: certificates accepts keys of every usual kind', async (t) => {
  t.match(pkcs1, 'BEGIN RSA PRIVATE KEY')
  t.match(sec1, /BEGIN EC PARAMETERS[^]*BEGIN EC PRIVATE KEY/)
  const keys: [string, string][] = [
    ['PKCS #8, P-256', key],
    ['PKCS #8, P-384', makeKey('EC -pkeyopt ec_paramgen_curve:P-384')],
    ['PKCS #8, RSA', makeKey('RSA -pkeyopt rsa_keygen_bits:2048')],
    ['PKCS #1', pkcs1],
    ['SEC 1 after its parameters', sec1],
    ['Ed25519', makeKey('ED25519')],
    ['CRLF line ends', key.replaceAll('\n', '\r\n')],
    ['text before it', `Some words\nin front\n${key}`],
    ['no last newline', key.trimEnd()],
  ]
  for (const [what, pem] of keys) {
    const own = makeCertificate(pem.replaceAll('\r', ''))
    t.same(await refused({ 'tls.crt': own, 'tls.key': pem }), [], what)
    t.same(await refused({ 'tls.crt': own, 'tls.key': otherKey }), [
      'Secret ns/a: tls.key does not belong to the first certificate of tls.crt',
    ])
  }
  t.same(await refused({ 'tls.crt': certificate + other, 'tls.key': key }), [], 'a chain: the leaf is first')
  t.same((await refused({ 'tls.crt': other + certificate, 'tls.key': key })).length, 1, 'a chain the wrong way round')
  t.same(
    await refused({ 'tls.crt': key + certificate, 'tls.key': certificate + key }),
    [],
    'key and certificate in both',
  )
})

await t.test('validate: certificates refuses each bad pair and block, in its words', async (t) => {
  const crt = (content: string | Uint8Array) => refused({ 'tls.crt': content, 'tls.key': key })
  const pem = (content: string | Uint8Array) => refused({ 'tls.crt': certificate, 'tls.key': content })
  const oneLineLess = (text: string) => edited(text, (lines) => lines.filter((_, index) => index !== 3))
  const withoutEnd = edited(certificate, (lines) => lines.slice(0, -1))
  t.same(await crt(''), ['Secret ns/a: tls.crt is empty'])
  t.same(await crt('hello'), ['Secret ns/a: tls.crt holds no PEM block'])
  t.same(await crt(key), ['Secret ns/a: tls.crt holds no certificate, only PRIVATE KEY'])
  t.same(await crt(toDer(certificate)), [
    'Secret ns/a: tls.crt is DER, not PEM: convert it with openssl x509 -inform DER',
  ])
  t.same(await crt(`\ufeff${certificate}`), [
    'Secret ns/a: tls.crt starts with a byte order mark: remove it',
    'tls.crt (contents[0], Secret ns/a, key tls.crt): certificate 1 of 1, at line 1: its BEGIN line has invisible characters before it: Go reads nothing of it',
  ])
  t.same(await crt(certificate.replaceAll(/^/gm, '  ')), [
    'Secret ns/a: tls.crt has a PEM block that does not start at the start of a line',
  ])
  const both = (fault: string, of = 1) => [
    `Secret ns/a: tls.crt does not parse: the certificate at line 1: ${fault}`,
    `tls.crt (contents[0], Secret ns/a, key tls.crt): certificate 1 of ${of}, at line 1: ${fault}`,
  ]
  t.same(await crt(withoutEnd), both('it is cut short: it has no END line'))
  t.same(await crt(oneLineLess(certificate)), both('it is cut short'))
  t.same(await crt(withoutEnd + other), both('it has no END line before the next block', 2))
  t.same(await crt(certificate.trimEnd() + other), both('its END line has other text after it'))
  t.same(await crt(certificate.replace('END CERTIFICATE', 'END PRIVATE KEY')), both('its END line names another kind'))
  t.same(await crt(edited(certificate, (lines) => lines.toSpliced(2, 0, 'garbage!'))), both('its body is not base64'))
  t.same(await crt(edited(certificate, (lines) => [lines[0] ?? '', lines.at(-1) ?? ''])), both('its body is empty'))
  t.same(
    await crt(edited(certificate, (lines) => lines.toSpliced(2, 1, (lines[2] ?? '').slice(1)))),
    both('its base64 is incomplete'),
  )
  const longer = Buffer.concat([toDer(certificate), Buffer.from([0, 0, 0])]).toString('base64')
  t.same(
    await crt(`-----BEGIN CERTIFICATE-----\n${longer}\n-----END CERTIFICATE-----\n`),
    both('it has 3 bytes too many'),
  )
  const changed = toDer(certificate)
  changed.fill(0xff, 4, 60)
  t.same(
    await crt(`-----BEGIN CERTIFICATE-----\n${changed.toString('base64')}\n-----END CERTIFICATE-----\n`),
    both('it is not a certificate'),
  )
  t.same(
    await crt(`-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n`),
    both('it is not a certificate'),
  )

  t.same(await pem(''), ['Secret ns/a: tls.key is empty'])
  t.same(await pem(certificate), ['Secret ns/a: tls.key holds no private key, only CERTIFICATE'])
  t.same(await pem(openssl('pkey -in IN -outform DER -out OUT', key)), [
    'Secret ns/a: tls.key is DER, not PEM: convert it with openssl pkey -inform DER',
  ])
  t.same(await pem(openssl('pkey -in IN -pubout -out OUT', key)), [
    'Secret ns/a: tls.key holds no private key, only PUBLIC KEY',
  ])
  const encrypted = 'Secret ns/a: tls.key is encrypted with a passphrase: decrypt it with openssl pkey'
  t.same(await pem(openssl('pkcs8 -topk8 -in IN -passout pass:x -out OUT', key)), [encrypted])
  t.same(await pem(openssl('rsa -in IN -traditional -aes128 -passout pass:x -out OUT', pkcs1)), [encrypted])
  t.same(await pem(key.replaceAll('PRIVATE KEY', 'OPENSSH PRIVATE KEY')), [
    "Secret ns/a: tls.key is in OpenSSH's own format: convert it with ssh-keygen -p -m PKCS8",
  ])
  t.same(await pem(oneLineLess(key)), [
    'Secret ns/a: tls.key does not parse: the PRIVATE KEY at line 1 is damaged or of an unknown algorithm',
  ])
  t.same(await pem(edited(key, (lines) => lines.slice(0, -1))), [
    'Secret ns/a: tls.key does not parse: the PRIVATE KEY at line 1: it is cut short: it has no END line',
  ])
  t.same(await pem(key.replaceAll('PRIVATE KEY', 'STRANGE PRIVATE KEY')), [
    'Secret ns/a: tls.key does not parse: STRANGE PRIVATE KEY is not a kind of key that holdfast knows',
  ])
})

await t.test('validate: certificates checks tls.crt, tls.key and all files with certificate blocks', async (t) => {
  t.same(await refused({ 'tls.crt': certificate }), ['Secret ns/a: it has tls.crt, but no tls.key'])
  t.same(await refused({ 'tls.key': key }), ['Secret ns/a: it has tls.key, but no tls.crt'])
  t.same(await refused({ token: 'x', 'ca.crt': certificate + other }), [])
  t.same(await refused({ 'ca.der': toDer(certificate) }), [], 'only tls.crt and tls.key must be PEM')
  const bundle = certificate + certificate.replace('END', 'ENDE')
  t.same(await refused({ 'bundle.txt': bundle }), [
    `bundle.txt (contents[0], Secret ns/a, key bundle.txt): certificate 2 of 2, at line ${certificate.split('\n').length}: it is cut short: it has no END line`,
  ])
  t.same(await refused({ 'values.yaml': `ca: |\n${certificate.replaceAll(/^/gm, '  ').replace('END', 'ENDE')}` }), [])
  const broken = { 'tls.crt': certificate, 'tls.key': otherKey }
  t.ok((await renderSecret(broken, [])).ready, 'nothing is refused unasked')
  const items = [{ key: 'tls.crt', path: 'renamed', mode: undefined }]
  const validate = ['certificates'] as const
  const renamed = directoryOf([whole(a, { items })], { validate })
  t.notOk((await render(renamed, lookup([present(a, broken)]), () => undefined)).ready, 'renamed, and the key left out')
  const combined = directoryOf([combine('x', [[a, 'tls.crt']])], { validate })
  t.notOk((await render(combined, lookup([present(a, broken)]), () => undefined)).ready, 'in a combined file')
  const config = directoryOf([whole(b)], { validate })
  t.ok((await render(config, lookup([present(b, broken)]), () => undefined)).ready, 'a ConfigMap holds no pair')
  const kept = [keptOf(a, { 'tls.crt': certificate.replace('END', 'ENDE') })]
  const optional = directoryOf([whole(a, { optional: true })], { validate })
  t.ok((await render(optional, lookup([absent(a)]), lookup(kept))).ready, 'what is published already is not refused')
})

await t.test('dates warn, and never block', async (t) => {
  const day = 86_400_000
  const longer = makeCertificate(key, { days: 300 })
  const data = { 'tls.crt': certificate + longer, 'tls.key': key, text: 'x' }
  for (const validate of [[], ['certificates']] as const) {
    const rendering = await renderSecret(data, validate)
    t.ok(rendering.ready)
    if (!rendering.ready) continue
    t.same(rendering.warnings, [])
    const [date, ...more] = rendering.certificates
    t.same(more, [])
    t.equal(date?.file, 'tls.crt')
    const left = (date?.notAfter.getTime() ?? 0) - now.getTime()
    t.ok(left > 29 * day && left < 31 * day, 'the earliest end counts')
  }
  const expired = await renderSecret(data, ['certificates'], new Date(now.getTime() + 40 * day))
  t.ok(expired.ready)
  t.match(expired.ready && expired.warnings, [
    { reason: 'CertificateExpired', message: /^tls.crt: a certificate expired at \d{4}-\d\d-\d\dT/ },
  ])
  const early = await renderSecret(data, ['certificates'], new Date(0))
  t.match(early.ready && early.warnings, [
    {
      reason: 'CertificateExpired',
      message: /^tls.crt: a certificate is not valid before .*: is this node's clock right\?$/,
    },
  ])
})

await t.test('a bad block of a combined file is the fault of the object that gave it', async (t) => {
  const bad = certificate.replace('END', 'ENDE')
  const faultOf = async (...from: Parameters<typeof combine>[1]) => {
    const directory = directoryOf([combine('all.pem', from)], { validate: ['certificates'] })
    const latest = lookup([present(a, { 'ca.crt': bad }), present(b, { 'ca.crt': certificate })])
    const rendering = await render(directory, latest, () => undefined, now)
    return rendering.ready ? [] : rendering.findings.map(({ reference }) => reference)
  }
  t.same(await faultOf([a, 'ca.crt']), [a])
  t.same(await faultOf([b, 'ca.crt'], [a, 'ca.crt']), [undefined], 'it cannot be reported which')
})

await t.test('validate: bundle refuses a key without a certificate, in its words', async (t) => {
  const validate = [{ bundle: 'ca.crt' }]
  const said = async (content: string | Uint8Array): Promise<readonly string[]> => {
    const rendering = await render(
      directoryOf([whole(b)], { validate }),
      lookup([present(b, { 'ca.crt': content, other: '' })]),
      () => undefined,
      now,
    )
    if (rendering.ready) return []
    for (const { reason, reference } of rendering.findings)
      t.match({ reason, reference }, { reason: 'CertificateInvalid', reference: b })
    return rendering.findings.map(({ message }) =>
      message.replace('; validate asks for a bundle of certificates in it', ''),
    )
  }
  t.same(await said(certificate), [])
  t.same(await said(`# of the cluster\n${certificate}${other}`), [], 'words between are no block')
  const rows: [string | Uint8Array, string][] = [
    ['', 'is empty'],
    ['\n', 'holds no PEM block'],
    ['<html><body>Sign in</body></html>', 'holds no PEM block'],
    [toDer(certificate), 'is DER, not PEM: convert it with openssl x509 -inform DER'],
    [key, 'holds no certificate, only PRIVATE KEY'],
    [certificate.slice(0, 200), 'does not parse: the certificate at line 1: it is cut short: it has no END line'],
    [
      `${certificate} ${other}`,
      `does not parse: the certificate at line ${certificate.split('\n').length}: its BEGIN line has spaces before it: Go reads nothing of it`,
    ],
  ]
  for (const [content, problem] of rows) t.same(await said(content), [`ConfigMap ns/b: ca.crt ${problem}`], problem)
})

await t.test('validate: bundle looks at each part of a combined file, and at published keys alone', async (t) => {
  const validate = [{ bundle: 'ca.crt' }]
  const c = configMap('c')
  const messages = async (
    contents: Parameters<typeof directoryOf>[0],
    ...objects: ReturnType<typeof present>[]
  ): Promise<readonly string[]> => {
    const rendering = await render(directoryOf(contents, { validate }), lookup(objects), () => undefined, now)
    return rendering.ready ? [] : rendering.findings.map(({ message }) => message)
  }
  const both = combine('all.pem', [
    [b, 'ca.crt'],
    [c, 'ca.crt'],
  ])
  t.same(await messages([both], present(b, { 'ca.crt': certificate }), present(c, { 'ca.crt': other })), [])
  t.matchOnly(await messages([both], present(b, { 'ca.crt': certificate }), present(c, { 'ca.crt': '' })), [
    /^ConfigMap ns\/c: ca\.crt is empty;/,
  ])
  const items = [{ key: 'tls.crt', path: 'ca.crt', mode: undefined }]
  const issuer = present(a, { 'tls.crt': certificate, 'ca.crt': '' })
  const bundle = [whole(b, { into: 'ca' }), whole(a, { items })]
  t.same(
    await messages(bundle, present(b, { 'ca.crt': other }), issuer),
    [],
    "an ACME issuer's empty ca.crt is not published",
  )
  const nowhere = 'no file of it comes from a key ca.crt, which validate asks for as a bundle'
  t.same(await messages([whole(a, { items })], issuer), [nowhere])
  const optional = [whole(a, { items }), whole(b, { optional: true, into: 'ca' })]
  t.same(await messages(optional, issuer, absent(b)), [], 'the object that has it is optional, and absent')
})
