import type { ApiStream } from '../../../src/kubernetes/connection/client.js'
import { connect, type ConnectOptions } from '../../../src/kubernetes/connection/connection.js'
import { ConnectionError, type ApiClient } from '../../../src/kubernetes/connection/client.js'
import type { TransportLimits } from '../../../src/kubernetes/connection/transport.js'
import { startServer, type ApiServer, type ServerOptions } from './api-server.js'
import { issue, makeAuthority, temporaryDirectory } from './certificates.js'
import { base64, kubeconfig, loadKubeconfig } from '../credentials/kubeconfig-text.js'

export const authority = makeAuthority('authority')
export const serving = issue(authority, { name: 'server', alternativeNames: 'IP:127.0.0.1,DNS:api.example' })

/** For requests that are to be answered: more than any starved machine needs. */
export const once = { timeout: 60_000 }

interface Test {
  teardown(work: () => unknown): void
}

/** A server, a kubeconfig for it and a client, all ended with the test. */
export async function start(
  t: Test,
  server: ServerOptions,
  user: object = { token: 'a-token' },
  limits?: Partial<TransportLimits>,
  more: Pick<ConnectOptions, 'rate' | 'observer'> = {},
): Promise<{ api: ApiClient; running: ApiServer }> {
  const running = await startServer({ serving, ...server })
  t.teardown(() => running.close())
  return { api: await connectTo(t, running.url, user, limits, more), running }
}

export async function connectTo(
  t: Test,
  url: string,
  user: object = { token: 'a-token' },
  limits?: Partial<TransportLimits>,
  more: Pick<ConnectOptions, 'rate' | 'observer'> = {},
): Promise<ApiClient> {
  const directory = temporaryDirectory()
  const trust = { 'certificate-authority-data': base64(authority.certificate) }
  const cluster = { server: url, ...(url.startsWith('https') && trust) }
  const access = await loadKubeconfig(directory.path, kubeconfig(cluster, user, 'kube-system'))
  const api = connect(access, { version: '1.2.3', ...(limits && { limits }), ...more })
  t.teardown(async () => {
    await api.close()
    directory.remove()
  })
  return api
}

/** All lines of a stream. */
export async function collect({ takeLines }: Pick<ApiStream, 'takeLines'>): Promise<string[]> {
  const all: string[] = []
  await takeLines((line) => {
    all.push(line.take())
    return Promise.resolve()
  })
  return all
}

/** The error of the work, which must be a ConnectionError. */
export async function failure(work: Promise<unknown>): Promise<ConnectionError> {
  try {
    await work
  } catch (error) {
    if (error instanceof ConnectionError) return error
    throw error
  }
  throw new Error('it should have failed')
}
