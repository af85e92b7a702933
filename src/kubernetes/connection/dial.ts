import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { checkServerIdentity, connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { systemAuthorities, trusting } from '../../x509/authorities.js'
import type { AccessSnapshot } from '../credentials/access.js'
import { ConnectionError } from './client.js'
import { proxyName, proxyError } from './connection-error.js'
import { unlessAborted } from '../../deadline.js'
import { addressOf } from './proxy.js'
import { openTunnel } from './tunnel.js'

/** Milliseconds without data after which the kernel asks whether the other end is there. */
export const KEEP_ALIVE = 15_000

/**
 * Opens a connection to the API server: TCP, through the proxy if there is one, then TLS with these protocols offered.
 * Rejects within `timeout` milliseconds with its first error, or the signal's reason; nothing stays open then. For a plain http:// server
 * behind a proxy the connection ends at the proxy, which wants the whole URL in each request.
 */
export async function dial(
  access: AccessSnapshot,
  protocols: readonly string[],
  timeout: number,
  signal: AbortSignal,
): Promise<Socket | TLSSocket> {
  const { server, proxy } = access
  const target = addressOf(server)
  const opened: Socket[] = []
  /** The connection has not got beyond the proxy. */
  let atProxy = proxy
  const work = async (): Promise<Socket> => {
    const reach = async (): Promise<Socket> => {
      const socket = proxy ? await openProxy(access, proxy, opened) : await openTcp(target, opened)
      const reached = proxy && server.protocol === 'https:' ? await openTunnel(socket, proxy, target) : socket
      atProxy = undefined
      return reached
    }
    if (server.protocol !== 'https:') return reach()
    return trusting(access.authority, async (trust) =>
      handshake({ ...tlsOptions(access, await reach(), protocols), ...trust }, opened),
    )
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const where = atProxy ? proxyName(atProxy) : server.origin
      reject(new ConnectionError(`${where}: no connection within ${timeout} ms`, 'timeout'))
    }, timeout)
  })
  const dialing = work()
  try {
    return await unlessAborted(Promise.race([dialing, late]), signal)
  } catch (error) {
    dialing.catch(() => undefined)
    for (const socket of opened) socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

const errors = new WeakMap<Socket, Error>()

/**
 * The error of a socket since it was dialled. With TLS 1.3 a server judges a client certificate only after our side of
 * the handshake is done: its refusal may come before the next listener does.
 */
export function errorSince(socket: Socket): Error | undefined {
  return errors.get(socket) ?? (socket.destroyed ? new Error('the server closed the connection') : undefined)
}

/** Of a company's proxy the system knows the authority, of the cluster's own the kubeconfig. */
async function openProxy({ authority = '' }: AccessSnapshot, proxy: URL, opened: Socket[]): Promise<Socket> {
  const address = addressOf(proxy)
  try {
    if (proxy.protocol !== 'https:') return await openTcp(address, opened)
    return await trusting(`${authority}\n${systemAuthorities()}`, async (trust) =>
      handshake({ socket: await openTcp(address, opened), ...nameOptions(address.host), ...trust }, opened),
    )
  } catch (error) {
    throw proxyError(proxy, error)
  }
}

function openTcp(address: { host: string; port: number }, opened: Socket[]): Promise<Socket> {
  const socket = connectTcp({ ...address, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE })
  return opening(socket, 'connect', opened)
}

function handshake(options: ConnectionOptions, opened: Socket[]): Promise<TLSSocket> {
  return opening(connectTls(options), 'secureConnect', opened)
}

function opening<S extends Socket>(socket: S, event: string, opened: Socket[]): Promise<S> {
  opened.push(socket)
  return new Promise((resolve, reject) => {
    const ended = (): void => reject(new Error('the connection was closed while it was being set up'))
    socket.on('error', reject)
    socket.once('close', ended)
    socket.once(event, () => {
      socket.off('error', reject)
      socket.off('close', ended)
      socket.on('error', (error) => errors.set(socket, error))
      resolve(socket)
    })
  })
}

function tlsOptions(access: AccessSnapshot, socket: Socket, protocols: readonly string[]): ConnectionOptions {
  const { server, serverName, certificate, insecure } = access
  return {
    socket,
    ...nameOptions(serverName ?? addressOf(server).host),
    ...(certificate && { cert: certificate.chain, key: certificate.key }),
    rejectUnauthorized: !insecure,
    ALPNProtocols: [...protocols],
  }
}

/** SNI is for names alone; an address is only compared with the certificate. */
function nameOptions(name: string): ConnectionOptions {
  return {
    servername: isIP(name) === 0 ? name : '',
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  }
}
