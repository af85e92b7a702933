/** `holdfast check` asks a real API server what the account may do, and reads nothing. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Finding } from '../../src/check/findings.js'
import { Cluster } from './cluster.js'
import { ConnectProxy } from './connect-proxy.js'
import { workingDirectory } from './guard.js'
import { grant, granted } from './rights.js'
import { executable } from '../project.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

interface Checked {
  readonly code: number
  /** The findings about the API server. */
  readonly findings: readonly Finding[]
  readonly stdout: string
}

const contents = [
  { secret: 'a', into: 'a' },
  { secret: 'b', into: 'b' },
  { configMap: 'c', into: 'c' },
]

async function check(
  namespace: string,
  kubeconfig: string,
  { args = ['--node-name', 'n1'], env = {} }: { args?: readonly string[]; env?: Record<string, string> } = {},
): Promise<Checked> {
  const root = mkdtempSync(join(workingDirectory, 'check-'))
  mkdirSync(join(root, 'disk'))
  const configuration = join(root, 'holdfast.yaml')
  writeFileSync(
    configuration,
    JSON.stringify({
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: join(root, 'state'),
      source: { namespace, kubernetes: { kubeconfig } },
      directories: [{ path: join(root, 'disk', 'certs'), contents }],
    }),
  )
  const words = [executable, 'check', '--config', configuration, '-o', 'json', ...args]
  const run = promisify(execFile)(process.execPath, words, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
  const { code = 0, stdout } = (await run.catch((error: unknown) => error)) as {
    code?: number
    stdout: string
  }
  const { checks } = JSON.parse(stdout) as { checks: Finding[] }
  return { code, findings: checks.filter(({ subject }) => subject === 'API server'), stdout }
}

/** Of the checks of the API: the files that a kubeconfig names are looked at beside them. */
const lastOf = ({ findings }: Checked) => findings.filter(({ check }) => check !== 'writers').at(-1)

const permissions = ({ findings }: Checked): [string, string][] =>
  findings.filter(({ check }) => check === 'permission').map(({ status, found }) => [status, found])

await t.test('check passes with a warning where everything but events is allowed', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: 'very-secret' })
  await namespace.createAccount('agent', { secrets: ['a', 'b'], configMaps: ['c'] })
  const kubeconfig = namespace.kubeconfig({ token: await namespace.token('agent') })
  const checked = await check(namespace.name, kubeconfig)
  const { code, findings, stdout } = checked
  t.equal(code, 0, stdout)
  t.match(findings.map(({ check, status }) => [check, status]).slice(0, 5), [
    ['node name', 'OK'],
    ['access', 'OK'],
    ['certificate authority', 'OK'],
    ['reachable', 'OK'],
    ['credentials', 'OK'],
  ])
  t.match(findings[3]?.found, /^https:\/\/127\.0\.0\.1:\d+ answered in \d+ ms: Kubernetes v1\.\d+/)
  t.equal(findings[4]?.found, `accepted as system:serviceaccount:${namespace.name}:agent`)
  const inside = `in namespace ${namespace.name}`
  t.same(
    new Set(permissions(checked).map(([status, found]) => `${status} ${found}`)),
    new Set([
      `OK get, list and watch on secrets a and b ${inside}: allowed`,
      `OK get, list and watch on configmaps c ${inside}: allowed`,
      `WARN create and patch on events ${inside}: not allowed; the agent cannot record events, everything else works`,
      'WARN create and patch on events in namespace default: not allowed; the agent cannot record events, everything else works',
    ]),
  )
  t.notMatch(stdout, /very-secret/)
  const nameless = await check(namespace.name, kubeconfig, { args: [] })
  t.match(nameless.findings[0], { check: 'node name', status: 'WARN' })
  t.notOk(permissions(nameless).some(([, found]) => found.includes('namespace default')))
})

