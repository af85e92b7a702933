/** A watch whose requests are denied, for one object, for a moment, or for good. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Credentials } from '../../../src/kubernetes/credentials/credentials.js'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { Recorder, reference } from '../recorder.js'
import { refuse } from '../../kubernetes/connection/api-server.js'
import { authority } from '../../kubernetes/connection/connected.js'
import { temporaryDirectory } from '../../kubernetes/connection/certificates.js'
import { base64, kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { ModelCluster } from './model-cluster.js'
import { recordingLog, shortTiming, startWatching } from './watching.js'

const cert = reference('serving-cert')
const other = reference('other')

void t.test('a denied object is reported with its missing right, retried, and holds up no other', async (t) => {
  let denied = true
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    c.put('serving-cert', 'one')
    c.put('other', 'two')
    const message = 'secrets "serving-cert" is forbidden: User "u" cannot watch resource "secrets"'
    c.intercept = ({ name }, reply) => denied && name === 'serving-cert' && refuse(reply, 403, message)
  })
  source.follow([{ reference: cert }, { reference: other }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'AccessDenied' })
  const { message } = observation as { message: string }
  for (const part of [
    'Secret kube-system/serving-cert',
    'watch',
    'HTTP 403',
    'User "u" cannot',
    'Role in namespace kube-system',
    'get, list and watch',
    'resource secrets',
    'resourceNames: [serving-cert]',
  ]) {
    t.ok(message.includes(part), part)
  }
  await recorder.untilState(other, 'present', 'two')
  cluster.put('other', 'three')
  await recorder.untilState(other, 'present', 'three')
  await recorder.until('tried again', () => recorder.restarts.length >= 3)
  t.equal(recorder.reported.filter(({ object }) => object.endsWith('cert')).length, 1, 'reported once')
  denied = false
  await recorder.untilState(cert, 'present', 'one')
  t.ok(recorder.restarts.every((reason) => reason === 'denied'))
})

void t.test("a missing right to watch is named by itself, and the list's objects are published", async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    c.put('serving-cert', 'one')
    c.streaming = 'refused'
    c.intercept = ({ verb, query }, reply) =>
      verb === 'watch' && !query.has('sendInitialEvents') && refuse(reply, 403, 'forbidden')
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  await recorder.until('denied', () => recorder.restarts.includes('denied'))
  t.match(recorder.losses.at(-1), {
    reason: 'AccessDenied',
    message: /watch failed with HTTP 403 .*: this user lacks the verb watch: .* allows the verbs get, list and watch/,
  })
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
})

void t.test('401 is a denial, too, and never absence', async (t) => {
  const { recorder, source } = await startWatching(t, {}, (c) => {
    c.intercept = (_, reply) => refuse(reply, 401, 'Unauthorized')
  })
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'AccessDenied', message: /rejects the credentials/ })
  t.equal(recorder.restarts[0], 'unauthorized')
})

void t.test('a passing denial hides no known object', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { denialGrace: 60_000 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  // As an API server that has just started, and has not read its roles yet.
  let denials = 0
  cluster.intercept = (_, reply) => {
    denials += 1
    return denials <= 2 && refuse(reply, 403, 'forbidden')
  }
  cluster.cut()
  await recorder.until('back', () => denials > 2 && cluster.watching === 1)
  t.equal(recorder.reported.length, 1, 'nobody has heard of it')
})

void t.test('a lasting denial is reported, and ends', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { denialGrace: 400 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.intercept = (_, reply) => refuse(reply, 403, 'forbidden')
  const startedAt = performance.now()
  cluster.cut()
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'AccessDenied' })
  t.ok(performance.now() - startedAt >= 400)
  cluster.intercept = () => false
  await recorder.untilState(cert, 'present', 'one')
})

void t.test('a mistake in the kubeconfig is reported once for all watches, and a mended one is followed', async (t) => {
  const cluster = new ModelCluster()
  cluster.put('serving-cert', 'one')
  await cluster.start()
  t.teardown(() => cluster.stop())
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const file = join(directory.path, 'config')
  writeFileSync(
    file,
    kubeconfig({ server: cluster.url, 'certificate-authority-data': base64(authority.certificate) }, {}),
  )
  let context = 'nope'
  const recorder = new Recorder()
  const logged: string[] = []
  const access = new Credentials({
    kubeconfig: file,
    get context() {
      return context
    },
    environment: {},
  })
  const source = new KubernetesSource(connect(access, { version: '1' }), recorder, {
    timing: shortTiming,
    log: recordingLog(logged),
  })
  t.teardown(() => source.close())
  source.follow([{ reference: cert }, { reference: reference('a') }, { reference: reference('b') }])
  await recorder.until('several tries', () => recorder.restarts.length >= 12)
  const warnings = logged.filter((line) => line.includes('"warn"'))
  t.equal(warnings.length, 1, warnings.join('\n'))
  t.match(warnings[0], 'there is no context')
  t.same([...new Set(recorder.restarts)], ['credentials'], 'nobody was asked, so that nobody refused them')
  t.match(recorder.last(cert)?.observation, { reason: 'SourceUnavailable', permanent: true })
  context = ''
  await recorder.untilState(cert, 'present', 'one')
})
