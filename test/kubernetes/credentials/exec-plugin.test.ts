import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { until } from '../../until.js'
import { json, startServer } from '../connection/api-server.js'
import { issue, temporaryDirectory } from '../connection/certificates.js'
import { authority, failure, once, serving } from '../connection/connected.js'
import { base64, kubeconfig, loadKubeconfig } from './kubeconfig-text.js'

const directory = temporaryDirectory()
t.teardown(directory.remove)
const CANARY = 'canary-of-the-plugin'
const v1 = 'client.authentication.k8s.io/v1'
const cluster = {
  server: 'https://127.0.0.1:6443',
  'certificate-authority-data': base64(authority.certificate),
}

let count = 0
/** A plugin in shell, which notes each run. */
function plugin(script: string) {
  count += 1
  const path = join(directory.path, `plugin-${count}`)
  writeFileSync(path, `#!/bin/sh\necho run >> ${path}.runs\n${script}\n`)
  chmodSync(path, 0o755)
  return {
    path,
    runs: () => (existsSync(`${path}.runs`) ? readFileSync(`${path}.runs`, 'utf8').trim().split('\n').length : 0),
  }
}

const print = (status: object, apiVersion = v1): string =>
  `cat <<'END'\n${JSON.stringify({ kind: 'ExecCredential', apiVersion, status })}\nEND`

const user = (command: string, fields: object = {}) => ({
  exec: { apiVersion: v1, command, interactiveMode: 'Never', ...fields },
})

function load(command: string, fields: object = {}, timing: object = {}, at: object = cluster) {
  return loadKubeconfig(directory.path, kubeconfig(at, user(command, fields)), {
    environment: { PATH: process.env['PATH'], FROM_AGENT: 'agent' },
    timing: { look: 0, ...timing },
  })
}

void t.test('the plugin gets its arguments, variables and KUBERNETES_EXEC_INFO', async (t) => {
  const out = join(directory.path, 'seen')
  const { path } = plugin(
    `printf '%s\\n' "$1" "$FROM_AGENT" "$OF_FILE" "$KUBERNETES_EXEC_INFO" > ${out}\n` +
      `read line && echo "$line" >> ${out}\n${print({ token: CANARY })}`,
  )
  const at = {
    ...cluster,
    'tls-server-name': 'api.example',
    extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } }],
  }
  const fields = { args: ['one two'], env: [{ name: 'OF_FILE', value: 'file' }], provideClusterInfo: true }
  const snapshot = await (await load(path, fields, {}, at)).current()
  t.match(snapshot.headers, { authorization: `Bearer ${CANARY}` })
  const lines = readFileSync(out, 'utf8').trim().split('\n')
  t.strictSame(lines.slice(0, 3), ['one two', 'agent', 'file'])
  t.equal(lines.length, 4, 'nothing comes on its standard input')
  t.strictSame(JSON.parse(lines[3] ?? ''), {
    kind: 'ExecCredential',
    apiVersion: v1,
    spec: {
      interactive: false,
      cluster: {
        server: 'https://127.0.0.1:6443',
        'tls-server-name': 'api.example',
        'certificate-authority-data': base64(authority.certificate),
        config: { audience: 'a' },
      },
    },
  })
  const infoOf = async (more: object, of: object) => {
    await (await load(path, { ...fields, ...more }, {}, of)).current()
    return JSON.parse(readFileSync(out, 'utf8').split('\n')[3] ?? '') as unknown
  }
  t.match(await infoOf({ provideClusterInfo: false }, cluster), { spec: { cluster: undefined } })
  const insecure = { 'insecure-skip-tls-verify': true, 'proxy-url': 'http://127.0.0.1:3128' }
  t.match(await infoOf({}, { server: cluster.server, ...insecure }), { spec: { cluster: insecure } })
})

void t.test('a plugin may use v1beta1, a command in PATH, and one beside the kubeconfig', async (t) => {
  const beta = 'client.authentication.k8s.io/v1beta1'
  const { path } = plugin(print({ token: 'beta' }, beta))
  const fields = { apiVersion: beta, interactiveMode: undefined }
  t.match((await (await load(path, fields)).current()).headers, { authorization: 'Bearer beta' })
  const relative = `./${path.split('/').pop() ?? ''}`
  t.match((await (await load(relative, fields)).current()).headers, { authorization: 'Bearer beta' })
  const inPath = await load('sh', { ...fields, args: ['-c', print({ token: 'sh' }, beta)] })
  t.match((await inPath.current()).headers, { authorization: 'Bearer sh' })
})

