import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadClusterAccess } from '../../../src/objects/kubernetes/cluster-access.js'
import { KubeconfigError } from '../../../src/objects/kubernetes/kubeconfig-file.js'
import { issue, makeAuthority, temporaryDirectory } from './certificates.js'
import { base64, kubeconfig } from './kubeconfig-text.js'

const authority = makeAuthority('authority')
const client = issue(authority, { name: 'node' })
const other = issue(authority, { name: 'other' })
const directory = temporaryDirectory()
t.teardown(directory.remove)
const file = join(directory.path, 'kubeconfig')
const CANARY = 'canary-value-of-a-secret'

const cluster = {
  server: 'https://127.0.0.1:6443',
  'certificate-authority-data': base64(authority.certificate),
}
const v1 = { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Never' }
const pair = { 'client-certificate-data': base64(client.certificate), 'client-key-data': base64(client.key) }

function load(text: string, context?: string) {
  writeFileSync(file, text)
  return loadClusterAccess({ kubeconfig: file, context, environment: {} })
}

async function fault(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof KubeconfigError) return error.message
    throw error
  }
  return 'no fault'
}

const user = (fields: object) => kubeconfig(cluster, fields)
const server = (fields: object) => kubeconfig({ ...cluster, ...fields }, { token: 'x' })
const exec = (fields: object) => user({ exec: { ...v1, ...fields } })
const encrypted = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'
const brokenCertificate = `-----BEGIN CERTIFICATE-----\n${base64(CANARY)}\n-----END CERTIFICATE-----\n`

