import { mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Log } from '../../../src/log.js'
import {
  Credentials,
  type CredentialsOptions,
  type CredentialsTiming,
} from '../../../src/kubernetes/credentials/credentials.js'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import type { TransportLimits } from '../../../src/kubernetes/connection/transport.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'
import { beginWatch, json, startServer, type ServerOptions } from './api-server.js'
import { issue, makeAuthority, temporaryDirectory } from './certificates.js'
import { authority, collect, failure, once, serving, connectTo } from './connected.js'
import { kubeconfig } from '../credentials/kubeconfig-text.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { Recorder, reference } from '../../objects/recorder.js'
import { ModelCluster } from '../../objects/kubernetes/model-cluster.js'

/** Watches whose token expired, and what wakes them. */

const first = issue(authority, { name: 'first', days: 3 })
const second = issue(authority, { name: 'second', days: 9 })
const other = makeAuthority('other')
const CANARY = 'canary-token'

interface Setup {
  readonly server?: ServerOptions
  readonly user?: object
  readonly timing?: Partial<CredentialsTiming>
  readonly limits?: Partial<TransportLimits>
}

async function setUp(t: { teardown(work: () => unknown): void }, { server, user, timing, limits }: Setup) {
  const directory = temporaryDirectory()
  const running = await startServer({ serving, ...server })
  const at = (name: string) => join(directory.path, name)
  /** Replaces a file as a careful writer does. */
  const put = (name: string, text: string): void => {
    writeFileSync(at(`${name}.new`), text)
    renameSync(at(`${name}.new`), at(name))
  }
  const config = (fields: object = user ?? {}) =>
    kubeconfig({ server: running.url, 'certificate-authority': 'ca' }, fields)
  put('ca', authority.certificate)
  put('crt', first.certificate)
  put('key', first.key)
  put('token', `${CANARY}-1\n`)
  put('config', config())
  const warnings: string[] = []
  const log: Log = { debug() {}, info() {}, warn: (_, text) => warnings.push(text), error() {} }
  const access = await new Credentials({
    kubeconfig: at('config'),
    environment: {},
    timing: { look: 0, ...timing },
    log,
  }).load()
  const api = connect(access, { version: '1', ...(limits && { limits }) })
  t.teardown(async () => {
    await api.close()
    await running.close()
    directory.remove()
  })
  return { api, running, put, at, config, warnings }
}

const authorization = (running: { requests: { headers: Record<string, unknown> }[] }) =>
  running.requests.at(-1)?.headers['authorization']

void t.test('the client follows a replaced token file', async (t) => {
  const { api, running, put, at, warnings } = await setUp(t, { user: { tokenFile: 'token' } })
  await api.get('/', {}, once)
  t.equal(authorization(running), `Bearer ${CANARY}-1`)
  put('token', `${CANARY}-2`)
  await api.get('/', {}, once)
  t.equal(authorization(running), `Bearer ${CANARY}-2`)
  t.equal(running.accepted(), 1, 'a token needs no new connection')
  unlinkSync(at('token'))
  await api.get('/', {}, once)
  await api.get('/', {}, once)
  t.equal(authorization(running), `Bearer ${CANARY}-2`, 'the last good one')
  t.equal(warnings.length, 1, 'said once')
  t.match(warnings[0], /tokenFile: cannot read .*\/token \(ENOENT\); the previous content stays in force/)
  put('token', `${CANARY} with spaces`)
  await api.get('/', {}, once)
  t.match(warnings[1], /holds characters that no token has/)
  t.notMatch(warnings.join(), CANARY)
  put('token', `${CANARY}-3`)
  await api.get('/', {}, once)
  t.equal(authorization(running), `Bearer ${CANARY}-3`)
})

