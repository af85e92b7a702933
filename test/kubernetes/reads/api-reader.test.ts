// Own process: it hears each warning of its process.
import t from 'tap'
import { ApiError } from '../../../src/kubernetes/reads/api-error.js'
import { ApiReader } from '../../../src/kubernetes/reads/api-reader.js'
import { InvalidObjectError } from '../../../src/kubernetes/reads/decode.js'
import { nodeTarget, podTarget } from '../../../src/kubernetes/reads/requests.js'
import { reference } from '../../objects/recorder.js'
import { json, type Reply } from '../connection/api-server.js'
import { start } from '../connection/connected.js'
import { recordingLog } from '../../objects/kubernetes/watching.js'

const cert = reference('serving-cert')
const signal = new AbortController().signal
const secret = {
  kind: 'Secret',
  metadata: { name: 'serving-cert', namespace: 'kube-system', uid: 'u1', resourceVersion: '7' },
  data: { 'tls.crt': Buffer.from('content').toString('base64') },
}

function html(reply: Reply, status: number): void {
  reply.writeHead(status, { 'content-type': 'text/html' }).end('<html><body>Nothing here</body></html>')
}

function status(reply: Reply, code: number, reason: string, details?: object): void {
  json(reply, code, { kind: 'Status', code, reason, message: `it is ${reason}`, ...(details && { details }) })
}

/** A reader of a real server that gives these answers, one after the other; the last one again and again. */
async function reading(t: Parameters<typeof start>[0], ...answers: ((reply: Reply) => void)[]) {
  const logged: string[] = []
  let asked = 0
  const { api, running } = await start(t, {
    handler: (_, reply) => {
      answers[Math.min(asked, answers.length - 1)]?.(reply)
      asked += 1
    },
  })
  const timing = { request: 10_000, firstDelay: 2, longestDelay: 10 }
  const options = { log: recordingLog(logged), timing, forbidden: 'print the Role' }
  return { reader: new ApiReader(api, options), logged, asked: () => asked, running }
}

