/** The choice of a kubeconfig and of its context, and the meaning of its paths. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadClusterAccess } from '../../../src/kubernetes/credentials/cluster-access.js'
import { base64, kubeconfig } from './kubeconfig-text.js'
import { authority, client, directory, file, load, fault } from './kubeconfig-scene.js'

void t.test('loadClusterAccess takes the named context', async (t) => {
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

void t.test('loadClusterAccess names an unreadable file', async (t) => {
  const missing = join(directory.path, 'missing')
  const said = await fault(loadClusterAccess({ kubeconfig: missing, environment: {} }))
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
  const access = await loadClusterAccess({ kubeconfig: join(nested, 'config'), environment: {} })
  t.match(await access.current(), {
    authority: authority.certificate,
    certificate: { chain: client.certificate, key: client.key },
    headers: { authorization: 'Bearer from-file' },
  })
})

void t.test('loadClusterAccess finds the kubeconfig where kubectl does', async (t) => {
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
    const access = await loadClusterAccess({ environment, serviceAccount: at('pod'), ...options })
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
