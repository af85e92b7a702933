/** A server without TLS, which records its requests: it gets no credential of any kubeconfig. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import type { Log } from '../../../src/log.js'
import { json, startServer, type ApiServer, type Seen, type ServerOptions } from '../connection/api-server.js'
import { issue, temporaryDirectory } from '../connection/certificates.js'
import { authority, once, serving } from '../connection/connected.js'
import { base64, kubeconfig, loadKubeconfig } from './kubeconfig-text.js'

const CANARY = 'canary-of-a-credential'
const client = issue(authority, { name: 'node' })
const trust = { 'certificate-authority-data': base64(authority.certificate) }

/** A directory for one test's files, and its warnings. */
function scene(t: Test) {
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const warnings: string[] = []
  const ignore = (): void => undefined
  const log: Log = { debug: ignore, info: ignore, error: ignore, warn: (_, message) => warnings.push(message) }
  const path = (name: string): string => join(directory.path, name)
  const open = async (cluster: object, user: object) => {
    const environment = { PATH: process.env['PATH'] }
    const access = await loadKubeconfig(directory.path, kubeconfig(cluster, user), { log, environment })
    const api = connect(access, { version: '1' })
    t.teardown(() => api.close())
    return api
  }
  return { path, warnings, open }
}

async function serve(t: Test, protocol: 'http' | 'h2'): Promise<ApiServer> {
  const running = await startServer({ serving, protocol })
  t.teardown(() => running.close())
  return running
}

/** Headers that could hold a credential; and everything that was received must be free of the canary. */
function credentialsIn(requests: readonly Seen[]): unknown[] {
  const named = requests.map(({ headers }) => headers['authorization'] ?? headers['proxy-authorization'])
  const canaries = JSON.stringify(requests).match(/canary[^"]*/g) ?? []
  return [...named.filter((value) => value !== undefined), ...canaries]
}

/** A plugin that notes its run, and prints a token. */
function plugin(path: string): object {
  const apiVersion = 'client.authentication.k8s.io/v1'
  const credential = JSON.stringify({ kind: 'ExecCredential', apiVersion, status: { token: CANARY } })
  writeFileSync(path, `#!/bin/sh\ntouch ${path}.ran\necho '${credential}'\n`)
  chmodSync(path, 0o755)
  return { exec: { apiVersion, command: path, interactiveMode: 'Never' } }
}

const pair = { 'client-certificate-data': base64(client.certificate), 'client-key-data': base64(client.key) }

interface Case {
  readonly name: string
  /** As the warning calls it. */
  readonly called: string
  readonly user: (path: (name: string) => string) => object
}

const cases: readonly Case[] = [
  { name: 'a token', called: 'token', user: () => ({ token: CANARY }) },
  {
    name: 'a token in a file',
    called: 'token',
    user: (path) => {
      writeFileSync(path('token'), CANARY)
      return { tokenFile: path('token') }
    },
  },
  { name: 'basic', called: 'password', user: () => ({ username: 'canary', password: CANARY }) },
  { name: 'a credential plugin', called: 'credential plugin', user: (path) => plugin(path('plugin')) },
  { name: 'a client certificate', called: 'client certificate', user: () => pair },
]

for (const { name, called, user } of cases) {
  await t.test(`without TLS, the client holds ${name} back, with one warning`, async (t) => {
    const running = await serve(t, 'http')
    const { path, warnings, open } = scene(t)
    const api = await open({ server: running.url }, user(path))
    for (const at of ['/one', '/two']) t.equal((await api.get(at, {}, once)).status, 200)
    t.strictSame(
      running.requests.map(({ path: asked }) => asked),
      ['/one', '/two'],
    )
    t.strictSame(credentialsIn(running.requests), [])
    t.notOk(existsSync(`${path('plugin')}.ran`), 'the plugin is not run')
    t.equal(warnings.length, 1, warnings.join('\n'))
    t.match(warnings[0], new RegExp(`${running.url}.* no TLS.* ${called} .*https://.*kubectl proxy`))
    t.notMatch(warnings[0], /canary/)
    t.equal(api.clientCertificateNotAfter(), undefined)
  })
}

await t.test('kubectl proxy gets no credentials, and no warning; impersonation is no credential', async (t) => {
  const running = await serve(t, 'http')
  const { warnings, open } = scene(t)
  t.equal((await (await open({ server: running.url }, {})).get('/path', {}, once)).status, 200)
  t.equal((await (await open({ server: running.url }, { as: 'other' })).get('/path', {}, once)).status, 200)
  t.equal(running.requests[1]?.headers['impersonate-user'], 'other', 'as client-go sends it')
  t.strictSame(warnings, [])
})

await t.test('a kubeconfig that changes to http loses the token, and gets it back with https', async (t) => {
  const [secure, plain] = [await serve(t, 'h2'), await serve(t, 'http')]
  const { path, warnings, open } = scene(t)
  const text = (cluster: object): string => kubeconfig(cluster, { token: CANARY })
  const api = await open({ server: secure.url, ...trust }, { token: CANARY })
  const ask = async (): Promise<number> => (await api.get('/path', {}, once)).status
  t.equal(await ask(), 200)
  for (let round = 1; round <= 2; round++) {
    writeFileSync(path('kubeconfig'), text({ server: plain.url }))
    t.equal(await ask(), 200)
    t.equal(plain.requests.length, round, 'it has asked the server without TLS')
    t.equal(warnings.length, round, 'each time that it begins')
    writeFileSync(path('kubeconfig'), text({ server: secure.url, ...trust }))
    t.equal(await ask(), 200)
  }
  t.strictSame(credentialsIn(plain.requests), [])
  const shown = secure.requests.map(({ headers }) => headers['authorization'])
  t.strictSame(shown, Array(3).fill(`Bearer ${CANARY}`))
})

await t.test('the client follows no redirection to another server', async (t) => {
  const plain = await serve(t, 'http')
  for (const status of [301, 302, 303, 307, 308]) {
    for (const protocol of ['h2', 'https'] as const) {
      const handler: ServerOptions['handler'] = (_, reply) => json(reply, status, {}, { location: `${plain.url}/away` })
      const running = await startServer({ serving, protocol, handler })
      t.teardown(() => running.close())
      const { open } = scene(t)
      const api = await open({ server: running.url, ...trust }, { token: CANARY })
      t.equal((await api.get('/path', {}, once)).status, status)
      t.equal((await api.stream('/path', { watch: '1' }, once)).status, status)
      t.equal(running.requests[0]?.headers['authorization'], `Bearer ${CANARY}`)
    }
  }
  t.strictSame(plain.requests, [])
})

void t.test('a kubeconfig that skips the look at the certificate is warned of once', async (t) => {
  const { warnings, open } = scene(t)
  const running = await serve(t, 'h2')
  const api = await open({ server: running.url, 'insecure-skip-tls-verify': true }, { token: CANARY })
  for (let asked = 0; asked < 2; asked++) await api.get('/version', {}, once)
  t.equal(warnings.length, 1)
  t.match(warnings[0], /insecure-skip-tls-verify is set: any program on the way can answer as https:/)
})
