/**
 * From the text of a configuration file to an AgentConfiguration: the parser checks everything that the file alone shows,
 * and reports all faults at once. It reads nothing from the disk.
 */
import { hash } from 'node:crypto'
import { dirname, resolve, isAbsolute } from 'node:path'
import { documentFields } from './document.js'
import { readFields } from './field.js'
import { isLabel } from '../kubernetes-names.js'
import type { NamespaceDefault } from './object-names.js'
import { quote } from '../message-text.js'
import { Problems, ConfigurationError } from './problem.js'
import { parseTree, type TreeNode } from '../yaml/tree.js'
import type { AgentConfiguration, SourceConfiguration } from './types.js'
import { Value } from './value.js'
import { type ReadDirectory, reportUnfitTarget } from './directory.js'
import { isWithin } from './paths.js'
import { codeOf } from '../errors.js'
import { readRegularFile, UnfitFileError } from '../regular-file.js'

/** Bytes; no configuration is as large as this. */
const maximumSize = 4 * 1024 * 1024

const advice: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EMFILE: 'raise the limit of open files (ulimit -n)',
  EACCES: 'give this user permission to read it',
  ELOOP: 'its symbolic links form a loop',
}

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
 * @internal
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
  const first = readDocument(tree, problems, given, options.namespace)
  if (typeof defaultNamespace === 'function' && first.unqualified.length > 0 && first.source !== undefined) {
    const found = await defaultNamespace(first.source)
    if (found !== undefined) {
      const again = new Problems(file)
      await parseTree(text, again)
      return { ...finish(readDocument(tree, again, found, options.namespace), again), digest }
    }
  }
  return { ...finish(first, problems), digest }
}

interface ReadDocument {
  readonly configuration: Omit<AgentConfiguration, 'digest'> | undefined
  readonly source: SourceConfiguration | undefined
  readonly unqualified: NamespaceDefault['unqualified']
}

function finish(
  { configuration, source, unqualified }: ReadDocument,
  problems: Problems,
): Omit<AgentConfiguration, 'digest'> {
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

function readDocument(
  tree: TreeNode,
  problems: Problems,
  defaultNamespace: string | undefined,
  override: string | undefined,
): ReadDocument {
  const root = new Value(tree, '', problems)
  if (!root.isMappingOf(Object.keys(documentFields), misplaced))
    return { configuration: undefined, source: undefined, unqualified: [] }
  const file = resolve(problems.file)
  const base = dirname(file)
  const fields = readFields(root, documentFields, { base })
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

/** Paths that holdfast itself needs, which no publication may sweep away. */
interface OwnPath {
  /** `stateDirectory`, as it is called in messages. */
  readonly name: string
  readonly path: string
}

function reportTargetProblems(directories: readonly ReadDirectory[], own: readonly OwnPath[]): void {
  const byPath = new Map<string, ReadDirectory>()
  for (const directory of directories) {
    const { at, configuration } = directory
    const { path } = configuration
    if (reportUnfitTarget(at, path)) continue
    for (const { name, path: needed } of own) {
      if (isWithin(needed, path)) at.wrong(`${quote(path)} holds ${name}, ${quote(needed)}`, 'it would be replaced too')
    }
    const first = byPath.get(path)
    if (first !== undefined) {
      at.wrong(
        `${quote(path)} is the target of ${first.configuration.place} already`,
        'put all the contents into one directory',
      )
    } else byPath.set(path, directory)
  }
  // Only now are all of them known: the inner one of two may come first.
  for (const { at, configuration } of directories) {
    const outer = ancestors(configuration.path).find((ancestor) => byPath.has(ancestor))
    const holder = outer === undefined ? undefined : byPath.get(outer)
    if (holder === undefined) continue
    const message = `${quote(configuration.path)} is inside the target of ${holder.configuration.place}`
    at.wrong(message, 'put all the contents into one directory, with into')
  }
}

function ancestors(path: string): string[] {
  const found = []
  for (let above = dirname(path); above !== '/'; above = dirname(above)) found.push(above)
  return found
}

/** Checks `movedFrom`: a move removes its source in the end, so no directory may use that any more, and it leads to one path only. */
function reportMoveProblems(directories: readonly ReadDirectory[], own: readonly OwnPath[]): void {
  const known = new Map<string, string>()
  for (const { configuration, movedFromAt: at } of directories) {
    const { path, place, movedFrom } = configuration
    if (movedFrom === undefined || at === undefined) continue
    const from = movedFrom.path
    if (reportUnfitTarget(at, from)) continue
    const first = known.get(from)
    if (first !== undefined) at.wrong(`${quote(from)} moves to ${first} already`, 'it can move to one path only')
    else known.set(from, place)
    if (from === path) at.wrong(`${quote(from)} is the path itself`, 'leave out movedFrom, or name the old path')
    else if (isWithin(from, path) || isWithin(path, from)) {
      const message = `${quote(from)} and the new path ${quote(path)} lie one in the other`
      at.wrong(message, 'choose a new path beside it, and move in two steps')
    }
    for (const other of directories) {
      if (other.configuration === configuration || !overlaps(from, other.configuration.path)) continue
      const { path: theirs, place: there, movedFrom: back } = other.configuration
      if (theirs === from && back?.path === path)
        at.wrong(`${place} and ${there} move to each other`, 'name one of them only')
      else if (theirs === from)
        at.wrong(`${quote(from)} is still the target of ${there}`, 'what moves is no target of its own: remove that')
      else at.wrong(`${quote(from)} and the target of ${there} lie one in the other`, 'it would be removed too')
    }
    for (const { name, path: needed } of own) {
      if (isWithin(needed, from)) at.wrong(`${quote(from)} holds ${name}, ${quote(needed)}`, 'it would be removed too')
    }
  }
}

function overlaps(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a)
}

/** Reads and parses a configuration file. Throws ConfigurationError for every fault of the file and of its content. */
export async function loadConfiguration(file: string, options: ConfigurationOptions = {}): Promise<AgentConfiguration> {
  return parseConfiguration(await readFile(file), file, options)
}

/** The same of a stream, which messages call `name`; relative paths begin at the working directory. */
export async function readConfiguration(
  stream: AsyncIterable<Uint8Array>,
  name: string,
  options: ConfigurationOptions = {},
): Promise<AgentConfiguration> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > maximumSize) throw unreadableFile(name, `is larger than ${maximumSize} bytes`)
    chunks.push(chunk)
  }
  return parseConfiguration(textFrom(Buffer.concat(chunks), name), name, options)
}

async function readFile(file: string): Promise<string> {
  const bytes = await readRegularFile(file, maximumSize).catch((error: unknown) => {
    if (error instanceof UnfitFileError) throw unreadableFile(file, error.problem)
    const code = codeOf(error) ?? 'unknown'
    if (code === 'ENOENT' && hasNoBase(file)) {
      throw unreadableFile(file, 'cannot be read (ENOENT)', 'the working directory was removed: name an absolute path')
    }
    throw unreadableFile(file, `cannot be read (${code})`, advice[code])
  })
  return textFrom(bytes, file)
}

function textFrom(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadableFile(file, 'is not UTF-8 text')
  }
}

/** Whether a path is relative to a working directory that was removed. */
function hasNoBase(file: string): boolean {
  if (isAbsolute(file)) return false
  try {
    process.cwd()
    return false
  } catch {
    return true
  }
}

function unreadableFile(file: string, message: string, suggestion?: string): ConfigurationError {
  const problem = { file, line: 0, column: 0, place: '', message }
  return new ConfigurationError([suggestion === undefined ? problem : { ...problem, suggestion }])
}
