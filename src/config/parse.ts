/**
 * From the text of a configuration file to an AgentConfiguration: everything is checked that the file alone shows,
 * and all that is wrong is reported at once. Nothing is read from the disk.
 */
import { hash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { readDirectory } from './directory.js'
import { readDuration } from './duration.js'
import { isLabel } from '../kubernetes-names.js'
import type { NamespaceDefault } from './object-names.js'
import { readNodePath } from './paths.js'
import { quote } from '../quote.js'
import { Problems } from './problem.js'
import { readServer } from './server.js'
import { readSource } from './source.js'
import { reportTargetProblems } from './targets.js'
import { parseTree, type TreeNode } from '../yaml/tree.js'
import type { AgentConfiguration, SourceConfiguration } from './types.js'
import { Value, type MappingValue } from './value.js'

export interface ConfigurationOptions {
  /** The namespace of names without one, in place of source.namespace: `--namespace`. */
  readonly namespace?: string | undefined
  /**
   * The namespace of names without one where nothing else gives it, or a function that finds it in the kubeconfig's context or
   * the pod's service account. It is called at most once, and only if a name needs it.
   */
  readonly defaultNamespace?: string | ((source: SourceConfiguration) => Promise<string | undefined>) | undefined
}

export const apiVersion = 'holdfast.dev/v1alpha1'
export const kind = 'AgentConfiguration'
export const defaultStateDirectory = '/var/lib/holdfast'

/** Milliseconds between two comparisons of the disk with what was published. */
const defaultDriftInterval = 10 * 60_000

/** Milliseconds after which an operation that has not ended is reported: longer than a worn-out card takes to flush. */
const defaultOperationTimeout = 2 * 60_000

const fields = [
  'apiVersion',
  'kind',
  'stateDirectory',
  'requireProven',
  'driftInterval',
  'operationTimeout',
  'reload',
  'source',
  'directories',
  'server',
]
const misplaced = {
  metadata: 'this file is not an object of the API: remove the field',
  namespace: 'it belongs to source',
  path: 'it belongs to one of directories',
  contents: 'it belongs to one of directories',
  address: 'it belongs to server',
}

/**
 * Parses the text of `file`, whose name is used for messages and for relative paths. Throws ConfigurationError with every
 * problem; rejects with what `defaultNamespace` rejects with.
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
  const document = root.mapping(fields, misplaced)
  if (document === undefined) return { configuration: undefined, source: undefined, unqualified: [] }
  const file = resolve(problems.file)
  const base = dirname(file)
  readFixed(document, 'apiVersion', apiVersion)
  readFixed(document, 'kind', kind)
  const { source, namespace, filesPath } = readSource(document.required('source', '{ kubernetes: {} }'), base)
  const fallback = override ?? namespace ?? defaultNamespace
  if (fallback !== undefined && fallback !== namespace && !isLabel(fallback)) {
    root.wrong(`the default namespace ${quote(fallback)} is not a namespace`)
  }
  const selectable = source?.type !== 'kubernetes' || source.watch === 'namespaces'
  const defaults: NamespaceDefault = { namespace: fallback, unqualified: [], selectable }
  const directories = (
    document.required('directories', '[{ path: /etc/x, contents: [{ secret: NAME }] }]')?.list() ?? []
  )
    .map((value) => readDirectory(value, base, defaults))
    .filter((directory) => directory !== undefined)
  const stateValue = document.field('stateDirectory')
  const stateDirectory = (stateValue && readNodePath(stateValue, base)) ?? defaultStateDirectory
  const requireProven = document.field('requireProven')?.boolean() ?? false
  const driftValue = document.field('driftInterval')
  const driftInterval = driftValue && readDuration(driftValue, { least: '1s', most: '24h' })
  const timeoutValue = document.field('operationTimeout')
  const operationTimeout = timeoutValue && readDuration(timeoutValue, { least: '1s', most: '24h' })
  const reload = document.field('reload')?.oneOf(['signal', 'auto'] as const)
  const serverValue = document.field('server')
  const server = serverValue && readServer(serverValue)
  reportTargetProblems(directories, [
    { name: 'stateDirectory', path: stateDirectory },
    { name: 'this configuration file', path: file },
    ...(source?.type === 'files' && filesPath !== undefined ? [{ name: filesPath.place, path: source.path }] : []),
  ])
  return {
    source,
    unqualified: defaults.unqualified,
    configuration: source && {
      file,
      stateDirectory,
      requireProven,
      driftInterval: driftInterval ?? defaultDriftInterval,
      operationTimeout: operationTimeout ?? defaultOperationTimeout,
      reload: reload ?? 'signal',
      source,
      directories: directories.map(({ configuration }) => configuration),
      server,
    },
  }
}

function readFixed(document: MappingValue, name: string, expected: string): void {
  const value = document.required(name, expected)
  const text = value?.text(expected)
  if (value !== undefined && text !== undefined && text !== expected) {
    value.wrong(`${quote(text)} is not known`, `write ${name}: ${expected}`)
  }
}
