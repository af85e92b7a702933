/* eslint-disable no-restricted-syntax -- The start comes here; a source of another kind is opened at a reload, by hand. */
import { closeSync, openSync } from 'node:fs'
import type { SourceConfiguration } from '../config/types.js'
import type { Log } from '../log.js'
import type { ObservableSource } from '../objects/first-answers.js'
import type { SourceListener } from '../objects/types.js'

/** kubectl's own, for objects in files that name no namespace. */
const defaultNamespace = 'default'

interface OpenSourceOptions {
  readonly log: Log
  /** holdfast's own, for the API server's audit log. */
  readonly version: string
}

/**
 * Opens the configured source; only the code of that one is loaded. A kubeconfig that does not exist yet is no error: the source
 * reports it as what it cannot reach, and goes on trying.
 */
export async function openSource(
  configuration: SourceConfiguration,
  listener: SourceListener,
  { log, version }: OpenSourceOptions,
): Promise<ObservableSource> {
  needDescriptors(configuration.type)
  if (configuration.type === 'files') {
    const { FileSource } = await import('../objects/files/source.js')
    loaded.add('files')
    return new FileSource(configuration.path, configuration.namespace ?? defaultNamespace, listener, { log })
  }
  const [{ connect }, { loadClusterAccess }, { KubernetesSource }] = await Promise.all([
    import('../objects/kubernetes/connection.js'),
    import('../objects/kubernetes/cluster-access.js'),
    import('../objects/kubernetes/source.js'),
  ])
  loaded.add('kubernetes')
  const { kubeconfig, context } = configuration
  const access = () =>
    loadClusterAccess({ kubeconfig, context, environment: process.env, search: 'service-account', log })
  return new KubernetesSource(connect(access, { version }), listener, { log })
}

/** The sources whose code is loaded. */
const loaded = new Set<SourceConfiguration['type']>()

/** What the code of a source and of its events takes at once, and more. */
const enough = 128

/**
 * Node's loader remembers for ever that a module could not be loaded, so that a source whose code met EMFILE at a reload could not be
 * had before a restart. Throws before anything is loaded where there are too few descriptors; at the start, a failure ends the process.
 */
function needDescriptors(type: SourceConfiguration['type']): void {
  if (loaded.size === 0 || loaded.has(type)) return
  const opened: number[] = []
  try {
    while (opened.length < enough) opened.push(openSync('/dev/null', 'r'))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new Error(
      `source.${type} cannot be loaded: too few file descriptors are free (${code}): raise the limit of open files (ulimit -n), and send SIGHUP again`,
      { cause: error },
    )
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}

/** The namespace of names without one: what the source's context or service account says. Rejects with what is wrong with it. */
export async function namespaceOf(configuration: SourceConfiguration): Promise<string | undefined> {
  if (configuration.type === 'files') return configuration.namespace ?? defaultNamespace
  needDescriptors('kubernetes')
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