void t.test(
  'PATH leads a plugin to absolute directories alone, and the looked-at program is the one that runs',
  async (t) => {
    const { path } = plugin(print({ token: 'x' }))
    const name = basename(path)
    const before = process.cwd()
    process.chdir(directory.path)
    t.teardown(() => process.chdir(before))
    for (const PATH of ['', ':/usr/bin', '.:/usr/bin', '/usr/bin:']) {
      const access = await load(name, { env: [{ name: 'PATH', value: PATH }] })
      await t.rejects(access.current(), { message: /not found/ }, `PATH=${PATH}`)
    }
    const env = [{ name: 'PATH', value: `:${directory.path}:/usr/bin:/bin` }]
    const obeyed: string[] = []
    const obey = (one: { path: string }) => Promise.resolve(void obeyed.push(one.path))
    const options = { environment: { PATH: process.env['PATH'] }, obey }
    const access = await loadKubeconfig(directory.path, kubeconfig(cluster, user(name, { env })), options)
    t.match((await access.current()).headers, { authorization: 'Bearer x' })
    t.strictSame(obeyed.slice(1), [path])
  },
)

void t.test("the client keeps a plugin's credential until it expires", async (t) => {
  const lasting = plugin(print({ token: 'x', expirationTimestamp: '2100-01-01T00:00:00Z' }))
  const access = await load(lasting.path)
  t.equal(lasting.runs(), 0, 'not run before it is needed')
  await Promise.all([access.current(), access.current(), access.current()])
  await access.current()
  t.equal(lasting.runs(), 1)
  const unlimited = plugin(print({ token: 'x' }))
  const forever = await load(unlimited.path)
  await forever.current()
  await forever.current()
  t.equal(unlimited.runs(), 1)
  const outdated = plugin(print({ token: 'x', expirationTimestamp: '2000-01-01T00:00:00Z' }))
  const again = await load(outdated.path)
  await again.current()
  await again.current()
  t.equal(outdated.runs(), 2)
})

void t.test('an early failed renewal leaves the good credential in force', async (t) => {
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const { path, runs } = plugin(
    `[ -e ${directory.path}/used ] && exit 1; touch ${directory.path}/used\n` +
      print({ token: 'good', expirationTimestamp: soon }),
  )
  const access = await load(path)
  const first = await access.current()
  const realNow = Date.now
  t.teardown(() => (Date.now = realNow))
  // The last half minute is early; how fast the machine is does not matter to it.
  Date.now = () => realNow() + 3_580_000
  t.equal(await access.current(), first)
  t.equal(runs(), 2)
  Date.now = () => realNow() + 3_600_001
  await t.rejects(access.current(), { message: /exited with 1/ })
})

void t.test('a 401 runs the plugin again, once for all requests', async (t) => {
  const { path, runs } = plugin(
    `n=$(wc -l < "$0.runs")\nprintf '{"kind":"ExecCredential","apiVersion":"${v1}","status":{"token":"t%d"}}' $n`,
  )
  let good = 'Bearer t1'
  const running = await startServer({
    serving,
    handler: (seen, reply) => json(reply, seen.headers['authorization'] === good ? 200 : 401, {}),
  })
  t.teardown(() => running.close())
  const api = connect(await load(path, {}, {}, { ...cluster, server: running.url }), { version: '1' })
  t.teardown(() => api.close())
  t.equal((await api.get('/', {}, once)).status, 200)
  good = 'Bearer t2'
  const all = await Promise.all(Array.from({ length: 20 }, () => api.get('/', {}, once)))
  t.ok(all.every(({ status }) => status === 200))
  t.equal(runs(), 2)
  good = 'nothing'
  t.equal((await api.get('/', {}, once)).status, 401, 'the answer, where nothing helps')
  t.equal((await api.get('/', {}, once)).status, 401)
  t.equal(runs(), 2, 'and the plugin is not run at every refusal')
})

void t.test('a 401 whose plugin fails gives its place on the connection back', async (t) => {
  const token = print({ token: 't1' })
  const { path } = plugin(`[ "$(wc -l < "$0.runs")" = 1 ] || exit 1\n${token}`)
  let accepts = true
  const running = await startServer({ serving, handler: (_, reply) => json(reply, accepts ? 200 : 401, {}) })
  t.teardown(() => running.close())
  const access = await load(path, {}, {}, { ...cluster, server: running.url })
  const api = connect(access, { version: '1', limits: { streams: 1, connections: 1 } })
  t.teardown(() => api.close())
  const first = access.current()
  await first
  t.equal((await api.get('/', {}, once)).status, 200)
  accepts = false
  t.match(await failure(api.get('/', {}, once)), { reason: 'credentials', message: /exited with 1/ })
  accepts = true
  // The plugin's first answer is in force again, without a plugin that has to be asked.
  access.current = () => first
  const again = async (): Promise<boolean> => (await api.get('/', {}, once)).status === 200
  t.ok(await until('there is a place for the next request', again))
})

