/** holdfast install from the API, over TLS and HTTP/2: what each answer of the server makes of the node's disk. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { json, type Reply } from '../../kubernetes/connection/api-server.js'
import type { Ended } from '../command.js'
import { InstallerApi } from './installer-api.js'
import { modeOf, podText } from '../pods.js'

const canary = 'CANARY-51c0'

/** Every file below a directory, its content as latin1, so that no byte is lost. */
function tree(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const own = files.filter(({ name }) => !name.startsWith('.holdfast-'))
  const paths = own.map(({ parentPath, name }) => join(parentPath, name))
  return Object.fromEntries(paths.map((path) => [path.slice(directory.length + 1), readFileSync(path, 'latin1')]))
}

function status(reply: Reply, code: number, reason: string, headers: Record<string, string> = {}): true {
  json(reply, code, { kind: 'Status', status: 'Failure', code, reason, message: `${reason} it is` }, headers)
  return true
}

/** It ended with this code; nothing of the node was touched; one event says so, in the same words as the command. */
function nothingWritten(t: Test, api: InstallerApi, ended: Ended, code: number, why: RegExp): void {
  t.equal(ended.code, code, ended.stderr)
  t.match(ended.stderr, why)
  t.notOk(existsSync(api.resources), 'nothing was written')
  t.notOk(existsSync(api.manifests), 'no manifest was touched')
  t.match(api.events, [{ type: 'Warning', reason: 'StaticPodInstallerFailed', note: why }])
  t.notMatch(ended.stdout + ended.stderr + JSON.stringify(api.events), canary)
}

await t.test('install writes the objects by name, key and byte, and changes nothing in a second run', async (t) => {
  const api = await InstallerApi.start(t)
  const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const mixed = Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from('REVISION'), Buffer.of(0, 0xc3)])
  api.putNode('n1', 'v1.35.4')
  api.putConfigMap('web-pod-6', { 'pod.yaml': podText(), 'watch-pod.yaml': podText({ name: 'watch' }), version: 'x' })
  api.putSecret('client-6', { 'tls.key': canary, 'run.sh': 'x' })
  const config = { 'config.yaml': 'REVISION at NODE_NAME, NODE_ENVVAR_NAME', 'run.sh': 'x' }
  api.putConfigMap('config-6', config, { every: everyByte.toString('base64'), mixed: mixed.toString('base64') })
  api.putSecret('serving', { 'tls.crt': 'crt' })
  api.putConfigMap('trust', { 'ca.crt': 'ca' })
  const flags = [
    ...['--configmaps=config', '--optional-configmaps=absent', '--optional-secrets=absent'],
    ...[`--cert-dir=${api.certificates}`, '--cert-secrets=serving', '--cert-configmaps=trust', '-o', 'json'],
  ]
  const first = await api.install(6, flags)
  t.equal(first.code, 0, first.stderr)
  const revision = tree(api.revision(6))
  const live = readFileSync(api.manifest(), 'utf8')
  t.same(revision, {
    'configmaps/config/config.yaml': '6 at n1, n1',
    'configmaps/config/every': everyByte.toString('latin1'),
    'configmaps/config/mixed': mixed.toString('latin1').replace('REVISION', '6'),
    'configmaps/config/run.sh': 'x',
    // The ConfigMap's own copy is its bytes, with the words replaced; the manifest is what kubelet is given.
    'configmaps/web-pod/pod.yaml': podText().replace('REVISION', '6'),
    'configmaps/web-pod/version': 'x',
    'configmaps/web-pod/watch-pod.yaml': podText({ name: 'watch' }).replace('REVISION', '6'),
    'secrets/client/run.sh': 'x',
    'secrets/client/tls.key': canary,
    'watch-pod.yaml': readFileSync(join(api.manifests, 'watch-pod.yaml'), 'utf8'),
    'web-pod.yaml': live,
  })
  t.same(tree(api.certificates), { 'secrets/serving/tls.crt': 'crt', 'configmaps/trust/ca.crt': 'ca' })
  t.match(JSON.parse(live), { metadata: { name: 'web', labels: { revision: '6' } } })
  t.notMatch(live, 'uid', 'this kubelet makes its own')
  t.same(Object.keys(tree(api.manifests)), ['watch-pod.yaml', 'web-pod.yaml'])
  const modes = { 'secrets/client/tls.key': '600', 'secrets/client/run.sh': '700', 'configmaps/config/run.sh': '755' }
  for (const [path, mode] of Object.entries(modes)) t.equal(modeOf(join(api.revision(6), path)), mode, path)

  const [event, ...others] = api.events
  t.match(event, {
    type: 'Normal',
    reason: 'StaticPodInstallerCompleted',
    note: 'Successfully installed revision 6',
    regarding: { kind: 'Namespace', name: 'demo' },
  })
  t.same(others, [])
  t.ok(api.server.requests.length > 6)
  t.ok(
    api.server.requests.every(({ httpVersion }) => httpVersion === '2.0'),
    'over HTTP/2',
  )
  t.equal(api.server.accepted(), 1, 'and one connection')

  const inode = statSync(api.manifest()).ino
  const again = await api.install(6, flags)
  t.equal(again.code, 0, again.stderr)
  const result = JSON.parse(again.stdout) as Record<'directories' | 'manifests', { outcome: string }[]>
  const outcomes = [...result.directories, ...result.manifests].map(({ outcome }) => outcome)
  t.same(outcomes, Array(5).fill('unchanged'))
  t.equal(statSync(api.manifest()).ino, inode)
  t.notMatch(first.stdout + first.stderr + again.stdout + again.stderr, canary)
})

