import { isIPv6, type Socket } from 'node:net'
import { ConnectionError } from './client.js'
import { proxyName } from './connection-error.js'

/** Basic credentials in a proxy's URL, as a header's value. */
export function proxyAuthorization(proxy: URL): string | undefined {
  if (proxy.username === '' && proxy.password === '') return undefined
  const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

/** Asks the proxy at the other end of the socket to connect it to the target (RFC 9110, CONNECT). */
export async function openTunnel(socket: Socket, proxy: URL, target: { host: string; port: number }): Promise<Socket> {
  const authority = `${isIPv6(target.host) ? `[${target.host}]` : target.host}:${target.port}`
  const authorization = proxyAuthorization(proxy)
  const lines = [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(authorization === undefined ? [] : [`Proxy-Authorization: ${authorization}`]),
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const head = await readConnectAnswer(socket, proxy)
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1]
  if (status === '200') return socket
  const advice = status === '407' ? '; the user name and password in the proxy URL are missing or wrong' : ''
  throw tunnelFault(proxy, `refused to connect to ${authority} (HTTP status ${status ?? 'unreadable'}${advice})`)
}

/** A proxy's answer has few headers. */
const MAX_HEAD = 16 * 1024

/** Reads to the end of the answer's head; the bytes behind it stay in the socket. */
function readConnectAnswer(socket: Socket, proxy: URL): Promise<string> {
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0)
    const stop = (): void => {
      socket.off('data', take)
      socket.off('error', fail)
      socket.off('close', ended)
      socket.pause()
    }
    const fail = (error: Error): void => {
      stop()
      reject(error)
    }
    const ended = (): void => fail(tunnelFault(proxy, 'closed the connection without an answer'))
    const take = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf('\r\n\r\n')
      if (end === -1 && head.length <= MAX_HEAD) return
      if (end === -1) {
        fail(tunnelFault(proxy, 'sent an answer without an end'))
        return
      }
      stop()
      if (head.length > end + 4) socket.unshift(head.subarray(end + 4))
      resolve(head.subarray(0, end).toString('latin1'))
    }
    socket.on('data', take)
    socket.on('error', fail)
    socket.on('close', ended)
  })
}

/** Names the proxy by host and port: its URL may hold a password. */
function tunnelFault(proxy: URL, problem: string): ConnectionError {
  return new ConnectionError(`${proxyName(proxy)} ${problem}`, 'connection')
}