void t.test('the client uses a certificate from the plugin', async (t) => {
  const pair = issue(authority, { name: 'from-plugin' })
  const status = { clientCertificateData: pair.certificate, clientKeyData: pair.key }
  const running = await startServer({ serving, clientAuthority: authority.certificate })
  t.teardown(() => running.close())
  const access = await load(plugin(print(status)).path, {}, {}, { ...cluster, server: running.url })
  const api = connect(access, { version: '1' })
  t.teardown(() => api.close())
  await api.get('/', {}, once)
  t.equal(running.requests[0]?.client, 'from-plugin')
  t.ok(api.clientCertificateNotAfter())
})

void t.test('an error of the plugin quotes none of its output', async (t) => {
  const pair = issue(authority, { name: CANARY })
  const other = issue(authority, { name: 'other' })
  const cases: [script: string, message: RegExp, milliseconds?: number][] = [
    [`echo ${CANARY}`, /its output is not JSON/],
    [`echo '["${CANARY}"]'`, /its output is not a JSON object/],
    [`echo '{"kind":"${CANARY}"}'`, /the kind of its output is not ExecCredential/],
    [print({ token: CANARY }, 'x/v1'), /the apiVersion of its output is not client\.authentication\.k8s\.io\/v1/],
    [`echo '{"kind":"ExecCredential","apiVersion":"${v1}"}'`, /its output has no status/],
    [print({}), /neither token nor/],
    [print({ token: [CANARY] }), /status\.token is not a string/],
    [print({ token: `${CANARY} x` }), /status\.token holds characters that no token has/],
    [print({ token: CANARY, expirationTimestamp: CANARY }), /expirationTimestamp is not a time/],
    [print({ clientCertificateData: pair.certificate }), /without the other/],
    [
      print({ clientCertificateData: pair.certificate, clientKeyData: CANARY }),
      /status\.clientKeyData: holds no PEM block/,
    ],
    [
      print({ clientCertificateData: CANARY, clientKeyData: pair.key }),
      /status\.clientCertificateData: holds no certificate in PEM form/,
    ],
    [print({ clientCertificateData: pair.certificate, clientKeyData: other.key }), /clientKeyData does not match/],
    [`echo ${CANARY}; echo ${CANARY} >&2; exit 3`, /exited with 3; run it by hand to see why/],
    [`echo ${CANARY}; kill -9 $$`, /was ended by SIGKILL/],
    [`yes ${CANARY}`, /printed more than 1048576 bytes/],
    [`echo ${CANARY}; sleep 300 & wait`, /did not answer within 0\.5 s/, 500],
  ]
  for (const [script, message, milliseconds = 60_000] of cases) {
    const { path } = plugin(script)
    const api = connect(await load(path, { args: [CANARY] }, { exec: milliseconds }), { version: '1' })
    const error = await failure(api.get('/', {}, once))
    await api.close()
    t.equal(error.reason, 'credentials')
    t.match(error.message, message)
    t.ok(error.message.startsWith(`${directory.path}/kubeconfig: users[0].user.exec: credential plugin ${path}: `))
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
      t.notMatch(`${cause.stack ?? ''} ${JSON.stringify(cause)}`, CANARY)
    }
  }
  const hanging = connect(await load(plugin('sleep 300').path, {}, { exec: 500 }), { version: '1' })
  t.match(await failure(hanging.get('/', {}, { timeout: 50 })), {
    reason: 'credentials',
    message: /did not answer within 0\.5 s/,
  })
  await hanging.close()
  const hint = await load('no-such-plugin', { installHint: 'Get it from the vendor.\n' })
  await t.rejects(hint.current(), {
    message: /credential plugin no-such-plugin: not found\. Get it from the vendor\.$/,
  })
  // execvp(3) answers EACCES, as for a directory that it may not search.
  writeFileSync(join(directory.path, 'no-such-plugin'), '')
  const PATH = `${process.env['PATH']}:${directory.path}`
  const searched = await load('no-such-plugin', { installHint: 'Get it.', env: [{ name: 'PATH', value: PATH }] })
  await t.rejects(searched.current(), { message: /credential plugin no-such-plugin: not found\. Get it\.$/ })
  const bare = await load('no-such-plugin')
  await t.rejects(bare.current(), { message: /not found; install it, or correct command$/ })
  const { path } = plugin('')
  chmodSync(path, 0o644)
  await t.rejects((await load(path)).current(), { message: /could not be started \(EACCES\)/ })
})
