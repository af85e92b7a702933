import type { Log } from '../log.js'
import type { ApiClient } from '../objects/kubernetes/client.js'
import { UsageError } from './exit-codes.js'
import { version } from './version.js'

export interface ApiFlags {
  readonly kubeconfig?: string
  readonly context?: string
}

/**
 * A client of the API server, found as kubectl finds it: --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config.
 * Close it in the end. Before its credentials are read, this process can no longer leave them in a core file.
 * @throws UsageError where there is none, or its file is wrong
 */
export async function openApi(
  { kubeconfig, context }: ApiFlags,
  environment: NodeJS.ProcessEnv,
  log: Log,
): Promise<{ api: ApiClient }> {
  const [{ disableCoreDumps }, { loadClusterAccess }, { connect }] = await Promise.all([
    import('../durable/index.js'),
    import('../objects/kubernetes/cluster-access.js'),
    import('../objects/kubernetes/connection.js'),
  ])
  disableCoreDumps()
  try {
    const access = await loadClusterAccess({ kubeconfig, context, environment, log })
    return { api: connect(access, { version: version() }) }
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
