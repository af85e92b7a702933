import { YamlError } from '../../yaml/parse.js'
import { readJson, readYaml } from '../../yaml/read.js'
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
  const root = new Field(file, '', await parseText(text, file))
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

async function parseText(text: string, file: string): Promise<unknown> {
  try {
    if (text.trimStart().startsWith('{')) return readJson(text)
    const [document, second] = await readYaml(text, 'kubeconfig')
    if (second) throw new YamlError('it holds several documents; one is read', second.position)
    return document?.value
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const { problem } = error
    // Where JSON breaks, some versions of Node do not say.
    const position = text.trimStart().startsWith('{') ? undefined : error.position
    throw new KubeconfigError(
      position === undefined ? file : `${file}:${position.line}:${position.column}`,
      '',
      problem,
    )
  }
}
