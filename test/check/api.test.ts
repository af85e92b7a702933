/** `check` and an API server: a real one over TLS that gives the answers of kube-apiserver. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { json, startServer, type Handler, type Reply, type Seen } from '../kubernetes/connection/api-server.js'
import { scratch } from '../durable/scratch.js'
import { authority, serving, start } from '../kubernetes/connection/connected.js'
import { base64, kubeconfig } from '../kubernetes/credentials/kubeconfig-text.js'
import { Scene } from './scene.js'
import { checkPermissions } from '../../src/check/api.js'
import type { Permission } from '../../src/config/permissions.js'

type Answers = Readonly<Record<string, (reply: Reply, seen: Seen) => void>>

const version = '/version'
const selfReview = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const accessReview = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

const status = (reply: Reply, code: number, message: string) =>
  json(reply, code, { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, message })

/** A server that is well, and allows everything. */
const healthy: Answers = {
  [version]: (reply) => json(reply, 200, { major: '1', minor: '34', gitVersion: 'v1.34.1' }),
  [selfReview]: (reply) =>
    json(reply, 201, { status: { userInfo: { username: 'system:serviceaccount:holdfast:agent' } } }),
  [accessReview]: (reply) => json(reply, 201, { status: { allowed: true } }),
}

interface Review {
  readonly spec: {
    readonly resourceAttributes: { readonly resource: string; readonly verb: string; readonly name?: string }
  }
}

const secret = { token: 'very-secret' }
const trusted = { 'certificate-authority-data': base64(authority.certificate) }

/** The findings of `check` about the API server, and its requests. */
async function checkAgainst(t: Test, answers: Answers, trust: object = trusted, user: object = secret) {
  const handler: Handler = (seen, reply) => {
    const answer = answers[seen.path]
    if (answer === undefined) status(reply, 404, 'the server could not find the requested resource')
    else answer(reply, seen)
  }
  const server = await startServer({ serving, handler })
  t.teardown(() => server.close())
  const scene = new Scene(t)
  const file = scene.path('kubeconfig')
  const cluster = { server: server.url, ...trust }
  writeFileSync(file, kubeconfig(cluster, user))
  const source = { namespace: 'demo', kubernetes: { kubeconfig: file } }
  scene.configure([{ path: scene.target, contents: [{ secret: 'serving-cert' }] }], { source })
  const checked = await scene.check(t, { env: { NODE_NAME: 'n1' } }, ['--timeout', '60s'])
  t.notMatch(JSON.stringify(checked.document), /very-secret/)
  const found = (check: string) => checked.all(check, 'API server')
  return { found, requests: server.requests, url: server.url }
}

await t.test('check asks the API server for each permission, and reads no object', async (t) => {
  const { found, requests, url } = await checkAgainst(t, healthy)
  t.match(found('reachable'), [{ status: 'OK', found: /^https:.* answered in \d+ ms: Kubernetes v1\.34\.1$/ }])
  t.ok(found('reachable')[0]?.found.startsWith(url))
  t.match(found('credentials'), [{ status: 'OK', found: 'accepted as system:serviceaccount:holdfast:agent' }])
  t.match(found('certificate authority'), [{ status: 'OK', found: /^one certificate, valid now/ }])
  t.ok(found('permission').length >= 2)
  t.ok(found('permission').every((finding) => finding.status === 'OK'))
  const secrets = 'get, list and watch on secrets serving-cert in namespace demo: allowed'
  t.equal(found('permission').filter((finding) => finding.found === secrets).length, 1)
  const asked = requests
    .filter(({ path }) => path === accessReview)
    .map(({ body }) => (JSON.parse(body) as Review).spec.resourceAttributes)
    .filter(({ resource }) => resource === 'secrets')
    .map(({ verb, name }) => `${verb} ${name ?? ''}`)
  t.same(asked.sort(), ['get serving-cert', 'list serving-cert', 'watch serving-cert'])
  t.same([...new Set(requests.map(({ path }) => path))].sort(), [selfReview, accessReview, version].sort())
})

await t.test('check reports a missing right as a fault for objects, and as a warning for events', async (t) => {
  const { found } = await checkAgainst(t, {
    ...healthy,
    [accessReview]: (reply, { body }) => {
      const { resource, verb } = (JSON.parse(body) as Review).spec.resourceAttributes
      json(reply, 201, { status: { allowed: resource === 'secrets' && verb !== 'watch' } })
    },
  })
  const permissions = found('permission')
  const [refused, ...others] = permissions.filter(({ status }) => status === 'FAULT')
  t.same(others, [])
  t.match(refused, { found: 'watch on secrets serving-cert in namespace demo: not allowed' })
  t.match(refused?.advice, /^holdfast rbac --config \S+ \| kubectl apply/)
  const warnings = permissions.filter(({ status }) => status === 'WARN')
  t.ok(warnings.length > 0 && warnings.every((finding) => finding.found.includes('cannot record events')))
})

await t.test('check asks nothing more after rejected credentials', async (t) => {
  const { found, requests } = await checkAgainst(t, {
    ...healthy,
    [selfReview]: (reply) => status(reply, 401, 'Unauthorized'),
  })
  t.match(found('credentials'), [{ status: 'FAULT', found: /HTTP 401: Unauthorized/, advice: /expired certificate/ }])
  t.same(found('permission'), [])
  t.notOk(requests.some(({ path }) => path === accessReview))
})

