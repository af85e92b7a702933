import t from 'tap'
import { postEvent } from '../../../src/kubernetes/events/event-body.js'
import { json } from '../connection/api-server.js'
import { start } from '../connection/connected.js'
import { recordingLog } from '../../objects/kubernetes/watching.js'

const subject = { apiVersion: 'operator.example/v1', kind: 'StaticPod', namespace: 'ns', name: 'web', uid: 'u1' }
const draft = { subject, type: 'Normal', reason: 'StaticPodInstallerCompleted', action: 'Install' } as const
const reporter = { controller: 'static-pod-installer', instance: 'i'.repeat(200) }

void t.test('postEvent makes an event in its namespace, within the limits of the API', async (t) => {
  const { api, running } = await start(t, { handler: (_, reply) => json(reply, 201, {}) })
  const logged: string[] = []
  const options = { reporter, log: recordingLog(logged), timeout: 60_000, name: 'web-n1' }
  await postEvent(api, { ...draft, note: 'ä'.repeat(2_000) }, options)
  const [request] = running.requests
  t.match(request, { method: 'POST', path: '/apis/events.k8s.io/v1/namespaces/ns/events' })
  const body = JSON.parse(request?.body ?? '') as Record<string, unknown> & { note: string }
  t.match(body, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: 'ns', name: /^web-n1\.[0-9a-f]{16}$/ },
    type: 'Normal',
    reason: 'StaticPodInstallerCompleted',
    action: 'Install',
    reportingController: 'static-pod-installer',
    regarding: { apiVersion: 'operator.example/v1', kind: 'StaticPod', name: 'web', namespace: 'ns', uid: 'u1' },
  })
  t.match(String(body.eventTime), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  t.ok(Buffer.byteLength(body.note) <= 1024)
  t.ok(Buffer.byteLength(String(body.reportingInstance)) <= 128)
  t.strictSame(logged, [])
})

void t.test('postEvent only warns of an event that is refused, or cannot go', async (t) => {
  const refusal = { kind: 'Status', code: 403, message: 'events is forbidden' }
  const { api, running } = await start(t, { handler: (_, reply) => json(reply, 403, refusal) })
  const logged: string[] = []
  const options = { reporter, log: recordingLog(logged), timeout: 60_000 }
  await postEvent(api, { ...draft, note: 'done' }, options)
  t.match(logged[0], /events is forbidden/)
  t.equal(running.requests.length, 1, 'there is one try')
  await api.close()
  await postEvent(api, { ...draft, note: 'done' }, options)
  t.match(logged[1], /could not be sent/)
})
