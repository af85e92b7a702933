import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecure } from 'node:https'
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { proxyFromEnvironment } from '../../../src/kubernetes/connection/proxy.js'
import { startServer } from './api-server.js'
import { makeAuthority, temporaryDirectory } from './certificates.js'
import { authority, failure, once, serving } from './connected.js'
import { base64, kubeconfig, loadKubeconfig } from '../credentials/kubeconfig-text.js'

const directory = temporaryDirectory()
t.teardown(directory.remove)

/** A proxy that does CONNECT and whole URLs, and wants a password. */
async function startProxy(t: { teardown(work: () => unknown): void }, secure: boolean) {
  const seen: string[] = []
  /** The API server's: a proxy is to see none of it. */
  const authorizations: string[] = []
  const note = ({ headers }: IncomingMessage): void => {
    if (headers.authorization !== undefined) authorizations.push(headers.authorization)
  }
  const sockets = new Set<Socket>()
  const wanted = `Basic ${base64('me:pa ss')}`
  const forward = (request: IncomingMessage, reply: ServerResponse): void => {
    seen.push(`${request.method} ${request.url}`)
    note(request)
    const allowed = request.headers['proxy-authorization'] === wanted
    if (!allowed) return void reply.writeHead(407).end()
    httpRequest(request.url ?? '', { method: request.method, headers: request.headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(reply)
    }).end()
  }
  const server = secure ? createSecure({ key: serving.key, cert: serving.certificate }, forward) : createServer(forward)
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    seen.push(`CONNECT ${request.url}`)
    note(request)
    if (request.headers['proxy-authorization'] !== wanted) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      return
    }
    const upstream = connectTcp(Number(request.url?.split(':').pop()), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.write(head)
      upstream.pipe(client).pipe(upstream)
    })
    for (const socket of [upstream, client]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { seen, authorizations, address: `127.0.0.1:${port}`, scheme: secure ? 'https' : 'http' }
}

async function attempt(cluster: object, environment: Record<string, string> = {}) {
  const access = await loadKubeconfig(directory.path, kubeconfig(cluster, { token: 'x' }), { environment })
  const api = connect(access, { version: '1' })
  try {
    return await api.get('/path', {}, once)
  } finally {
    await api.close()
  }
}

void t.test('the client connects through a proxy of the kubeconfig', async (t) => {
  const running = await startServer({ serving })
  t.teardown(() => running.close())
  const proxy = await startProxy(t, false)
  const cluster = { server: running.url, 'certificate-authority-data': base64(authority.certificate) }
  const url = (credentials: string) => ({ ...cluster, 'proxy-url': `http://${credentials}${proxy.address}` })
  t.equal((await attempt(url('me:pa%20ss@'))).status, 200)
  t.strictSame(proxy.seen, [`CONNECT 127.0.0.1:${running.port}`], 'loopback too: the kubeconfig says so')
  t.equal(running.requests[0]?.httpVersion, '2.0', 'HTTP/2 inside the tunnel')
  t.equal(running.requests[0]?.headers['authorization'], 'Bearer x', 'inside the TLS')
  t.strictSame(proxy.authorizations, [])
  const refused = await failure(attempt(url('me:wrong-password@')))
  t.equal(
    refused.message,
    `proxy http://${proxy.address} refused to connect to 127.0.0.1:${running.port} (HTTP status 407; the user name and password in the proxy URL are missing or wrong)`,
  )
  t.match(await failure(attempt({ ...cluster, 'proxy-url': 'http://127.0.0.1:1' })), {
    message:
      /^proxy http:\/\/127\.0\.0\.1:1: connection refused \(ECONNREFUSED\); the API server was not asked: check proxy-url /,
  })
})

void t.test('the client connects through a proxy of the environment, itself behind TLS', async (t) => {
  const running = await startServer({ serving })
  t.teardown(() => running.close())
  const proxy = await startProxy(t, true)
  const cluster = {
    // An address of this machine that is no loopback address, and not in the certificate.
    server: `https://0.0.0.0:${running.port}`,
    'certificate-authority-data': base64(authority.certificate),
  }
  const environment = { HTTPS_PROXY: `https://me:pa%20ss@${proxy.address}` }
  // The system's authorities judge the proxy's certificate, and the cluster's, as in client-go: none of them has signed it.
  const stranger = { ...cluster, 'certificate-authority-data': base64(makeAuthority('stranger').certificate) }
  t.match(await failure(attempt(stranger, environment)), { message: /certificate/ })
  t.strictSame(proxy.seen, [])
  t.match(await failure(attempt(cluster, { ...environment, NO_PROXY: '0.0.0.0' })), {
    message: /0\.0\.0\.0.*ERR_TLS_CERT_ALTNAME_INVALID/,
  })
  t.strictSame(proxy.seen, [], 'that was the server itself')
  t.match(await failure(attempt(cluster, environment)), { message: /0\.0\.0\.0.*ERR_TLS_CERT_ALTNAME_INVALID/ })
  t.ok(proxy.seen.length > 0, 'the cluster’s authority has signed the proxy’s')
})

