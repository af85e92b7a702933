import { readCluster, type ClusterSettings } from './kubeconfig-cluster.js'
import { KubeconfigError } from './kubeconfig-field.js'
import type { KubeconfigFile, NamedEntry } from './kubeconfig-file.js'
import { readUser, type UserSettings } from './kubeconfig-user.js'

/** What one context of a kubeconfig says: where the server is, who we are, and which namespace is the default. */
export interface ContextSettings {
  readonly context: string
  readonly namespace: string | undefined
  readonly cluster: ClusterSettings
  readonly user: UserSettings
}

/**
 * Resolves a context over one or more files. The first file to name a current context, or to define a cluster, user
 * or context of a name, wins (kubectl: client-go/tools/clientcmd/loader.go). Throws KubeconfigError.
 */
export function resolveContext(files: readonly KubeconfigFile[], wanted: string | undefined): ContextSettings {
  const from = files.map(({ file }) => file).join(':')
  const contexts = files.flatMap((file) => file.contexts)
  const current = files.map((file) => file.currentContext).find((field) => field.present)
  const name = wanted ?? current?.text()
  if (name === undefined) {
    throw new KubeconfigError(from, 'current-context', `is not set; ${choice('context', contexts)}`)
  }
  const context = contexts.find((candidate) => candidate.name === name)
  if (!context) {
    const problem = `there is no context "${name}"; ${choice('context', contexts)}`
    throw wanted === undefined && current ? current.fault(problem) : new KubeconfigError(from, '', problem)
  }
  const clusters = files.flatMap((file) => file.clusters)
  const users = files.flatMap((file) => file.users)
  return {
    context: name,
    namespace: context.entry.get('namespace').text(),
    cluster: readCluster(referenced(context, 'cluster', clusters)),
    user: readUser(referenced(context, 'user', users)),
  }
}

function referenced(context: NamedEntry, key: 'cluster' | 'user', entries: readonly NamedEntry[]) {
  const field = context.entry.get(key)
  const name = field.requiredText()
  const found = entries.find((candidate) => candidate.name === name)
  if (!found) throw field.fault(`there is no ${key} "${name}"; ${choice(key, entries)}`)
  return found.entry
}

function choice(kind: string, entries: readonly NamedEntry[]): string {
  if (entries.length === 0) return `the file has no ${kind}s`
  return `${kind}s: ${[...new Set(entries.map(({ name }) => name))].join(', ')}`
}
