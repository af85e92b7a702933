/**
 * From the text of a configuration file to an AgentConfiguration: the parser checks everything that the file alone shows,
 * and reports all faults at once. It reads nothing from the disk.
 */
import { hash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { documentFields } from './document.js'
import { readFields } from './field.js'
import { isLabel } from '../kubernetes-names.js'
import type { NamespaceDefault } from './object-names.js'
import { quote } from '../quote.js'
import { Problems } from './problem.js'
import { reportMoveProblems, reportTargetProblems } from './targets.js'
import { parseTree, type TreeNode } from '../yaml/tree.js'
import type { AgentConfiguration, SourceConfiguration } from './types.js'
import { Value } from './value.js'

export interface ConfigurationOptions {
  /** The namespace of names without one, in place of source.namespace: `--namespace`. */
  readonly namespace?: string | undefined
  /**
   * The namespace of names without one where nothing else gives it, or a function that finds it in the kubeconfig's context or
   * the pod's service account. It is called at most once, and only if a name needs it.
   */
  readonly defaultNamespace?: string | ((source: SourceConfiguration) => Promise<string | undefined>) | undefined
}

const misplaced = {
  metadata: 'this file is not an object of the API: remove the field',
  namespace: 'it belongs to source',
  path: 'it belongs to one of directories',
  contents: 'it belongs to one of directories',
  address: 'it belongs to server',
}

/**
 * Parses the text of `file`, whose name is used for messages and for relative paths. Throws ConfigurationError with every
 * problem; rejects with the error of `defaultNamespace`.
 */
export async function parseConfiguration(
  text: string,
  file: string,
  options: ConfigurationOptions = {},
): Promise<AgentConfiguration> {
  const problems = new Problems(file)
  const tree = await parseTree(text, problems)
  if (tree === undefined) {
    problems.throwIfAny()
    throw new Error(`${file}: cannot be read`)
  }
  const { defaultNamespace } = options
  const given = typeof defaultNamespace === 'string' ? defaultNamespace : undefined
  const digest = `sha256:${hash('sha256', text)}`
  const first = read(tree, problems, given, options.namespace)
  if (typeof defaultNamespace === 'function' && first.unqualified.length > 0 && first.source !== undefined) {
    const found = await defaultNamespace(first.source)
    if (found !== undefined) {
      const again = new Problems(file)
      await parseTree(text, again)
      return { ...finish(read(tree, again, found, options.namespace), again), digest }
    }
  }
  return { ...finish(first, problems), digest }
}

interface Read {
  readonly configuration: Omit<AgentConfiguration, 'digest'> | undefined
  readonly source: SourceConfiguration | undefined
  readonly unqualified: NamespaceDefault['unqualified']
}

function finish({ configuration, source, unqualified }: Read, problems: Problems): Omit<AgentConfiguration, 'digest'> {
  // Without a source it is the source that is missing, not its namespace.
  for (const { value, name } of source === undefined ? [] : unqualified) {
    if (name === undefined) value.wrong('has no namespace', 'write namespace: NAME, or set source.namespace')
    else value.wrong(`${quote(name)} has no namespace`, `write NAMESPACE/${name}, or set source.namespace`)
  }
  problems.throwIfAny()
  if (configuration === undefined)
    throw new Error(`${problems.file}: is incomplete, for an unknown reason (an internal error of holdfast)`)
  return configuration
}

function read(
  tree: TreeNode,
  problems: Problems,
  defaultNamespace: string | undefined,
  override: string | undefined,
): Read {
  const root = new Value(tree, '', problems)
  const document = root.mapping(Object.keys(documentFields), misplaced)
  if (document === undefined) return { configuration: undefined, source: undefined, unqualified: [] }
  const file = resolve(problems.file)
  const base = dirname(file)
  const fields = readFields(document, documentFields, { base })
  const { stateDirectory, source: given, directories: list, ...others } = fields.read
  const { source, namespace, filesPath } = given ?? {}
  const fallback = override ?? namespace ?? defaultNamespace
  if (fallback !== undefined && fallback !== namespace && !isLabel(fallback)) {
    root.wrong(`the default namespace ${quote(fallback)} is not a namespace`)
  }
  const selectable = source?.type !== 'kubernetes' || source.watch === 'namespaces'
  const defaults: NamespaceDefault = { namespace: fallback, unqualified: [], selectable }
  const directories = list?.({ base, ...defaults }) ?? []
  const own = [
    { name: 'stateDirectory', path: stateDirectory },
    { name: 'this configuration file', path: file },
    ...(source?.type === 'files' && filesPath !== undefined ? [{ name: filesPath.place, path: source.path }] : []),
  ]
  reportTargetProblems(directories, own)
  reportMoveProblems(directories, own)
  const { requireProven, requireTrusted, driftInterval, operationTimeout, reload, report, server } = others
  if (report && source?.type === 'files') {
    fields.at.report?.wrong('report: true needs a cluster to report to', 'leave it out with source.files')
  }
  return {
    source,
    unqualified: defaults.unqualified,
    configuration: source && {
      file,
      stateDirectory,
      requireProven,
      requireTrusted,
      driftInterval,
      operationTimeout,
      reload,
      report,
      source,
      directories: directories.map(({ configuration }) => configuration),
      server,
    },
  }
}
