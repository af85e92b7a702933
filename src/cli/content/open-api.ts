import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { ApiClient } from '../../kubernetes/connection/client.js'
import type { Credentials } from '../../kubernetes/credentials/credentials.js'
import type { FileVersion } from '../../static-pods/ready/probe-files.js'
import type { ApiWay } from '../../static-pods/ready/probe-mirror-pod.js'
import { UsageError } from '../words/exit-codes.js'
import { version } from '../words/version.js'

export interface ApiFlags {
  readonly kubeconfig?: string
  readonly context?: string
}

/**
 * A client of the API server, found as kubectl finds it: --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config.
 * Close it in the end. It disables this process's core dumps before it reads credentials, so that no core file holds them.
 * @throws UsageError where there is none, or its file is wrong
 */
export async function openApi(
  { kubeconfig, context }: ApiFlags,
  environment: NodeJS.ProcessEnv,
  log: Log,
): Promise<{ api: ApiClient }> {
  const [{ disableCoreDumps }, { Credentials }, { connect }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../kubernetes/credentials/credentials.js'),
    import('../../kubernetes/connection/connection.js'),
  ])
  disableCoreDumps()
  try {
    const credentials = await new Credentials({ kubeconfig, context, environment, log }).load()
    return { api: connect(credentials, { version: version() }) }
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/**
 * A client for each version of the files of a kubeconfig that differs from the first one; each trusts the authorities of all. Each request
 * reads the first one: where it cannot be used, the request fails, and tells why. The others are read now. Close each in the end.
 */
export async function openApiWays(
  { kubeconfig, context }: Required<ApiFlags>,
  environment: NodeJS.ProcessEnv,
  log: Log,
  [first, ...others]: readonly [FileVersion, ...FileVersion[]],
): Promise<ApiWay[]> {
  const [{ disableCoreDumps }, { Credentials }, { connect }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../kubernetes/credentials/credentials.js'),
    import('../../kubernetes/connection/connection.js'),
  ])
  disableCoreDumps()
  const all: Credentials[] = []
  const readBy = ({ read }: FileVersion) =>
    new Credentials({ kubeconfig, context, environment, log, read, timing: { look: 0 }, trusting: all })
  all.push(readBy(first))
  for (const other of others) {
    // An unusable version is no other way; a probe then shows what the first one lacks.
    const loaded = await readBy(other)
      .load()
      .catch((error: unknown) => {
        log.warn({}, `the mirror pod is asked without what the directory held before: ${messageOf(error)}`)
        return undefined
      })
    if (loaded && other.hasOwn) all.push(loaded)
  }
  return all.map((credentials) => {
    const namespace = async () => {
      await credentials.current()
      return credentials.namespace
    }
    return { api: connect(credentials, { version: version() }), namespace }
  })
}