void t.test('the client connects through a proxy behind TLS that the system trusts', async (t) => {
  const running = await startServer({ serving })
  t.teardown(() => running.close())
  const proxy = await startProxy(t, true)
  const cluster = {
    server: `https://api.example:${running.port}`,
    'certificate-authority-data': base64(authority.certificate),
  }
  const file = join(directory.path, 'secure')
  writeFileSync(file, kubeconfig(cluster, { token: 'x' }))
  writeFileSync(join(directory.path, 'ca.crt'), authority.certificate)
  const script = join(import.meta.dirname, 'through-secure-proxy.js')
  const child = spawn(process.execPath, [script, file], {
    env: {
      ...process.env,
      NODE_EXTRA_CA_CERTS: join(directory.path, 'ca.crt'),
      HTTPS_PROXY: `https://me:pa%20ss@${proxy.address}`,
      NO_PROXY: '',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.equal((await child.stdout.setEncoding('utf8').toArray()).join('').trim(), '200')
  t.strictSame(proxy.seen, [`CONNECT api.example:${running.port}`])
  t.equal(running.requests[0]?.httpVersion, '2.0')
})

void t.test('plain http goes through a proxy by its whole URL', async (t) => {
  const running = await startServer({ protocol: 'http' })
  t.teardown(() => running.close())
  const proxy = await startProxy(t, false)
  const cluster = { server: running.url, 'proxy-url': `http://me:pa%20ss@${proxy.address}` }
  t.equal((await attempt(cluster)).status, 200)
  t.strictSame(proxy.seen, [`GET ${running.url}/path`])
  t.strictSame([proxy.authorizations, running.requests[0]?.headers['authorization']], [[], undefined])
})

void t.test('proxyFromEnvironment chooses a proxy as Go programs do', async (t) => {
  const HTTPS_PROXY = 'http://p:1'
  const cases: [string, Record<string, string>, string | undefined][] = [
    ['https://a', {}, undefined],
    ['https://a', { HTTPS_PROXY }, 'http://p:1/'],
    ['https://a', { https_proxy: 'p:1' }, 'http://p:1/'],
    ['https://a', { HTTPS_PROXY, https_proxy: 'http://q' }, 'http://p:1/'],
    ['https://a', { HTTP_PROXY: 'http://p' }, undefined],
    ['http://a', { HTTP_PROXY: 'http://p' }, 'http://p/'],
    ['http://a', { HTTPS_PROXY }, undefined],
    ['https://localhost:6443', { HTTPS_PROXY }, undefined],
    ['https://127.0.0.1', { HTTPS_PROXY }, undefined],
    ['https://127.9.9.9', { HTTPS_PROXY }, undefined],
    ['https://[::1]:6443', { HTTPS_PROXY }, undefined],
    ['https://a', { HTTPS_PROXY, NO_PROXY: '*' }, undefined],
    ['https://a.b', { HTTPS_PROXY, NO_PROXY: 'x, A.B ,y' }, undefined],
    ['https://c.a.b', { HTTPS_PROXY, NO_PROXY: 'a.b' }, undefined],
    ['https://ca.b', { HTTPS_PROXY, NO_PROXY: 'a.b' }, 'http://p:1/'],
    ['https://a.b', { HTTPS_PROXY, NO_PROXY: '.a.b' }, 'http://p:1/'],
    ['https://c.a.b', { HTTPS_PROXY, no_proxy: '.a.b' }, undefined],
    ['https://c.a.b', { HTTPS_PROXY, NO_PROXY: '*.a.b' }, undefined],
    ['https://a.b:6443', { HTTPS_PROXY, NO_PROXY: 'a.b:6443' }, undefined],
    ['https://a.b', { HTTPS_PROXY, NO_PROXY: 'a.b:6443' }, 'http://p:1/'],
    ['https://a.b', { HTTPS_PROXY, NO_PROXY: 'a.b:443' }, undefined],
    ['https://10.1.2.3', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/8' }, undefined],
    ['https://11.1.2.3', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/8' }, 'http://p:1/'],
    ['https://10.1.2.3', { HTTPS_PROXY, NO_PROXY: '10.1.2.3' }, undefined],
    ['https://10.1.2.3:6443', { HTTPS_PROXY, NO_PROXY: '10.1.2.3:443' }, 'http://p:1/'],
    ['https://[fd00::1]:6443', { HTTPS_PROXY, NO_PROXY: '[fd00:0::1]:6443' }, undefined],
    ['https://[fd00::1]:6443', { HTTPS_PROXY, NO_PROXY: 'fd00::1' }, undefined],
    ['https://[fd00::1]', { HTTPS_PROXY, NO_PROXY: 'fd00::/16' }, undefined],
    ['https://10.1.2.3', { HTTPS_PROXY, NO_PROXY: '3' }, 'http://p:1/'],
  ]
  for (const [server, environment, expected] of cases) {
    const name = `${server} with ${JSON.stringify(environment)}`
    t.equal(proxyFromEnvironment(new URL(server), environment)?.href, expected, name)
  }
  t.throws(() => proxyFromEnvironment(new URL('https://a'), { HTTPS_PROXY: 'socks5://u:pw@h' }), {
    message: 'HTTPS_PROXY: SOCKS proxies are not supported; use one that starts with http:// or https://',
  })
  t.throws(() => proxyFromEnvironment(new URL('https://a'), { https_proxy: 'http://u:pw@[' }), {
    message: 'https_proxy: not a URL',
  })
})