await t.test('install ends before the first byte where a required object is missing', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const missing = /Secret demo\/none-6 does not exist, but is required/
  nothingWritten(t, api, await api.install(6, ['--secrets=none']), 1, missing)
  t.equal(api.asked('/secrets/none-6'), 1, 'an absence is not asked for again')
})

await t.test('install fails without the ConfigMap of the manifests', async (t) => {
  const api = await InstallerApi.start(t)
  api.putSecret('client-6', { 'tls.key': canary })
  nothingWritten(t, api, await api.install(6), 1, /ConfigMap demo\/web-pod-6 does not exist/)
})

await t.test('install does not retry a denial, and its advice names the command that prints the rights', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  for (const [code, reason, advice] of [
    [403, 'Forbidden', /client-6.*HTTP 403.*holdfast rbac install/],
    [401, 'Unauthorized', /client-6.*HTTP 401/],
  ] as const) {
    const before = api.asked('/secrets/client-6')
    api.events.length = 0
    api.override = ({ path }, reply) => (path.endsWith('/client-6') ? status(reply, code, reason) : undefined)
    nothingWritten(t, api, await api.install(6), 1, advice)
    t.equal(api.asked('/secrets/client-6') - before, 1, `${code} is a word, not a fault`)
  }
})

await t.test('install retries passing failures: 500, 503, 429 at its time, a broken connection', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const asked: number[] = []
  api.override = ({ path }, reply) => {
    if (!path.endsWith('/secrets/client-6')) return undefined
    asked.push(performance.now())
    if (asked.length === 1) return status(reply, 500, 'InternalError')
    if (asked.length === 2) return status(reply, 503, 'ServiceUnavailable')
    if (asked.length === 3) return status(reply, 429, 'TooManyRequests', { 'retry-after': '1' })
    if (asked.length > 4) return undefined
    api.server.cut()
    return true
  }
  const { code, stderr } = await api.install(6, ['--log-format=json'])
  t.equal(code, 0, stderr)
  t.equal(asked.length, 5)
  // A timer may fire a millisecond early.
  t.ok((asked[3] ?? 0) - (asked[2] ?? 0) >= 999, 'not before the server said')
  t.equal(readFileSync(join(api.revision(6), 'secrets/client/tls.key'), 'utf8'), 'key of 6')
  t.match(api.events, [{ reason: 'StaticPodInstallerCompleted' }])
  const warnings = stderr.split('\n').filter((line) => line.includes('"warn"') && line.includes('client-6'))
  t.equal(warnings.length, 4, 'each is a warning')
})

