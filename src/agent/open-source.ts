/* eslint-disable no-restricted-syntax -- The start comes here; a source of another kind is opened at a reload, by hand. */
import { closeSync, openSync } from 'node:fs'
import type { SourceConfiguration, SourceType } from '../config/source.js'
import { codeOf } from '../errors.js'
import type { Log } from '../log.js'
import type { ObservableSource } from '../objects/first-answers.js'
import type { SourceListener } from '../objects/types.js'
import type { Obeyed, Trust } from '../trust.js'

/** kubectl's own, for objects in files that name no namespace. */
const defaultNamespace = 'default'

interface OpenSourceOptions {
  readonly log: Log
  /** holdfast's own, for the API server's audit log. */
  readonly version: string
  /** Examines the files that the source obeys. */
  readonly trust?: Trust
}

interface SourceKind<Type extends SourceType> {
  /** Opens the source; only now its code is loaded. */
  open(
    configuration: SourceConfiguration<Type>,
    listener: SourceListener,
    options: OpenSourceOptions,
  ): Promise<ObservableSource>
  /** The namespace of names without one. */
  namespaceOf(configuration: SourceConfiguration<Type>): Promise<string | undefined>
}

const kinds: { readonly [Type in SourceType]: SourceKind<Type> } = {
  files: {
    async open({ path, namespace }, listener, { log }) {
      const { FileSource } = await import('../objects/files/source.js')
      return new FileSource(path, namespace ?? defaultNamespace, listener, { log })
    },
    namespaceOf: ({ namespace }) => Promise.resolve(namespace ?? defaultNamespace),
  },
  kubernetes: {
    async open({ kubeconfig, context, search = 'service-account', watch, qps, burst }, listener, options) {
      const { log, version, trust } = options
      const [{ connect }, { Credentials }, { KubernetesSource }] = await Promise.all([
        import('../kubernetes/connection/connection.js'),
        import('../kubernetes/credentials/credentials.js'),
        import('../objects/kubernetes/source.js'),
      ])
      const obey = trust && ((obeyed: Obeyed) => trust.obey(obeyed))
      const credentials = new Credentials({ kubeconfig, context, environment: process.env, search, log, obey })
      return new KubernetesSource(
        connect(credentials, { version, rate: { qps, burst }, observer: listener.api }),
        listener,
        { log, watch },
      )
    },
    async namespaceOf({ kubeconfig, context, search = 'service-account' }) {
      needDescriptors('kubernetes')
      const { Credentials } = await import('../kubernetes/credentials/credentials.js')
      const credentials = new Credentials({ kubeconfig, context, environment: process.env, search })
      return (await credentials.load()).namespace
    },
  },
}

/**
 * Opens the configured source; only the code of that one is loaded. A kubeconfig that does not exist yet is no error: the source
 * reports the API server as out of reach, and retries.
 */
export async function openSource<Type extends SourceType>(
  configuration: SourceConfiguration<Type>,
  listener: SourceListener,
  options: OpenSourceOptions,
): Promise<ObservableSource> {
  needDescriptors(configuration.type)
  const source = await kinds[configuration.type].open(configuration, listener, options)
  loaded.add(configuration.type)
  return source
}

/** The sources whose code is loaded. */
const loaded = new Set<SourceType>()

/** What the code of a source and of its events takes at once, and more. */
const enough = 128

/**
 * Node's loader remembers for ever that a module could not be loaded, so that a source whose code met EMFILE at a reload could not be
 * had before a restart. Throws before anything is loaded where there are too few descriptors; at the start, a failure ends the process.
 */
function needDescriptors(type: SourceType): void {
  if (loaded.size === 0 || loaded.has(type)) return
  const opened: number[] = []
  try {
    while (opened.length < enough) opened.push(openSync('/dev/null', 'r'))
  } catch (error) {
    const code = codeOf(error) ?? String(error)
    throw new Error(
      `source.${type} cannot be loaded: too few file descriptors are free (${code}); raise the limit of open files (ulimit -n), then send SIGHUP again`,
      { cause: error },
    )
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}

/** The namespace of names without one, by the source's context or service account. Rejects with the mistake in that. */
export function namespaceOf<Type extends SourceType>(
  configuration: SourceConfiguration<Type>,
): Promise<string | undefined> {
  return kinds[configuration.type].namespaceOf(configuration)
}
