/** Another server than the kubeconfig means answers: the condition's cause names it, and its place. */
import { createServer as createPlain } from 'node:http'
import { createServer as createTls, type Server as TlsServer } from 'node:https'
import { createServer as createRaw, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { wrapConnectionError } from '../../../src/kubernetes/connection/connection-error.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { Recorder, reference } from '../../objects/recorder.js'
import { connectTo, serving } from './connected.js'
import { shortTiming } from '../../objects/kubernetes/watching.js'

const cert = reference('serving-cert')

async function listen(t: Test, server: Server | TlsServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** The report about an object where this URL is the API server's, once a list was tried, too. */
async function causeOf(t: Test, url: string): Promise<{ reason: string; message: string }> {
  const recorder = new Recorder()
  const source = new KubernetesSource(await connectTo(t, url), recorder, { timing: shortTiming })
  t.teardown(() => source.close())
  source.follow([{ reference: cert }])
  await recorder.until('several tries', () => recorder.losses.length >= 3)
  const causes = recorder.losses.map((loss) => loss?.message)
  t.same(new Set(causes.slice(1)).size, 1, 'and it is the same each time')
  const { observation } = await recorder.untilState(cert, 'unknown')
  return observation as unknown as { reason: string; message: string }
}

const page = '<!doctype html><html><head><title>Sign in</title></head><body>canary-5f</body></html>'

void t.test('an error tells of an HTTP server behind https://', async (t) => {
  const port = await listen(
    t,
    createPlain((_, reply) => reply.end(page)),
  )
  const { reason, message } = await causeOf(t, `https://127.0.0.1:${port}`)
  t.equal(reason, 'SourceUnavailable')
  t.match(message, `https://127.0.0.1:${port}: the server does not speak TLS on this port`)
})

void t.test('an error tells of an HTTPS server behind http://', async (t) => {
  const tls = createTls({ key: serving.key, cert: serving.certificate }, (_, reply) => reply.end('{}'))
  const port = await listen(t, tls)
  t.match((await causeOf(t, `http://127.0.0.1:${port}`)).message, /http:\/\/127.*does the server want https:\/\/\?/)
})

void t.test("an error tells of an HTTPS server of Go's behind http://", async (t) => {
  // net/http, server.go: what a TLS handshake that looks like HTTP is answered with, byte by byte.
  const answer = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'
  const port = await listen(
    t,
    createRaw((socket) => socket.on('error', () => {}).once('data', () => socket.end(answer))),
  )
  t.match(
    (await causeOf(t, `http://127.0.0.1:${port}`)).message,
    /HTTP 400: http:\/\/127.*does the server want https:\/\/\?/,
  )
})

void t.test('an error tells of a host that no name server knows', async (t) => {
  const { message } = await causeOf(t, 'https://api.holdfast.invalid:6443')
  t.match(
    message,
    /https:\/\/api\.holdfast\.invalid:6443: (could not resolve the host name|the name server does not answer)/,
  )
})

for (const status of [200, 404, 503]) {
  void t.test(`an error tells of a page of HTML with status ${status}`, async (t) => {
    const port = await listen(
      t,
      createPlain((_, reply) => reply.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end(page)),
    )
    const { message } = await causeOf(t, `http://127.0.0.1:${port}`)
    t.match(message, `http://127.0.0.1:${port}/api/v1/namespaces/kube-system/secrets`)
    t.match(message, /HTML, not JSON: a proxy, or another program, has answered/)
    t.notMatch(message, 'canary-5f')
  })
}

void t.test('an error tells that the process is out of file descriptors, and what to do', async (t) => {
  const cause = Object.assign(new Error('connect EMFILE 127.0.0.1:6443'), { code: 'EMFILE', syscall: 'connect' })
  const { message } = wrapConnectionError('https://127.0.0.1:6443', cause)
  t.match(message, /^https:.*: connect EMFILE 127\.0\.0\.1:6443; raise the limit of open files \(ulimit -n\)$/)
})