await t.test('install gives way to a newer installer on the node, writes nothing, and makes no event', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.putInstallers({ 'installer-6-n1': 'running', 'installer-7-n1': 'ended', 'installer-5-n1': 'running' })
  const { code, stderr } = await api.install(6, [], { POD_NAME: 'installer-6-n1' })
  t.equal(code, 1, stderr)
  t.match(stderr, /installer-7-n1 installs revision 7: revision 6 gives way to it; holdfast wrote nothing/)
  t.notOk(existsSync(api.resources))
  t.notOk(existsSync(api.manifests))
  t.same(api.events, [])
  t.equal(api.asked('/secrets/client-6'), 0, 'no object was even asked for')
  const query = api.server.requests.find(({ path }) => path.includes('/pods?'))?.path
  t.match(decodeURIComponent(query ?? ''), 'labelSelector=app=installer')
  t.match(decodeURIComponent(query ?? ''), 'fieldSelector=spec.nodeName=n1')
})

await t.test('install says what to do where the API does not know its installer pod', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.putInstallers({})
  const ended = await api.install(6, [], { POD_NAME: 'installer-6-n1' })
  nothingWritten(t, api, ended, 1, /no installer pod .*on node n1 in namespace demo.*unset POD_NAME/)
})

await t.test('the deadline ends an install from a silent server, and names the read that it waited for', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.override = ({ path }) => (path.endsWith('/secrets/client-6') ? true : undefined)
  const ended = await api.install(6, ['--timeout-duration=1s'])
  nothingWritten(t, api, ended, 1, /was not done within 1 s \(--timeout-duration\): .*client-6/)
})

await t.test('a refused event changes nothing about the installation', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.override = ({ method }, reply) => (method === 'POST' ? status(reply, 403, 'Forbidden') : undefined)
  const { code, stderr } = await api.install(6, ['--log-format=json'])
  t.equal(code, 0, stderr)
  t.match(stderr, /"reason":"StaticPodInstallerCompleted"/)
  t.match(stderr, /event.*refused|refused.*event/)
  t.ok(existsSync(api.manifest()))
})

await t.test('install --dry-run reads everything, and makes neither a file nor an event', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const { code, stdout, stderr } = await api.install(6, ['--dry-run'], { POD_NAME: 'installer-6-n1' })
  t.equal(code, 0, stderr)
  t.match(stdout, /would be created .*web-pod-6 +sha256:\S+\n[^]*\+ secrets\/client\/tls\.key/)
  t.notOk(existsSync(api.resources))
  t.same(api.events, [])
})

await t.test('install gives the pod a uid for a kubelet before 1.23, and the same one again', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const uid = () => (JSON.parse(readFileSync(api.manifest(), 'utf8')) as { metadata: { uid?: string } }).metadata.uid
  api.putNode('n1', 'v1.22.9')
  t.equal((await api.install(6)).code, 0)
  const first = uid()
  t.match(first, /^[0-9a-f-]{36}$/)
  t.equal((await api.install(6)).code, 0)
  t.equal(uid(), first)
  api.putRevision(7)
  t.equal((await api.install(7)).code, 0)
  t.match(uid(), /^[0-9a-f-]{36}$/)
  t.not(uid(), first, 'another revision is another pod')
})

await t.test('install takes an unreadable node for one with a current kubelet', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.override = ({ path }, reply) => (path.startsWith('/api/v1/nodes/') ? status(reply, 403, 'Forbidden') : undefined)
  const { code, stderr } = await api.install(6)
  t.equal(code, 0, stderr)
  t.match(stderr, /could not read the node's kubelet version; holdfast assumes a current one/)
  t.notMatch(readFileSync(api.manifest(), 'utf8'), 'uid')
})

await t.test('an error names a damaged object by its key, and never by its content', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const path = '/api/v1/namespaces/demo/secrets/client-6'
  api.objects.set(path, { ...api.objects.get(path), data: { good: '', 'tls.key': `${canary}!` } })
  nothingWritten(t, api, await api.install(6), 1, /Secret demo\/client-6.*tls\.key.*base64/)
})
