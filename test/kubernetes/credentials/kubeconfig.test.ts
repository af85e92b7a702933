/** The choice of a kubeconfig and of its context, and the meaning of its paths. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Credentials } from '../../../src/kubernetes/credentials/credentials.js'
import { silent } from '../../../src/log.js'
import { Trust } from '../../../src/trust.js'
import { scratch } from '../../durable/scratch.js'
import { base64, kubeconfig, loadKubeconfig } from './kubeconfig-text.js'
import { authority, client, directory, file, load, fault } from './kubeconfig-scene.js'

void t.test('Credentials takes the named context', async (t) => {
  const text = `
apiVersion: v1
kind: Config
current-context: gone
clusters:
- {name: c1, cluster: {server: "https://one:6443"}}
- {name: c2, cluster: {server: "https://two:8080/base"}}
users:
- name: u1
  user: {auth-provider: {name: gcp}}
- name: u2
  user: {username: me, password: pass, as: other, as-groups: [g1, g2], as-user-extra: {scopes/x: [a]}}
contexts:
- {name: a, context: {cluster: c1, user: u1}}
- {name: b, context: {cluster: c2, user: u2, namespace: ns}}
`
  t.equal(await fault(load(text, 'c')), `${file}: there is no context "c"; contexts: a, b`)
  const access = await load(text, 'b')
  t.equal(access.namespace, 'ns')
  const snapshot = await access.current()
  t.equal(snapshot.server.href, 'https://two:8080/base')
  t.strictSame(snapshot.headers, {
    authorization: `Basic ${base64('me:pass')}`,
    'impersonate-user': 'other',
    'impersonate-group': ['g1', 'g2'],
    'impersonate-extra-scopes%2fx': ['a'],
  })
})

void t.test('a server without a scheme is plain http, and its query is dropped, as client-go has it', async (t) => {
  for (const [server = '', expected] of [
    ['api:6443', 'http://api:6443/'],
    ['127.0.0.1:8001', 'http://127.0.0.1:8001/'],
    ['[::1]:8001/', 'http://[::1]:8001/'],
    ['localhost', 'http://localhost/'],
    ['127.0.0.1:8001?a=b', 'http://127.0.0.1:8001/'],
    ['127.0.0.1:8001?a=http://b', 'http://127.0.0.1:8001/'],
    ['HTTPS://api:6443/base?a=b', 'https://api:6443/base'],
  ]) {
    const access = await load(kubeconfig({ server }, {}))
    t.equal((await access.current()).server.href, expected)
  }
})

void t.test('Credentials names an unreadable file', async (t) => {
  const missing = join(directory.path, 'missing')
  const said = await fault(new Credentials({ kubeconfig: missing, environment: {} }).load())
  t.equal(said, `cannot read ${missing} (ENOENT)`)
})

void t.test('relative paths count from the directory of the file', async (t) => {
  const nested = join(directory.path, 'nested')
  mkdirSync(join(nested, 'pki'), { recursive: true })
  writeFileSync(join(nested, 'pki', 'ca.crt'), authority.certificate)
  writeFileSync(join(nested, 'pki', 'c.crt'), client.certificate)
  writeFileSync(join(nested, 'pki', 'c.key'), client.key)
  writeFileSync(join(nested, 'token'), 'from-file\n')
  const text = kubeconfig(
    { server: 'https://h', 'certificate-authority': 'pki/ca.crt' },
    { 'client-certificate': 'pki/c.crt', 'client-key': 'pki/c.key', tokenFile: 'token', token: 'beside' },
  )
  writeFileSync(join(nested, 'config'), text)
  const access = await new Credentials({ kubeconfig: join(nested, 'config'), environment: {} }).load()
  t.match(await access.current(), {
    authority: authority.certificate,
    certificate: { chain: client.certificate, key: client.key },
    headers: { authorization: 'Bearer from-file' },
  })
})

void t.test('Credentials finds the kubeconfig where kubectl does', async (t) => {
  const at = (name: string) => join(directory.path, name)
  const one = (url: string, name = 'main') =>
    kubeconfig({ server: url }, { token: name }).replaceAll('"main"', `"${name}"`)
  writeFileSync(at('first'), one('https://first'))
  writeFileSync(at('second'), one('https://second', 'more'))
  mkdirSync(at('.kube'), { recursive: true })
  writeFileSync(at('.kube/config'), one('https://home'))
  mkdirSync(at('pod'), { recursive: true })
  writeFileSync(at('pod/ca.crt'), authority.certificate)
  writeFileSync(at('pod/token'), 'pod-token')
  writeFileSync(at('pod/namespace'), 'pod-namespace\n')
  const pod = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  const home = { HOME: directory.path }
  const listed = { KUBECONFIG: `${at('absent')}:${at('first')}:${at('second')}` }
  const from = async (environment: Record<string, string>, options: object = {}) => {
    const access = await new Credentials({ environment, serviceAccount: at('pod'), ...options }).load()
    return { access, server: (await access.current()).server.href }
  }
  const all = { ...pod, ...home, ...listed }
  t.match(await from(all, { kubeconfig: at('second') }), { server: 'https://second/' })
  t.match(await from(all), { server: 'https://first/' }, 'the first to name a context wins')
  // Both files define a cluster "c"; the first one's counts.
  t.match(await from(all, { context: 'more' }), { server: 'https://first/' })
  const inCluster = await from({ ...pod, ...home })
  t.equal(inCluster.server, 'https://[fd00::1]/')
  t.equal(inCluster.access.namespace, 'pod-namespace')
  t.match((await inCluster.access.current()).headers, { authorization: 'Bearer pod-token' })
  t.match(await from({ ...pod, ...home }, { context: 'main' }), { server: 'https://home/' })
  t.match(await from(home), { server: 'https://home/' })
  t.match(await from(all, { search: 'service-account' }), { server: 'https://[fd00::1]/' })

  t.match(await fault(from(home, { search: 'service-account' })), /^no kubeconfig is given, and this is not a pod/)
  t.match(await fault(from({ HOME: at('nobody') })), /^no kubeconfig found: .*there is no .*; name one with/)
  t.equal(
    await fault(from({ KUBECONFIG: `${at('x')}:${at('y')}` })),
    `KUBECONFIG: none of its files exists: ${at('x')}, ${at('y')}`,
  )
  t.equal(
    await fault(from(pod, { serviceAccount: at('no-pod') })),
    `service account: cannot read ${at('no-pod')}/ca.crt (ENOENT)`,
  )
  t.match(await fault(from(pod, { search: 'service-account', context: 'x' })), /context "x" needs a kubeconfig/)
})

void t.test('requireTrusted refuses each file that a kubeconfig names and others may write to', async (t) => {
  const at = scratch(t)
  const pair = client
  const texts = { ca: authority.certificate, certificate: pair.certificate, key: pair.key, token: 'x' }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(at, name), text, { mode: 0o600 })
  const cluster = { server: 'https://127.0.0.1:1', 'certificate-authority': 'ca' }
  const users = [{ 'client-certificate': 'certificate', 'client-key': 'key' }, { tokenFile: 'token' }]
  const trust = new Trust(silent)
  trust.required = true
  const load = (user: object) => loadKubeconfig(at, kubeconfig(cluster, user), { obey: (obeyed) => trust.obey(obeyed) })
  for (const user of users) await load(user)
  for (const [name, user] of [
    ['ca', 0],
    ['certificate', 0],
    ['key', 0],
    ['token', 1],
  ] as const) {
    chmodSync(join(at, name), 0o602)
    await t.rejects(load(users[user] ?? {}), {
      name: 'UntrustedError',
      message: /everybody may write to \S+ \(mode 0602\)/,
    })
    chmodSync(join(at, name), 0o600)
  }
})