void t.test('the client looks at its files only now and then, and reads them again after a 401', async (t) => {
  let good = `Bearer ${CANARY}-1`
  const { api, running, put } = await setUp(t, {
    user: { tokenFile: 'token' },
    timing: { look: 60_000 },
    server: {
      handler: (seen, reply) => json(reply, seen.headers['authorization'] === good ? 200 : 401, {}),
    },
  })
  await api.get('/', {}, once)
  put('token', `${CANARY}-2`)
  await api.get('/', {}, once)
  t.equal(running.requests.length, 2, 'the old token is good, and nobody looked')
  good = `Bearer ${CANARY}-2`
  t.equal((await api.get('/', {}, once)).status, 200)
  t.equal(running.requests.length, 4)
  good = ''
  t.equal((await api.get('/', {}, once)).status, 401)
  t.equal(running.requests.length, 5, 'the same token is not sent twice')
})

void t.test('the client reads a file again after a while, even if it seems unchanged', async (t) => {
  const { api, running, at } = await setUp(t, { user: { tokenFile: 'token' }, timing: { reread: 0 } })
  await api.get('/', {}, once)
  writeFileSync(at('token'), `${CANARY}-9\n`)
  await api.get('/', {}, once)
  t.equal(authorization(running), `Bearer ${CANARY}-9`)
})

void t.test('a replaced client certificate makes a new connection; the old one goes on for a while', async (t) => {
  const { api, running, put, warnings } = await setUp(t, {
    user: { 'client-certificate': 'crt', 'client-key': 'key' },
    limits: { drain: 600_000 },
    server: {
      clientAuthority: authority.certificate,
      handler: (seen, reply) => (seen.path === '/watch' ? beginWatch(reply, 1) : json(reply, 200, {})),
    },
  })
  await api.stream('/watch', {}, once)
  const before = api.clientCertificateNotAfter()?.getTime() ?? 0
  put('crt', second.certificate)
  await api.get('/half', {}, once)
  t.equal(running.requests.at(-1)?.client, 'first', 'between certificate and key, the old pair')
  t.match(warnings[0], /client-key: does not match the client certificate/)
  t.equal(running.accepted(), 1)
  put('key', second.key)
  await api.get('/whole', {}, once)
  t.equal(running.requests.at(-1)?.client, 'second')
  t.equal(api.connections, 2, 'the watch is still there')
  t.ok((api.clientCertificateNotAfter()?.getTime() ?? 0) > before)
})

for (const protocol of ['h2', 'https'] as const) {
  void t.test(`an idle ${protocol} connection closes at once when the authority changes`, async (t) => {
    const { api, running, put } = await setUp(t, { server: { protocol } })
    await api.get('/', {}, once)
    put('ca', other.certificate + authority.certificate)
    await api.get('/', {}, once)
    t.equal(running.accepted(), 2)
    t.equal(api.connections, 1)
    put('ca', other.certificate)
    t.match(await failure(api.get('/', {}, once)), { message: /not signed by the authority/ })
  })
}

void t.test('watches alone are enough to notice a change', async (t) => {
  const { api, put } = await setUp(t, {
    user: { 'client-certificate': 'crt', 'client-key': 'key' },
    limits: { drain: 0 },
    timing: { settle: 20 },
    server: { clientAuthority: authority.certificate, handler: (_, reply) => beginWatch(reply, 1) },
  })
  const watch = await api.stream('/watch', {}, once)
  put('crt', second.certificate)
  put('key', second.key)
  t.match(await failure(collect(watch)), { reason: 'rotation', message: /have been replaced/ })
  t.equal(api.connections, 0)
})

void t.test('the client follows a replaced kubeconfig', async (t) => {
  const { api, running, put, at, config, warnings } = await setUp(t, { user: { token: 'a' } })
  await api.get('/', {}, once)
  put('config', config({ token: 'b' }))
  await api.get('/', {}, once)
  t.equal(authorization(running), 'Bearer b')
  put('config', `users: [{name: ${CANARY}`)
  await api.get('/', {}, once)
  t.equal(authorization(running), 'Bearer b', 'a broken one changes nothing')
  t.matchOnly(warnings, [/not valid YAML/])
  t.notMatch(warnings.join(), CANARY)
  rmSync(at('config'))
  await api.get('/', {}, once)
  const moved = await startServer({ serving })
  t.teardown(() => moved.close())
  put('config', config({ token: 'c' }).replace(running.url, moved.url))
  await api.get('/', {}, once)
  t.equal(authorization(moved), 'Bearer c', 'another server')
})