await t.test('check finds an agent that sends no credential, whatever the API server lets it do', async (t) => {
  const { found, requests } = await checkAgainst(t, healthy, trusted, { token: '' })
  t.match(found('credentials'), [
    { status: 'FAULT', found: /^none was sent/, advice: /give the user in the kubeconfig/ },
  ])
  t.notOk(requests.some(({ path }) => path === accessReview))
})

await t.test('check counts a server as reached that shows its version to known users only', async (t) => {
  for (const code of [401, 403]) {
    const { found } = await checkAgainst(t, { ...healthy, [version]: (reply) => status(reply, code, 'no') })
    t.match(found('reachable'), [{ status: 'OK', found: /answered in \d+ ms$/ }])
  }
})

await t.test('check finds another server at the address', async (t) => {
  const { found, requests } = await checkAgainst(t, { [version]: (reply) => json(reply, 200, { hello: 'world' }) })
  t.match(found('reachable'), [{ status: 'FAULT', found: /answered \/version with HTTP 200/ }])
  t.equal(requests.length, 1)
})

await t.test('before Kubernetes 1.28, and under load, check says that our user is unknown', async (t) => {
  const old: Answers = { ...healthy, [selfReview]: (reply) => status(reply, 404, 'not found') }
  t.match((await checkAgainst(t, old)).found('credentials'), [{ status: 'OK', found: 'accepted' }])
  const busy = await checkAgainst(t, { ...healthy, [selfReview]: (reply) => status(reply, 500, 'etcd is away') })
  t.match(busy.found('credentials'), [{ status: 'WARN', found: 'the API server answered HTTP 500: etcd is away' }])
  const silent = await checkAgainst(t, { ...healthy, [accessReview]: (reply) => status(reply, 500, 'etcd is away') })
  t.match(silent.found('permission')[0], {
    status: 'WARN',
    found: /unknown, the API server answered HTTP 500: etcd is away/,
  })
})

await t.test('check reports a connection that breaks after the first answer', async (t) => {
  const { found } = await checkAgainst(t, {
    ...healthy,
    [selfReview]: (reply) => {
      if ('stream' in reply) reply.stream.destroy()
    },
  })
  t.match(found('reachable').at(-1), {
    status: 'FAULT',
    advice: 'find out why the API server stopped answering, then check again',
  })
})

await t.test('check warns of a server whose certificate is not looked at', async (t) => {
  const { found } = await checkAgainst(t, healthy, { 'insecure-skip-tls-verify': true })
  t.match(found('server certificate'), [{ status: 'WARN', found: /^insecure-skip-tls-verify is set: / }])
  const { found: beside } = await checkAgainst(t, healthy)
  t.strictSame(beside('server certificate'), [])
})

await t.test(
  'check says who may write to the files of a kubeconfig once, in the order of the kubeconfig',
  async (t) => {
    const directory = scratch(t)
    // A long way takes longer to look at.
    const deep = join(directory, ...Array<string>(40).fill('d'))
    mkdirSync(deep, { recursive: true })
    const [ca, token] = [join(deep, 'ca.crt'), join(directory, 'token')]
    writeFileSync(ca, authority.certificate, { mode: 0o600 })
    writeFileSync(token, secret.token, { mode: 0o600 })
    // A refused token is read again.
    const answers = { ...healthy, [version]: (reply: Reply) => status(reply, 401, 'Unauthorized') }
    const { found } = await checkAgainst(t, answers, { 'certificate-authority': ca }, { tokenFile: token })
    const places = found('writers').map((finding) => finding.found.replace(/: no user .*/, ''))
    t.strictSame(places, ['clusters[0].cluster.certificate-authority', 'users[0].user.tokenFile'])
  },
)

const rule = { namespace: 'ns', group: '', purpose: 'objects' } as const
const permissions: Permission[] = [
  { ...rule, resource: 'secrets', names: ['a', 'b'], verbs: ['get', 'list'] },
  {
    ...rule,
    group: 'events.k8s.io',
    resource: 'events',
    names: undefined,
    verbs: ['create', 'patch'],
    purpose: 'events',
  },
  {
    ...rule,
    group: 'holdfast.dev',
    resource: 'nodepublications/status',
    names: ['n'],
    verbs: ['patch'],
    purpose: 'report',
  },
]

await t.test(
  'checkPermissions answers in the order of its questions, though the last answer comes first',
  async (t) => {
    const waiting: Reply[] = []
    const { api, running } = await start(t, {
      handler: (_, reply) => {
        waiting.push(reply)
        if (waiting.length < 7) return
        const status = { allowed: false }
        for (const each of waiting.reverse()) json(each, 201, { kind: 'SelfSubjectAccessReview', status })
      },
    })
    const results = await checkPermissions(api, {
      permissions,
      file: 'agent.yaml',
      timeout: 60_000,
      signal: new AbortController().signal,
    })
    t.same(
      results.map(({ status, found }) => [status, found.split(';')[0]]),
      [
        ['FAULT', 'get and list on secrets a in namespace ns: not allowed'],
        ['FAULT', 'get and list on secrets b in namespace ns: not allowed'],
        ['WARN', 'create and patch on events in namespace ns: not allowed'],
        ['WARN', 'patch on nodepublications/status n in namespace ns: not allowed'],
      ],
    )
    const asked = running.requests.map(
      ({ body }) => (JSON.parse(body) as { spec: { resourceAttributes: object } }).spec,
    )
    const attributes = { namespace: 'ns', group: 'holdfast.dev', resource: 'nodepublications', subresource: 'status' }
    t.strictSame(asked.at(-1), { resourceAttributes: { ...attributes, verb: 'patch', name: 'n' } })
  },
)
