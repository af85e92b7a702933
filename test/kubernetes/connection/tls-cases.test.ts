/** Which servers the client trusts, certificate by certificate: the names and the uses for which an authority has signed. */
import t from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { base64, kubeconfig, loadKubeconfig } from '../credentials/kubeconfig-text.js'
import { startServer } from './api-server.js'
import { issue, makeAuthority, temporaryDirectory, type Pair, type Subject } from './certificates.js'
import { authority, failure, once } from './connected.js'

const other = makeAuthority('other')
const isAuthority = ['basicConstraints=critical,CA:TRUE']
const signed = (more: Partial<Subject>): Pair => issue(authority, { name: 'server', ...more })
const named = (alternativeNames: string): Pair => signed({ alternativeNames })
const chained = (leaf: Pair, ...above: Pair[]): Pair => ({
  key: leaf.key,
  certificate: [leaf, ...above].map(({ certificate }) => certificate).join(''),
})

const address = named('IP:127.0.0.1')
const byName = named('DNS:localhost')
const api = named('DNS:api.cluster.example')
const wild = named('DNS:*.cluster.example')
const intermediate = issue(authority, { name: 'between', extensions: isAuthority })
const below = issue(intermediate, { name: 'server', alternativeNames: 'IP:127.0.0.1' })
const leaf = signed({ extensions: ['basicConstraints=CA:FALSE'] })
const belowLeaf = issue(leaf, { name: 'server', alternativeNames: 'IP:127.0.0.1' })
const use = (purpose: string): Pair =>
  signed({ alternativeNames: 'IP:127.0.0.1', extensions: [`extendedKeyUsage=${purpose}`] })

interface Case {
  readonly of: string
  readonly serving: Pair
  /** Default: the address 127.0.0.1. */
  readonly host?: 'localhost'
  readonly cluster?: object
  /** Default: the client takes it. */
  readonly refused?: RegExp
}

const wrongName = /ERR_TLS_CERT_ALTNAME_INVALID/
const unknownSigner = /not signed by the authority that the kubeconfig names/
const as = (name: string): object => ({ 'tls-server-name': name })

const cases: readonly Case[] = [
  { of: 'the address', serving: address },
  { of: 'another address', serving: named('IP:127.0.0.2'), refused: wrongName },
  { of: 'the address as a name', serving: named('DNS:127.0.0.1'), refused: wrongName },
  { of: 'a name, asked by the address', serving: byName, refused: wrongName },
  { of: 'the name', serving: byName, host: 'localhost' },
  { of: 'the name in capitals', serving: named('DNS:LOCALHOST'), host: 'localhost' },
  { of: 'the address, asked by the name', serving: address, host: 'localhost', refused: wrongName },
  { of: 'one of several names', serving: named('DNS:a.example,DNS:localhost,IP:10.0.0.1'), host: 'localhost' },
  {
    of: 'a common name beside another name',
    serving: issue(authority, { name: 'localhost', alternativeNames: 'DNS:x' }),
    host: 'localhost',
    refused: wrongName,
  },
  { of: 'an address of the Web', serving: named('URI:https://127.0.0.1/'), refused: wrongName },
  { of: 'tls-server-name', serving: api, cluster: as('api.cluster.example') },
  { of: 'another tls-server-name', serving: api, cluster: as('api.other.example'), refused: wrongName },
  {
    of: 'the address in place of the tls-server-name',
    serving: address,
    cluster: as('api.cluster.example'),
    refused: wrongName,
  },
  { of: 'an address as tls-server-name', serving: address, host: 'localhost', cluster: as('127.0.0.1') },
  { of: 'a wildcard', serving: wild, cluster: as('api.cluster.example') },
  { of: 'a wildcard for two labels', serving: wild, cluster: as('a.b.cluster.example'), refused: wrongName },
  { of: 'a wildcard for no label', serving: wild, cluster: as('cluster.example'), refused: wrongName },
  {
    of: 'a wildcard in the middle',
    serving: named('DNS:api.*.example'),
    cluster: as('api.cluster.example'),
    refused: wrongName,
  },
  { of: 'nothing but a wildcard', serving: named('DNS:*'), host: 'localhost', refused: wrongName },
  { of: 'a use for clients alone', serving: use('clientAuth'), refused: /INVALID_PURPOSE/ },
  { of: 'a use for clients and servers', serving: use('clientAuth,serverAuth') },
  {
    of: 'another authority',
    serving: issue(other, { name: 'server', alternativeNames: 'IP:127.0.0.1' }),
    refused: unknownSigner,
  },
  { of: 'an authority between, which the server sends', serving: chained(below, intermediate) },
  { of: 'an authority between, which the server leaves out', serving: below, refused: unknownSigner },
  {
    of: 'a signer that is no authority',
    serving: chained(belowLeaf, leaf),
    refused: /INVALID_PURPOSE/,
  },
  {
    of: 'another authority, unverified',
    serving: issue(other, { name: 'x' }),
    cluster: { 'insecure-skip-tls-verify': true },
  },
]

async function attempt({ serving, host, cluster = {} }: Case): Promise<number> {
  const directory = temporaryDirectory()
  const server = await startServer({ serving })
  const insecure = 'insecure-skip-tls-verify' in cluster
  const trust = insecure ? {} : { 'certificate-authority-data': base64(authority.certificate) }
  const url = host ? server.url.replace('127.0.0.1', host) : server.url
  const access = await loadKubeconfig(directory.path, kubeconfig({ server: url, ...trust, ...cluster }, {}))
  const client = connect(access, { version: '1' })
  try {
    const { status } = await client.get('/', {}, once)
    return status
  } finally {
    await client.close()
    await server.close()
    directory.remove()
  }
}

for (const one of cases) {
  const verb = one.refused ? 'refuses' : 'takes'
  void t.test(`the client ${verb} a server's certificate for ${one.of}`, async (t) => {
    if (one.refused === undefined) t.equal(await attempt(one), 200)
    else t.match(await failure(attempt(one)), { reason: 'connection', message: one.refused })
  })
}