void t.test('the client runs another plugin of a changed kubeconfig', async (t) => {
  const plugin = (token: string) => {
    const status = JSON.stringify({
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1',
      status: { token },
    })
    return {
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        interactiveMode: 'IfAvailable',
        command: '/bin/echo',
        args: [status],
      },
    }
  }
  const { api, running, put, config } = await setUp(t, { user: plugin('a') })
  await api.get('/', {}, once)
  t.equal(authorization(running), 'Bearer a')
  put('config', config(plugin('b')))
  await api.get('/', {}, once)
  t.equal(authorization(running), 'Bearer b')
})

void t.test('a plugin that hangs after a 401 is named, and not the API server', async (t) => {
  const apiVersion = 'client.authentication.k8s.io/v1'
  const credential = JSON.stringify({ kind: 'ExecCredential', apiVersion, status: { token: 'a' } })
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const once = join(directory.path, 'once')
  const script = `test -e ${once} && sleep 300; touch ${once}; echo '${credential}'`
  const { api, running } = await setUp(t, {
    user: { exec: { apiVersion, interactiveMode: 'Never', command: '/bin/sh', args: ['-c', script] } },
    timing: { exec: 2_000, renew: 0 },
    server: { handler: (_, reply) => json(reply, 401, {}) },
  })
  const time = new SimulatedTime(t)
  const refused = failure(api.get('/', {}, { timeout: 1_500 }))
  await until('the first credential is refused', () => running.requests.length === 1)
  const error = await time.during(refused)
  t.match(error, { reason: 'credentials', message: /credential plugin \/bin\/sh: did not answer within 2 s/ })
  t.equal(running.requests.length, 1)
})

void t.test('the client finds a kubeconfig that comes later', async (t) => {
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const file = join(directory.path, 'later', 'config')
  const running = await startServer({ protocol: 'http' })
  t.teardown(() => running.close())
  const api = connect(new Credentials({ kubeconfig: file, environment: {} }), { version: '1' })
  t.teardown(() => api.close())
  t.match(await failure(api.get('/', {}, once)), {
    reason: 'credentials',
    message: `cannot read ${file} (ENOENT)`,
  })
  mkdirSync(join(directory.path, 'later'))
  writeFileSync(file, kubeconfig({ server: running.url }, {}, 'ns'))
  t.equal(api.defaultNamespace, undefined)
  t.equal((await api.get('/', {}, once)).status, 200)
  t.equal(api.defaultNamespace, 'ns')
})

void t.test("with a caller's own read, no lost or broken file stays in force", async (t) => {
  const { running, put, at, config, warnings } = await setUp(t, {})
  const user = { 'client-certificate': 'crt', 'client-key': 'key' }
  put('config', config({ ...user, tokenFile: 'token' }))
  const load = () =>
    new Credentials({
      kubeconfig: at('config'),
      environment: {},
      timing: { look: 0 },
      read: (path) => readFile(path),
    }).load()
  const api = connect(await load(), { version: '1' })
  t.teardown(() => api.close())
  for (const name of ['config', 'ca', 'crt', 'key', 'token']) {
    const text = await readFile(at(name), 'utf8')
    t.equal((await api.get('/', {}, once)).status, 200, name)
    unlinkSync(at(name))
    t.match(await failure(api.get('/', {}, once)), { reason: 'credentials', message: /ENOENT/ }, `${name} is lost`)
    put(name, name === 'key' ? second.key : 'a b')
    t.match(await failure(api.get('/', {}, once)), { reason: 'credentials' }, `${name} does not fit`)
    put(name, text)
  }
  t.equal((await api.get('/', {}, once)).status, 200)
  t.ok(running.requests.length)
  t.same(warnings, [])
})