await t.test('check names a missing right: object, verbs, advice', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.createAccount('agent', { secrets: ['a'] })
  // A verb that is easily forgotten.
  const role = [
    'create',
    'role',
    'getter',
    '-n',
    namespace.name,
    '--verb=get',
    '--resource=configmaps',
    '--resource-name=c',
  ]
  await cluster.kubectl(role)
  await cluster.kubectl([
    ...['create', 'rolebinding', 'getter', '-n', namespace.name, '--role=getter'],
    `--serviceaccount=${namespace.name}:agent`,
  ])
  const right = { apiGroups: [''], resources: ['configmaps'], resourceNames: ['c'], verbs: ['get'] }
  await granted(cluster.api.admin, `system:serviceaccount:${namespace.name}:agent`, [right], namespace.name)
  const checked = await check(namespace.name, namespace.kubeconfig({ token: await namespace.token('agent') }))
  t.equal(checked.code, 4)
  const inside = `in namespace ${namespace.name}`
  t.same(
    new Set(
      permissions(checked)
        .filter(([status]) => status === 'FAULT')
        .map(([, found]) => found),
    ),
    new Set([
      `get, list and watch on secrets b ${inside}: not allowed`,
      `list and watch on configmaps c ${inside}: not allowed`,
    ]),
  )
  t.ok(permissions(checked).some(([, found]) => found === `get, list and watch on secrets a ${inside}: allowed`))
  const fault = checked.findings.find(({ status }) => status === 'FAULT')
  t.match(fault?.advice, /^holdfast rbac --config .*holdfast\.yaml \| kubectl apply -f -/)
})

await t.test('holdfast rbac prints the rights that check asks for', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.createAccount('agent', { secrets: ['unrelated'] })
  const kubeconfig = namespace.kubeconfig({ token: await namespace.token('agent') })
  const before = await check(namespace.name, kubeconfig)
  t.equal(before.code, 4)
  const configuration = /--config (\S+)/.exec(before.findings.find(({ status }) => status === 'FAULT')?.advice ?? '')
  const words = ['rbac', '--config', configuration?.[1] ?? '', '--service-account', `${namespace.name}/agent`]
  const { stdout } = await promisify(execFile)(process.execPath, [executable, ...words])
  await grant(cluster, stdout, namespace.name, 'agent')
  const after = await check(namespace.name, kubeconfig)
  t.equal(after.code, 0, after.stdout)
  t.same(
    permissions(after).filter(([status]) => status !== 'OK'),
    [],
  )
})

await t.test('check reports rejected credentials', async (t) => {
  const namespace = await cluster.namespace()
  const checked = await check(namespace.name, namespace.kubeconfig({ token: 'no-token-of-this-cluster' }))
  t.equal(checked.code, 4)
  t.match(lastOf(checked), {
    check: 'credentials',
    status: 'FAULT',
    found: /rejects them \(HTTP 401/,
  })
  t.same(permissions(checked), [], 'nothing more is asked')
  t.notMatch(checked.stdout, /no-token-of-this-cluster/)
})

await t.test('check reports a client certificate with its dates', async (t) => {
  const namespace = await cluster.namespace()
  const pair = await cluster.api.authority.client('checked', 'nodes')
  const user = {
    'client-certificate-data': readFileSync(pair.certificate, 'base64'),
    'client-key-data': readFileSync(pair.key, 'base64'),
  }
  const checked = await check(namespace.name, namespace.kubeconfig(user))
  t.match(
    checked.findings.find(({ check }) => check === 'client certificate'),
    {
      status: 'OK',
      found: /^one certificate, valid now; the first to expire is the client certificate, at \d{4}-/,
    },
  )
  t.match(checked.findings.find(({ check }) => check === 'credentials')?.found, 'accepted as checked')
})

await t.test('check reports another authority, and works through a proxy', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.createAccount('agent', { secrets: ['a', 'b'], configMaps: ['c'] })
  const token = await namespace.token('agent')
  const pair = await cluster.api.authority.client('other', 'nodes')
  const cluster2 = { 'certificate-authority': pair.certificate }
  const untrusted = await check(namespace.name, namespace.kubeconfig({ token }, { cluster: cluster2 }))
  t.equal(untrusted.code, 4)
  t.match(lastOf(untrusted), {
    check: 'reachable',
    status: 'FAULT',
    found: /not signed by the authority/,
  })
  const proxy = await ConnectProxy.start(t)
  const through = { 'proxy-url': proxy.url, 'tls-server-name': 'localhost' }
  const server = `https://api.e2e.example:${cluster.api.port}`
  const proxied = await check(namespace.name, namespace.kubeconfig({ token }, { server, cluster: through }))
  t.equal(proxied.code, 0, proxied.stdout)
  t.same(new Set(proxy.asked), new Set([`api.e2e.example:${cluster.api.port}`]))
})