/** Content of the file, and the message without the file's name before it. */
const malformed: [string, string, string][] = [
  ['empty', '', ': is empty; a kubeconfig is expected'],
  ['a word', CANARY, ': must be a mapping, not a string'],
  ['a list', '- a', ': must be a mapping, not a list'],
  ['broken YAML', `users:\n- name: "${CANARY}\n`, ':3:1: not valid YAML (MISSING_CHAR)'],
  ['a duplicate key', `kind: Config\nkind: ${CANARY}\n`, ':2:1: not valid YAML (DUPLICATE_KEY)'],
  ['two documents', 'kind: Config\n---\nkind: Config\n', ':3:1: it holds several documents; one is read'],
  ['broken JSON', `{"users": ${CANARY}`, ': not valid JSON'],
  ['an undefined alias', 'users: *nobody\n', ':1:1: not valid YAML (an unknown alias, or too many aliases)'],
  [
    'an alias bomb',
    `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n`,
    ':1:1: not valid YAML (an unknown alias, or too many aliases)',
  ],
  ['another kind', 'kind: Pod\napiVersion: v1\n', ': kind: must be Config; this is not a kubeconfig'],
  ['another version', 'kind: Config\napiVersion: v2\n', ': apiVersion: must be v1'],
  ['clusters a mapping', 'clusters: {a: b}\n', ': clusters: must be a list, not a mapping'],
  ['a user without a name', 'users: [{user: {}}]\n', ': users[0].name: is missing'],
  [
    'a user that is a string',
    `users: [{name: a, user: ${CANARY}}]\n`,
    ': users[0].user: must be a mapping, not a string',
  ],
  ['two of a name', 'contexts: [{name: a}, {name: a}]\n', ': contexts[1].name: contexts[0] has the same name'],
  ['no current context', 'contexts: [{name: a}, {name: b}]\n', ': current-context: is not set; contexts: a, b'],
  ['no contexts', 'kind: Config\n', ': current-context: is not set; the file has no contexts'],
  [
    'a current context that is not there',
    'current-context: c\ncontexts: [{name: a}, {name: b}]\n',
    ': current-context: there is no context "c"; contexts: a, b',
  ],
  [
    'a cluster that is not there',
    'current-context: a\ncontexts: [{name: a, context: {cluster: x, user: y}}]\nclusters: [{name: z}]\n',
    ': contexts[0].context.cluster: there is no cluster "x"; clusters: z',
  ],
  [
    'no user',
    'current-context: a\ncontexts: [{name: a, context: {cluster: x}}]\nclusters: [{name: x, cluster: {server: "https://a"}}]\n',
    ': contexts[0].context.user: is missing',
  ],
  ['no server', server({ server: null }), ': clusters[0].cluster.server: is missing'],
  ['a server that is no URL', server({ server: 'https://a b' }), ': clusters[0].cluster.server: not a URL'],
  [
    'a server without a scheme',
    server({ server: 'api:6443' }),
    ': clusters[0].cluster.server: must start with https:// or http://',
  ],
  [
    'a server with a password',
    server({ server: `https://u:${CANARY}@h` }),
    ': clusters[0].cluster.server: must not hold a user name or password',
  ],
  [
    'a server with a query',
    server({ server: 'https://h?a=b' }),
    ': clusters[0].cluster.server: must not hold a query or a fragment',
  ],
  [
    'an authority that is not base64',
    server({ 'certificate-authority-data': `${CANARY}!` }),
    ': clusters[0].cluster.certificate-authority-data: not base64',
  ],
  [
    'an authority that is not PEM',
    server({ 'certificate-authority-data': base64(CANARY) }),
    ': clusters[0].cluster.certificate-authority-data: holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)',
  ],
  [
    'a broken certificate',
    server({ 'certificate-authority-data': base64(authority.certificate + brokenCertificate) }),
    ': clusters[0].cluster.certificate-authority-data: certificate 2 of 2 cannot be parsed',
  ],
  [
    'authority twice',
    server({ 'certificate-authority': 'ca.crt' }),
    ': clusters[0].cluster.certificate-authority-data: certificate-authority is set too; keep one of the two',
  ],
  [
    'insecure with an authority',
    server({ 'insecure-skip-tls-verify': true }),
    ': clusters[0].cluster.insecure-skip-tls-verify: contradicts certificate-authority; keep one of the two',
  ],
  [
    'a flag in quotes',
    server({ 'insecure-skip-tls-verify': 'true' }),
    ': clusters[0].cluster.insecure-skip-tls-verify: must be true or false, not a string',
  ],
  [
    'a SOCKS proxy',
    server({ 'proxy-url': `socks5://u:${CANARY}@p` }),
    ': clusters[0].cluster.proxy-url: SOCKS proxies are not supported; use one that starts with http:// or https://',
  ],
  ['a proxy that is no URL', server({ 'proxy-url': CANARY }), ': clusters[0].cluster.proxy-url: not a URL'],
  [
    'a missing authority file',
    kubeconfig({ server: 'https://h', 'certificate-authority': 'none.crt' }, { token: 'x' }),
    `: clusters[0].cluster.certificate-authority: cannot read ${directory.path}/none.crt (ENOENT)`,
  ],
  [
    'a number as token',
    user({ token: 12345 }),
    ': users[0].user.token: must be a string, not a number; put it in quotes',
  ],
  [
    'a token of two lines',
    user({ token: `${CANARY}\nx` }),
    ': users[0].user.token: holds characters that no token has (spaces, line breaks, …)',
  ],
  [
    'a directory as token file',
    user({ tokenFile: '.' }),
    `: users[0].user.tokenFile: ${directory.path} is not a regular file`,
  ],
  [
    'a certificate that is not base64',
    user({ ...pair, 'client-certificate-data': CANARY }),
    ': users[0].user.client-certificate-data: not base64',
  ],
  [
    'a certificate alone',
    user({ 'client-certificate-data': base64(client.certificate) }),
    ': users[0].user: client-certificate is set without client-key',
  ],
  [
    'a key alone',
    user({ 'client-key-data': base64(client.key) }),
    ': users[0].user: client-key is set without client-certificate',
  ],
  [
    'a key of another',
    user({ ...pair, 'client-key-data': base64(other.key) }),
    ': users[0].user.client-key-data: does not match the client certificate',
  ],
  [
    'an encrypted key',
    user({ ...pair, 'client-key-data': base64(encrypted) }),
    ': users[0].user.client-key-data: the private key is encrypted; give it without a passphrase',
  ],
  [
    'certificate and key exchanged',
    user({ ...pair, 'client-key-data': base64(client.certificate) }),
    ': users[0].user.client-key-data: holds no private key in PEM form (-----BEGIN … PRIVATE KEY-----)',
  ],
  ['a password alone', user({ password: CANARY }), ': users[0].user.password: is set without username'],
  [
    'two ways to log in',
    user({ token: CANARY, username: 'a', password: CANARY }),
    ': users[0].user: token and username are both set; keep one of them',
  ],
  [
    'groups without a user',
    user({ 'as-groups': ['a'] }),
    ': users[0].user.as: is missing, and as-uid, as-groups or as-user-extra are set',
  ],
  [
    'auth-provider',
    user({ 'auth-provider': { name: 'gcp', config: { 'access-token': CANARY } } }),
    ': users[0].user.auth-provider: auth-provider is not supported (Kubernetes removed it in 1.26); use exec with a credential plugin, or a token or client certificate',
  ],
  ['exec without a version', exec({ apiVersion: '' }), ': users[0].user.exec.apiVersion: is missing'],
  [
    'exec of an old version',
    exec({ apiVersion: 'client.authentication.k8s.io/v1alpha1' }),
    ': users[0].user.exec.apiVersion: must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1',
  ],
  ['exec without a command', exec({ command: '' }), ': users[0].user.exec.command: is missing'],
  [
    'exec without a mode',
    exec({ interactiveMode: null }),
    ': users[0].user.exec.interactiveMode: is missing; Never or IfAvailable',
  ],
  [
    'an interactive exec',
    exec({ interactiveMode: 'Always' }),
    ': users[0].user.exec.interactiveMode: is Always, and there is no terminal to ask on; only Never and IfAvailable are supported',
  ],
  [
    'an exec argument that is a number',
    exec({ args: ['a', 1] }),
    ': users[0].user.exec.args[1]: must be a string, not a number; put it in quotes',
  ],
  [
    'an exec variable without a name',
    exec({ env: [{ value: CANARY }] }),
    ': users[0].user.exec.env[0].name: is missing',
  ],
]

void t.test('malformed kubeconfigs: file, field, what is wrong, and never a value', async (t) => {
  for (const [name, text, message] of malformed) {
    const said = await fault(load(text))
    t.equal(said, `${file}${message}`, name)
    t.notMatch(said, CANARY)
  }
})

void t.test('a context that is asked for', async (t) => {
  const text = `
apiVersion: v1
kind: Config
current-context: gone
clusters:
- {name: c1, cluster: {server: "https://one:6443"}}
- {name: c2, cluster: {server: "http://two:8080/base"}}
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
  t.equal(snapshot.server.href, 'http://two:8080/base')
  t.strictSame(snapshot.headers, {
    authorization: `Basic ${base64('me:pass')}`,
    'impersonate-user': 'other',
    'impersonate-group': ['g1', 'g2'],
    'impersonate-extra-scopes%2fx': ['a'],
  })
})

void t.test('a file that cannot be read', async (t) => {
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

void t.test('where a kubeconfig comes from', async (t) => {
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
