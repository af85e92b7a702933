import { Field, KubeconfigError } from './kubeconfig-field.js'

/**
 * The shape of one kubeconfig file: named clusters, users and contexts, not yet looked into. Entries that the chosen
 * context does not use may be of kinds that holdfast does not support.
 */
export interface KubeconfigFile {
  readonly file: string
  readonly clusters: readonly NamedEntry[]
  readonly users: readonly NamedEntry[]
  readonly contexts: readonly NamedEntry[]
  readonly currentContext: Field
}

export interface NamedEntry {
  readonly name: string
  readonly entry: Field
}

/** Throws KubeconfigError; its text never quotes the file. */
export async function parseKubeconfig(text: string, file: string): Promise<KubeconfigFile> {
  const document = text.trimStart().startsWith('{') ? parseJson(text, file) : await parseYaml(text, file)
  const root = new Field(file, '', document)
  if (!root.present) throw root.fault('is empty; a kubeconfig is expected')
  root.mapping()
  const version = root.get('apiVersion')
  if (version.present && version.value !== 'v1') throw version.fault('must be v1')
  const kind = root.get('kind')
  if (kind.present && kind.value !== 'Config') throw kind.fault('must be Config; this is not a kubeconfig')
  return {
    file,
    clusters: namedEntries(root.get('clusters'), 'cluster'),
    users: namedEntries(root.get('users'), 'user'),
    contexts: namedEntries(root.get('contexts'), 'context'),
    currentContext: root.get('current-context'),
  }
}

function namedEntries(list: Field, key: string): NamedEntry[] {
  const seen = new Map<string, string>()
  return list.list().map((item) => {
    const name = item.get('name').requiredText()
    const earlier = seen.get(name)
    if (earlier !== undefined) throw item.get('name').fault(`${earlier} has the same name`)
    seen.set(name, item.place)
    item.get(key).mapping()
    return { name, entry: item.get(key) }
  })
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    // The parser's own message quotes the text around the fault, which may be a key.
    throw new KubeconfigError(file, '', 'not valid JSON')
  }
}

async function parseYaml(text: string, file: string): Promise<unknown> {
  // eslint-disable-next-line no-restricted-syntax -- the configuration file was read with it
  const { LineCounter, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  // Pretty errors quote the source; only the fault's code and its position are safe to repeat.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  const [fault] = document.errors
  if (fault) {
    const { line, col } = lines.linePos(fault.pos[0])
    throw new KubeconfigError(`${file}:${line}:${col}`, '', `not valid YAML (${fault.code})`)
  }
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown
  } catch {
    throw new KubeconfigError(file, '', 'not valid YAML (an alias is undefined, or there are too many)')
  }
}

/** Enough for a file written by hand; a file that multiplies itself by aliases goes far beyond. */
const MAX_ALIASES = 100