async function failureOf(work: Promise<unknown>): Promise<ApiError> {
  try {
    await work
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('it should have failed')
}

void t.test('getObject decodes an object', async (t) => {
  const { reader, running } = await reading(t, (reply) => json(reply, 200, secret))
  const object = await reader.getObject(cert, signal)
  t.equal(Buffer.from(object?.data.get('tls.crt') ?? []).toString(), 'content')
  t.equal(running.requests[0]?.path, '/api/v1/namespaces/kube-system/secrets/serving-cert')
})

void t.test("only the API server's own NotFound of that object is absence", async (t) => {
  const { reader, asked } = await reading(t, (reply) => status(reply, 404, 'NotFound', { name: 'serving-cert' }))
  t.equal(await reader.getObject(cert, signal), undefined)
  t.equal(await reader.get(nodeTarget('serving-cert'), signal), undefined)
  t.equal(asked(), 2, 'each in one request')
})

void t.test(
  "a proxy's page is no object and no absence: the reader retries until the API server answers",
  async (t) => {
    const { reader, asked, logged } = await reading(
      t,
      (reply) => html(reply, 200),
      (reply) => html(reply, 502),
      (reply) => json(reply, 200, secret),
    )
    t.equal((await reader.getObject(cert, signal))?.resourceVersion, '7')
    t.equal(asked(), 3)
    t.equal(logged.length, 2)
  },
)

void t.test("a 404 that is not the API server's word on that object is an error with advice", async (t) => {
  const answers: ((reply: Reply) => void)[] = [
    (reply) => html(reply, 404),
    (reply) => json(reply, 404, { error: 'NotFound' }),
    (reply) => status(reply, 404, 'NotFound', { name: 'other' }),
  ]
  for (const answer of answers) {
    const { reader, asked } = await reading(t, answer)
    const error = await failureOf(reader.getObject(cert, signal))
    t.match(error, { reason: 'protocol', retriable: false, details: { status: 404 } })
    t.match(
      error.message,
      /^Secret kube-system\/serving-cert: get failed with HTTP 404.*: (the server has nothing at this path|https:.*HTML, not JSON)/,
    )
    t.equal(asked(), 1)
  }
})

void t.test('the reader throws the last failure at the deadline', async (t) => {
  const { reader, logged } = await reading(t, (reply) => html(reply, 503))
  const deadline = new AbortController()
  const work = failureOf(reader.getObject(cert, deadline.signal))
  while (logged.length < 2) await new Promise(setImmediate)
  deadline.abort(new Error('too late'))
  t.match((await work).message, /^Secret kube-system\/serving-cert: (get failed with HTTP 503|too late)/)
})

void t.test('the reader counts its tries', async (t) => {
  const { reader, asked } = await reading(t, (reply) => status(reply, 500, 'InternalError'))
  const error = await failureOf(reader.get(nodeTarget('n1'), signal, 4))
  t.match(error, { reason: 'server-error', retriable: true, details: { status: 500 } })
  t.equal(error.message, 'node n1: get failed with HTTP 500 (it is InternalError)')
  t.equal(asked(), 4)
})

void t.test('no Role is advised for a request without a credential', async (t) => {
  for (const code of [401, 403]) {
    const { api } = await start(t, { handler: (_, reply) => status(reply, code, 'refused') }, { as: 'other' })
    const { message } = await failureOf(new ApiReader(api, { log: recordingLog([]) }).get(nodeTarget('n1'), signal))
    t.match(message, /failed with HTTP 40[13] \(it is refused\): no credential was sent: give the user/)
    t.notMatch(message, /Role|bound/)
  }
})

void t.test('a 403 is final, and names the missing right', async (t) => {
  const { reader, asked } = await reading(t, (reply) => status(reply, 403, 'Forbidden'))
  const error = await failureOf(reader.getObject(cert, signal))
  t.match(error, { reason: 'denied', denied: true, retriable: false })
  t.equal(error.details.advice, 'print the Role')
  t.match(
    error.message,
    /^Secret kube-system\/serving-cert: get failed with HTTP 403 \(it is Forbidden\): print the Role$/,
  )
  t.equal(asked(), 1)
})

void t.test('a 401 is final, and leads to the credentials', async (t) => {
  const { reader } = await reading(t, (reply) => status(reply, 401, 'Unauthorized'))
  const error = await failureOf(reader.list(podTarget('ns'), {}, signal))
  t.match(error, { reason: 'unauthorized', denied: true, retriable: false, details: { status: 401 } })
  t.match(error.message, /^pods of ns: list failed with HTTP 401 .*check the user in the kubeconfig/)
})

void t.test('the reader waits for a Retry-After', async (t) => {
  const { reader } = await reading(
    t,
    (reply) => json(reply, 429, { kind: 'Status', code: 429 }, { 'retry-after': '1' }),
    (reply) => json(reply, 200, secret),
  )
  const startedAt = performance.now()
  await reader.getObject(cert, signal)
  // A timer of Node may be a millisecond early.
  t.ok(performance.now() - startedAt >= 999)
})

void t.test('a Retry-After of years overflows no timer', async (t) => {
  const overflows: string[] = []
  const hear = ({ name }: Error): void => void overflows.push(name)
  process.on('warning', hear)
  t.teardown(() => process.off('warning', hear))
  const stop = new AbortController()
  const api = { get: () => Promise.resolve({ status: 429, retryAfter: 99_999_999_000, date: undefined, body: {} }) }
  const log = { ...recordingLog([]), warn: () => void setImmediate(() => stop.abort()) }
  await t.rejects(new ApiReader(api, { log }).getObject(cert, stop.signal))
  t.strictSame(overflows, [])
})

void t.test('a list is its items, also where there are none', async (t) => {
  const metadata = { resourceVersion: '7' }
  const { reader, running } = await reading(
    t,
    (reply) => json(reply, 200, { kind: 'PodList', metadata, items: [{ a: 1 }] }),
    (reply) => json(reply, 200, { kind: 'PodList', metadata, items: null }),
    (reply) => json(reply, 200, { kind: 'Pod', metadata }),
    (reply) => json(reply, 200, { kind: 'PodList', items: null }),
    (reply) => json(reply, 200, { kind: 'PodList', metadata, items: [] }),
  )
  t.strictSame(await reader.list(podTarget('ns'), { labelSelector: 'app=installer' }, signal), [{ a: 1 }])
  t.equal(running.requests[0]?.path, '/api/v1/namespaces/ns/pods?labelSelector=app%3Dinstaller')
  t.strictSame(await reader.list(podTarget('ns'), {}, signal), [])
  t.strictSame(
    await reader.list(podTarget('ns'), {}, signal),
    [],
    'what is no list, or has no resourceVersion, is retried',
  )
  t.equal(running.requests.length, 5)
})

void t.test('a list that answers 404 is never an empty one', async (t) => {
  const { reader } = await reading(t, (reply) => status(reply, 404, 'NotFound'))
  t.equal((await failureOf(reader.list(podTarget('ns'), {}, signal))).details.status, 404)
})

void t.test('the reader does not retry an undecodable object, and no message holds its content', async (t) => {
  const broken = { ...secret, data: { 'tls.crt': 'canary!' } }
  const { reader, asked } = await reading(t, (reply) => json(reply, 200, broken))
  try {
    await reader.getObject(cert, signal)
    t.fail('it should have failed')
  } catch (error) {
    t.ok(error instanceof InvalidObjectError)
    t.equal(String(error), 'InvalidObjectError: Secret kube-system/serving-cert: data["tls.crt"] is not valid base64')
  }
  t.equal(asked(), 1)
})

void t.test('an already aborted signal sends no request', async (t) => {
  const { reader, asked } = await reading(t, (reply) => json(reply, 200, secret))
  const reason = new Error('ended')
  await t.rejects(reader.getObject(cert, AbortSignal.abort(reason)), reason)
  t.equal(asked(), 0)
})
