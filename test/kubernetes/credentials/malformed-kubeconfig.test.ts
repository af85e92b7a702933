/** Each mistake that a kubeconfig can hold, and its message. */
import t from 'tap'
import { base64, kubeconfig } from './kubeconfig-text.js'
import { client, other, directory, file, CANARY, pair, load, fault, user, server, exec } from './kubeconfig-scene.js'

const encrypted = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'
const brokenCertificate = `-----BEGIN CERTIFICATE-----\n${base64(CANARY)}\n-----END CERTIFICATE-----\n`

/** Content of the file, and the message without the file's name before it. */
const malformed: [string, string, string][] = [
  ['empty', '', ': is empty; a kubeconfig is expected'],
  ['a word', CANARY, ': must be a mapping, not a string'],
  ['a list', '- a', ': must be a mapping, not a list'],
  ['broken YAML', `users:\n- name: "${CANARY}\n`, ':3:1: not valid YAML (MISSING_CHAR)'],
  ['a duplicate key', `kind: Config\nkind: ${CANARY}\n`, ':2:1: a field stands twice in one map: remove one of them'],
  [
    'two documents',
    'kind: Config\n---\nkind: Config\n',
    ':3:1: it holds several documents, of which Kubernetes reads only the first: keep one',
  ],
  ['broken JSON', `{"users": ${CANARY}`, ':1:35: not valid YAML (MISSING_CHAR)'],
  ['an undefined alias', 'users: *nobody\n', ':1:8: not valid YAML (an unknown alias, or too many aliases)'],
  [
    'an alias bomb',
    `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n`,
    ':1:18: not valid YAML (an unknown alias, or too many aliases)',
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
  ['no server', server({ server: null }), ': clusters[0].cluster.server: is missing'],
  ['a server that is no URL', server({ server: 'https://a b' }), ': clusters[0].cluster.server: not a URL'],
  [
    'a server of another scheme',
    server({ server: 'ftp://api:6443' }),
    ': clusters[0].cluster.server: must start with https:// or http://',
  ],
  [
    'a server without a scheme, with a path',
    server({ server: 'api:6443/base' }),
    ': clusters[0].cluster.server: needs http:// or https:// before a path',
  ],
  [
    'a server with a password',
    server({ server: `https://u:${CANARY}@h` }),
    ': clusters[0].cluster.server: must not hold a user name or password',
  ],
  [
    'a server with a fragment',
    server({ server: 'https://h#a' }),
    ': clusters[0].cluster.server: must not hold a fragment',
  ],
  [
    'an authority that is not base64',
    server({ 'certificate-authority-data': `${CANARY}!` }),
    ': clusters[0].cluster.certificate-authority-data: not base64',
  ],
  [
    'an authority that is not PEM',
    server({ 'certificate-authority-data': base64(CANARY) }),
    ': clusters[0].cluster.certificate-authority-data: holds no certificate in PEM form (-----BEGIN CERTIFICATE-----) that can be read',
  ],
  [
    'a broken certificate',
    server({ 'certificate-authority-data': base64(brokenCertificate) }),
    ': clusters[0].cluster.certificate-authority-data: holds no certificate in PEM form (-----BEGIN CERTIFICATE-----) that can be read',
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
    ': users[0].user.client-key-data: is encrypted with a passphrase: decrypt it with openssl pkey',
  ],
  [
    'certificate and key exchanged',
    user({ ...pair, 'client-key-data': base64(client.certificate) }),
    ': users[0].user.client-key-data: holds no private key, only CERTIFICATE',
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

void t.test('an error of a malformed kubeconfig names file, field and fault, and never a value', async (t) => {
  for (const [name, text, message] of malformed) {
    const said = await fault(load(text))
    t.equal(said, `${file}${message}`, name)
    t.notMatch(said, CANARY)
  }
})