void t.test('credentials trust the authorities of others, too, and a refused token is read again', async (t) => {
  let good = `Bearer ${CANARY}-1`
  const { running, put, at } = await setUp(t, {
    user: { tokenFile: 'token' },
    server: { handler: (seen, reply) => json(reply, seen.headers['authorization'] === good ? 200 : 401, {}) },
  })
  const load = (kubeconfig: string, trusting?: CredentialsOptions['trusting']) =>
    new Credentials({ kubeconfig, environment: {}, timing: { look: 60_000 }, ...(trusting && { trusting }) }).load()
  put('ca2', other.certificate)
  put('config2', kubeconfig({ server: running.url, 'certificate-authority': 'ca2' }, { tokenFile: 'token' }))
  const lost = { authority: () => Promise.reject(new Error('lost')) }
  const both: Pick<Credentials, 'authority'>[] = [lost, await load(at('config'))]
  const trusting = await load(at('config2'), both)
  both.push(trusting)
  const api = connect(trusting, { version: '1' })
  const stranger = connect(await load(at('config2'), [lost]), { version: '1' })
  t.teardown(() => Promise.all([api.close(), stranger.close()]))
  t.match(await failure(stranger.get('/', {}, once)), { message: /is not signed by the authority/ })
  t.equal((await api.get('/', {}, once)).status, 200)
  put('token', `${CANARY}-2`)
  good = `Bearer ${CANARY}-2`
  t.equal((await api.get('/', {}, once)).status, 200)
  t.equal(running.requests.length, 3)
})

const cert = reference('serving-cert')

void t.test('the client uses a token that was replaced after a 401 at once, in the middle of any delay', async (t) => {
  const directory = temporaryDirectory()
  const token = join(directory.path, 'token')
  writeFileSync(token, 'expired')
  const cluster = new ModelCluster()
  cluster.put('serving-cert', 'one')
  let rejecting = true
  cluster.intercept = (_, reply) => {
    if (!rejecting) return false
    json(reply, 401, { kind: 'Status', code: 401, message: 'Unauthorized' })
    return true
  }
  await cluster.start()
  t.teardown(() => cluster.stop())
  const recorder = new Recorder()
  const source = new KubernetesSource(await connectTo(t, cluster.url, { tokenFile: token }), recorder, {
    timing: { firstDelay: 3_600_000, longestDelay: 3_600_000 },
  })
  t.teardown(async () => {
    await source.close()
    directory.remove()
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'unknown')
  t.ok(cluster.requests.length >= 1)
  rejecting = false
  writeFileSync(`${token}.new`, 'fresh')
  renameSync(`${token}.new`, token)
  t.ok(await recorder.untilState(cert, 'present', 'one'), 'not after an hour')
})

void t.test('close ends a wait for credentials', async (t) => {
  const api = await connectTo(t, 'https://127.0.0.1:1')
  const ending = new AbortController()
  const waiting = api.renewal(ending.signal)
  ending.abort()
  await t.resolves(waiting)
  await t.resolves(api.renewal(ending.signal), 'and where it had ended before')
})

void t.test('all who wait for credentials are served together, and who comes later does not wait', async (t) => {
  const { api, put } = await setUp(t, {
    user: { tokenFile: 'token' },
    timing: { settle: 20 },
    server: { handler: (seen, reply) => json(reply, seen.headers['authorization'] === 'Bearer b' ? 200 : 401, {}) },
  })
  t.equal((await api.get('/', {}, once)).status, 401)
  const { signal } = new AbortController()
  const waiting = [api.renewal(signal), api.renewal(signal)]
  put('token', 'a')
  await Promise.all(waiting)
  await t.resolves(api.renewal(signal), 'the server has not seen these')
  t.equal((await api.get('/', {}, once)).status, 401)
  const again = api.renewal(signal)
  put('token', 'b')
  await again
  t.equal((await api.get('/', {}, once)).status, 200)
})
