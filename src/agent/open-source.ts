/* eslint-disable no-restricted-syntax -- The start comes here; a source of another kind is opened at a reload, by hand. */
import type { SourceConfiguration } from '../config/types.js'
import type { Log } from '../log.js'
import type { ObservableSource } from '../objects/first-answers.js'
import type { SourceListener } from '../objects/types.js'

/** kubectl's own, for objects in files that name no namespace. */
const defaultNamespace = 'default'

export interface OpenSourceOptions {
  readonly log: Log
  /** holdfast's own, for the API server's audit log. */
  readonly version: string
}

/**
 * Opens the configured source; only the code of that one is loaded. A kubeconfig that is not there yet is no fault: the source
 * tells of it as what it cannot reach, and goes on trying.
 */
export async function openSource(
  configuration: SourceConfiguration,
  listener: SourceListener,
  { log, version }: OpenSourceOptions,
): Promise<ObservableSource> {
  if (configuration.type === 'files') {
    const { FileSource } = await import('../objects/files/source.js')
    return new FileSource(configuration.path, configuration.namespace ?? defaultNamespace, listener, { log })
  }
  const [{ connect }, { loadClusterAccess }, { KubernetesSource }] = await Promise.all([
    import('../objects/kubernetes/connection.js'),
    import('../objects/kubernetes/cluster-access.js'),
    import('../objects/kubernetes/source.js'),
  ])
  const { kubeconfig, context } = configuration
  const access = () =>
    loadClusterAccess({ kubeconfig, context, environment: process.env, search: 'service-account', log })
  return new KubernetesSource(connect(access, { version }), listener, { log })
}

/** The namespace of names without one: what the source's context or service account says. Rejects with what is wrong with it. */
export async function namespaceOf(configuration: SourceConfiguration): Promise<string | undefined> {
  if (configuration.type === 'files') return configuration.namespace ?? defaultNamespace
  const { loadClusterAccess } = await import('../objects/kubernetes/cluster-access.js')
  const { kubeconfig, context } = configuration
  const access = await loadClusterAccess({
    kubeconfig,
    context,
    environment: process.env,
    search: 'service-account',
  })
  return access.namespace
}
