/** Findings about the process, the state directory, the clock and the source. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { makeCertificateFrom, makeKey } from '../directories/make-certificates.js'
import { isRoot, Scene } from './scene.js'

const thisProcess = 'this process'
const strace = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'

const secretNamed = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: {} })

await t.test('check passes on a plain node', async (t) => {
  const scene = new Scene(t)
  const checked = await scene.check(t)
  t.match(checked.one('AIO', thisProcess), {
    status: 'OK',
    found: /runs the fsyncs of a barrier in parallel/,
  })
  t.match(checked.one('core dumps', thisProcess), { status: 'OK', found: /^off/ })
  t.match(checked.one('open files', thisProcess), { status: 'OK', found: /^up to \d+$/ })
  t.match(checked.one('state directory', scene.path('state')), {
    status: /OK|WARN/,
    found: /^does not exist: holdfast will create it in .*; (writable, )?on \S+/,
  })
  t.match(checked.one('files', scene.path('objects')), { status: 'OK', found: '1 file, readable and valid' })
  t.match(checked.one('objects', scene.path('objects')), { status: 'OK', found: 'Secret demo/serving-cert' })
  t.same(readdirSync(scene.parent), [])
  const fields = ['subject', 'check', 'status', 'found', 'advice']
  for (const finding of checked.document.checks) t.same(Object.keys(finding), fields)
  t.same(Object.keys(checked.document), ['checks', 'faults', 'warnings'])
})

for (const [call, code, advice] of [
  ['io_setup', 'EPERM', /seccomp profile/],
  ['io_setup', 'ENOSYS', /seccomp profile/],
  ['io_setup', 'EAGAIN', /fs\.aio-max-nr/],
  ['io_submit', 'EPERM', /seccomp profile/],
  ['io_submit', 'EINVAL', /Linux 4\.18/],
] as const) {
  await t.test(`check reports a refused AIO: ${call}, ${code}`, { skip: strace }, async (t) => {
    const scene = new Scene(t)
    const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${code}`]
    const checked = await scene.check(t, { under: ['strace', '-f', '-qq', '-o', '/dev/null', ...inject] })
    t.match(checked.one('AIO', thisProcess), {
      status: 'WARN',
      found: `refused (${call}: ${code}): barriers run on threads instead, slower but as durable`,
      advice,
    })
  })
}

await t.test('check reports AIO turned off, and few descriptors', async (t) => {
  const scene = new Scene(t)
  const under = ['prlimit', '--nofile=128:128']
  const checked = await scene.check(t, { under, env: { HOLDFAST_AIO: 'off' } })
  t.match(checked.one('AIO', thisProcess), { status: 'OK', found: /^turned off by HOLDFAST_AIO/ })
  t.match(checked.one('open files', thisProcess), { status: 'WARN', found: /^only up to 128/ })
})

await t.test('check reports core dumps where it may not raise the limit', async (t) => {
  const scene = new Scene(t)
  const dropped = isRoot ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
  const checked = await scene.check(t, { under: ['prlimit', '--core=0:0', ...dropped] })
  t.match(checked.one('core dumps', thisProcess), { status: 'OK', found: /^off/ })
})

await t.test('check judges the state directory', async (t) => {
  const scene = new Scene(t)
  writeFileSync(scene.path('state'), '')
  const subject = scene.path('state')
  t.match((await scene.check(t)).one('state directory', subject), {
    status: 'FAULT',
    found: /not a directory$/,
  })
  rmSync(scene.path('state'))
  if (!isRoot) {
    mkdirSync(subject)
    chmodSync(subject, 0o500)
    t.match((await scene.check(t)).one('state directory', subject), { status: 'FAULT', found: /EACCES$/ })
    return
  }
  mkdirSync(subject)
  const mounted = (options: string) => {
    const script = `mount ${options} tmpfs '${subject}' && exec "$@"`
    return { under: ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh'] }
  }
  t.match((await scene.check(t, mounted('-t tmpfs'))).one('state directory', subject), {
    status: 'WARN',
    found: "on tmpfs: the agent's last status is lost after a restart",
  })
  t.match((await scene.check(t, mounted('-t tmpfs -o ro'))).one('state directory', subject), {
    status: 'FAULT',
    found: /may not write to .*: EROFS$/,
  })
})

await t.test('check compares certificates with the clock', async (t) => {
  const scene = new Scene(t)
  const day = 86_400_000
  const publish = async (days: number, from = Date.now()) => {
    const key = makeKey()
    scene.put('serving-cert', { 'tls.crt': makeCertificateFrom(key, new Date(from), days), 'tls.key': key })
    t.equal((await scene.run('sync')).code, 0)
    return scene.check(t)
  }
  t.match((await publish(30)).one('certificates'), {
    status: 'OK',
    found: /^one certificate, valid now; the first to expire is tls\.crt, at \d{4}-/,
  })
  t.match((await publish(30, Date.now() + 10 * day)).one('certificates'), {
    status: 'WARN',
    found: /^tls\.crt is not valid before \d{4}-.*Z; the clock says \d{4}-/,
    advice: /set the clock/,
  })
  const checked = await publish(1, Date.now() - 10 * day)
  t.match(checked.one('certificates'), {
    status: 'WARN',
    found: /^tls\.crt expired at \d{4}-.*Z; the clock says \d{4}-/,
    advice: 'renew the certificate, or set the clock',
  })
  t.notMatch(JSON.stringify(checked.document), /BEGIN/)
})

await t.test('check names the files and objects that the agent does not read', async (t) => {
  const scene = new Scene(t)
  const subject = scene.path('objects')
  scene.configure([{ path: scene.target, contents: [{ secret: 'serving-cert', into: 'a' }] }])
  const external = 'apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a}\n'
  writeFileSync(join(subject, 'external.yaml'), external)
  writeFileSync(join(subject, 'cert.yaml.enc'), 'x')
  t.match((await scene.check(t)).one('files', subject), {
    status: 'OK',
    found: '2 files, readable and valid; not read: cert.yaml.enc and ExternalSecret in external.yaml',
  })
  for (const name of readdirSync(subject)) if (!name.endsWith('.enc')) rmSync(join(subject, name))
  t.match((await scene.check(t)).one('files', subject), {
    status: 'WARN',
    found: 'no file there is one that the agent reads; not read: cert.yaml.enc',
    advice: /names end with \.yaml, \.yml or \.json$/,
  })
})

await t.test('check reports unreadable files, broken files and missing objects', async (t) => {
  const scene = new Scene(t)
  const subject = scene.path('objects')
  const contents = ['serving-cert', 'twice', 'none'].map((secret) => ({ secret, into: secret }))
  const optional = { configMap: 'perhaps', into: 'perhaps', optional: true }
  scene.configure([{ path: scene.target, contents: [...contents, optional] }])
  scene.put('twice', { a: 'very-secret' })
  writeFileSync(join(subject, 'again.json'), JSON.stringify(secretNamed('twice')))
  const whole = await scene.check(t)
  t.match(whole.all('objects', subject), [
    { status: 'OK', found: 'Secret demo/serving-cert and ConfigMap demo/perhaps (optional, absent)' },
    { status: 'FAULT', found: /Secret demo\/twice: more than one file holds it/ },
    { status: 'WARN', found: 'no file holds Secret demo/none' },
  ])
  writeFileSync(join(subject, 'bad.yaml'), 'kind: Secret\n  very-secret: [')
  const broken = await scene.check(t)
  t.match(broken.all('files', subject), [{ status: 'FAULT', found: /^bad\.yaml:\d+: not valid YAML/ }])
  t.notMatch(JSON.stringify(broken.document), /very-secret/)
  rmSync(subject, { recursive: true })
  const gone = await scene.check(t)
  t.match(gone.all('files', subject), [{ status: 'FAULT', found: /objects: could not be read: ENOENT$/ }])
})

await t.test('check names each fault on the way to the API server', async (t) => {
  const scene = new Scene(t)
  const directories = [{ path: scene.target, contents: [{ secret: 'serving-cert' }] }]
  const kubeconfig = scene.path('kubeconfig')
  const source = { namespace: 'demo', kubernetes: { kubeconfig } }
  scene.configure(directories, { source })
  const at = async (options = {}) => {
    const checked = await scene.check(t, options, ['--timeout', '3s'])
    return checked.document.checks.filter(({ subject }) => subject === 'API server')
  }
  t.match(await at(), [
    { check: 'node name', status: 'WARN' },
    { check: 'access', status: 'FAULT', found: `cannot read ${kubeconfig} (ENOENT)` },
  ])
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${address.port}` } }],
    users: [{ name: 'u', user: { token: 'very-secret' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(kubeconfig, JSON.stringify(document))
  const away = await at({ env: { NODE_NAME: 'N1' } })
  t.match(away, [
    { check: 'node name', status: 'OK', found: 'n1' },
    { check: 'access', status: 'OK', found: `kubeconfig ${kubeconfig}` },
    { check: 'reachable', status: 'FAULT', found: /ECONNREFUSED/ },
  ])
  t.equal(away.length, 3, 'no permission is asked for')
  t.notMatch(JSON.stringify(away), /very-secret/)
})
