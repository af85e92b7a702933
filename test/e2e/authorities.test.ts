/**
 * kubectl, whose connection is client-go's, judges which servers holdfast trusts: bundles of authorities with one subject, with and without key
 * identifiers, in each order, with what cannot be read between them, and with an intermediate authority as the anchor.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { connect } from '../../src/kubernetes/connection/connection.js'
import { type ApiServer, json, startServer } from '../kubernetes/connection/api-server.js'
import { issue, makeAuthority, type Pair } from '../kubernetes/connection/certificates.js'
import { base64, kubeconfig, loadKubeconfig } from '../kubernetes/credentials/kubeconfig-text.js'
import { findProgram } from './assets.js'
import { workingDirectory } from './guard.js'

const kubectl = await findProgram('kubectl')
const directory = mkdtempSync(join(workingDirectory, 'authorities-'))
const constraints = 'basicConstraints=critical,CA:true'
const identified = (identifier: string) => [constraints, `subjectKeyIdentifier=${identifier}`]

/** Text of a bundle that is no certificate, or none that Go reads. */
const noise: Readonly<Record<string, string>> = {
  nothing: '',
  'a certificate that is cut short': cutShort(makeAuthority('cut').certificate),
  'a negative serial number': makeAuthority('negative', identified('hash'), -5).certificate,
  'bytes of another kind': `-----BEGIN CERTIFICATE-----\n${base64('no certificate at all')}\n-----END CERTIFICATE-----\n`,
  'a key of somebody': makeAuthority('key').key,
}

function cutShort(pem: string): string {
  const lines = pem.trim().split('\n')
  return [...lines.slice(0, 3), lines.at(-1), ''].join('\n')
}

function serverOf(t: Test, serving: Pair): Promise<ApiServer> {
  const handler = (_: unknown, reply: Parameters<typeof json>[0]) => json(reply, 200, { kind: 'SecretList', items: [] })
  return startServer({ serving, handler }).then((server) => {
    t.teardown(() => server.close())
    return server
  })
}

/** Whether a request of each gets through TLS. */
async function judged({ url, requests }: ApiServer, authority: string | undefined, env: NodeJS.ProcessEnv = {}) {
  const cluster = { server: url, ...(authority !== undefined && { 'certificate-authority-data': base64(authority) }) }
  const text = kubeconfig(cluster, { token: 'a-token' }, 'ns')
  const file = join(directory, 'kubeconfig')
  writeFileSync(file, text)
  const before = requests.length
  const words = ['--kubeconfig', file, '--request-timeout=10s', 'get', '--raw', '/api/v1/namespaces/ns/secrets']
  await promisify(execFile)(kubectl, words, { env: { HOME: directory, ...env } }).catch(() => undefined)
  const theirs = requests.length > before
  const own = await loadKubeconfig(directory, text).then(
    async (access) => {
      const api = connect(access, { version: '1.2.3' })
      const got = await api.get('/api/v1/namespaces/ns/secrets', {}, { timeout: 10_000 }).then(
        ({ status }) => status === 200,
        () => false,
      )
      await api.close()
      return got
    },
    () => false,
  )
  return { theirs, own }
}

await t.test('two authorities of one subject, as after a rotation', async (t) => {
  for (const old of ['none', 'hash'])
    for (const named of ['none', 'keyid']) {
      const authorities = [old, 'hash'].map((identifier) => makeAuthority('kubernetes', identified(identifier)))
      const [first, second] = authorities as [Pair, Pair]
      const extensions = [`authorityKeyIdentifier=${named}`, 'subjectKeyIdentifier=none']
      const server = await serverOf(t, issue(second, { name: 'api', alternativeNames: 'IP:127.0.0.1', extensions }))
      for (const order of [
        [first, second],
        [second, first],
      ])
        for (const [what, text] of Object.entries(noise)) {
          const bundle = order.map(({ certificate }) => certificate).join(text)
          const place = `the old one's identifier ${old}, the server's ${named}, ${order[0] === first ? 'old' : 'new'} first, between them ${what}`
          t.same(await judged(server, bundle), { theirs: true, own: true }, place)
        }
    }
})

await t.test('anchors', async (t) => {
  const root = makeAuthority('root')
  const intermediate = issue(root, { name: 'intermediate', extensions: [constraints, 'subjectKeyIdentifier=hash'] })
  const leaf = issue(intermediate, { name: 'api', alternativeNames: 'IP:127.0.0.1' })
  const chain = { ...leaf, certificate: `${leaf.certificate}${intermediate.certificate}` }
  const other = makeAuthority('other')
  const withName = issue(root, { name: 'api', alternativeNames: 'DNS:elsewhere' })
  for (const [what, serving, authority, trusted] of [
    ['the root', chain, root.certificate, true],
    ['the intermediate alone', chain, intermediate.certificate, true],
    ['the intermediate alone, and a server that sends its leaf alone', leaf, intermediate.certificate, true],
    ['the root, and a server that sends its leaf alone', leaf, root.certificate, false],
    ['the leaf itself', chain, leaf.certificate, true],
    ['another authority', chain, other.certificate, false],
    ['the root, of a server with another name', withName, root.certificate, false],
    ['only what cannot be read', chain, noise['bytes of another kind'], false],
    ['a bundle without one', chain, '# none\n', false],
  ] as const) {
    const server = await serverOf(t, serving)
    t.same(await judged(server, authority), { theirs: trusted, own: trusted }, what)
  }
})

await t.test('without an authority, the store of the system is trusted', async (t) => {
  const company = makeAuthority('company')
  const server = await serverOf(t, issue(company, { name: 'api', alternativeNames: 'IP:127.0.0.1' }))
  const store = join(directory, 'store.pem')
  writeFileSync(store, company.certificate)
  t.same(await judged(server, undefined), { theirs: false, own: false })
  process.env['SSL_CERT_FILE'] = store
  t.teardown(() => delete process.env['SSL_CERT_FILE'])
  t.same(await judged(server, undefined, { SSL_CERT_FILE: store }), { theirs: true, own: true })
})
