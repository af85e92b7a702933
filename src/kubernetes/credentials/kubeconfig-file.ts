/** Kubeconfig files as they are written: their fields, each with its place, and their lists of clusters, users and contexts. */
import { dirname, resolve } from 'node:path'
import type { DeclaredInvalid } from '../../errors.js'
import { YamlError } from '../../yaml/parse.js'
import { readDocuments } from '../../yaml/go-documents.js'

/** A kubeconfig that cannot be used: `FILE: PLACE: PROBLEM`. Retrying helps only once a file has changed. */
export class KubeconfigError extends Error implements DeclaredInvalid {
  override readonly name = 'KubeconfigError'
  readonly invalid = 'configuration'
  constructor(
    readonly file: string,
    /** Such as `users[0].user.token`; the empty string where the file as a whole is meant. */
    readonly place: string,
    readonly problem: string,
  ) {
    super([file, place, problem].filter((part) => part !== '').join(': '))
  }
}

/** One field of a kubeconfig, with its place. An error names the file and the field, and never the value: it may be a key or a token. */
export class KubeconfigField {
  constructor(
    readonly file: string,
    readonly place: string,
    readonly value: unknown,
  ) {}

  /** An error about this field, to be thrown. */
  error(problem: string): KubeconfigError {
    return new KubeconfigError(this.file, this.place, problem)
  }

  get present(): boolean {
    return this.value !== undefined && this.value !== null && this.value !== ''
  }

  get(key: string): KubeconfigField {
    const value = this.mapping()[key]
    return new KubeconfigField(this.file, this.place === '' ? key : `${this.place}.${key}`, value)
  }

  /** Absent is an empty mapping, as in Kubernetes' own decoder. */
  mapping(): Readonly<Record<string, unknown>> {
    const value = this.value ?? {}
    if (typeof value !== 'object' || Array.isArray(value)) throw this.#wrongType('a mapping')
    return value as Record<string, unknown>
  }

  list(): KubeconfigField[] {
    const value = this.value ?? []
    if (!Array.isArray(value)) throw this.#wrongType('a list')
    return value.map((item, index) => new KubeconfigField(this.file, `${this.place}[${index}]`, item))
  }

  /** undefined where the field is absent, null or empty: Kubernetes treats these alike. */
  text(): string | undefined {
    if (!this.present) return undefined
    if (typeof this.value !== 'string') throw this.#wrongType('a string')
    return this.value
  }

  requiredText(): string {
    const text = this.text()
    if (text === undefined) throw this.error('is missing')
    return text
  }

  flag(): boolean {
    if (!this.present) return false
    if (typeof this.value !== 'boolean') throw this.#wrongType('true or false')
    return this.value
  }

  /** The bytes that a `*-data` field holds, as text. Line breaks inside are ignored, as Go's decoder does. */
  base64(): string | undefined {
    const text = this.text()?.replaceAll(/[\r\n]/g, '')
    if (text === undefined) return undefined
    if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw this.error('not base64')
    return Buffer.from(text, 'base64').toString()
  }

  #wrongType(expected: string): KubeconfigError {
    const quoting = typeof this.value === 'number' && expected === 'a string' ? '; put it in quotes' : ''
    return this.error(`must be ${expected}, not ${typeName(this.value)}${quoting}`)
  }
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a mapping' : `a ${typeof value}`
}

/** A certificate, key or token that stands in the kubeconfig itself, or in a file that may be replaced at any time. */
export type Material =
  | { readonly type: 'inline'; readonly text: string; readonly field: KubeconfigField }
  | { readonly type: 'file'; readonly path: string; readonly field: KubeconfigField }

/** A path counts from the directory of the kubeconfig that names it. */
export function fileMaterial(field: KubeconfigField): Material | undefined {
  const path = field.text()
  return path === undefined ? undefined : { type: 'file', path: resolve(dirname(field.file), path), field }
}

/** The pair `NAME` and `NAME-data` of a kubeconfig, of which one at most may be set. Throws KubeconfigError. */
export function materialPair(
  entry: KubeconfigField,
  name: string,
  check: (text: string, field: KubeconfigField) => void,
): Material | undefined {
  const field = entry.get(`${name}-data`)
  const text = field.base64()
  const file = fileMaterial(entry.get(name))
  if (text === undefined) return file
  if (file) throw field.error(`${name} is set too; keep one of the two`)
  check(text, field)
  return { type: 'inline', text, field }
}

/**
 * The shape of one kubeconfig file: named clusters, users and contexts, not yet looked into. Entries that the chosen
 * context does not use may be of kinds that holdfast does not support.
 */
export interface KubeconfigFile {
  readonly file: string
  readonly clusters: readonly NamedEntry[]
  readonly users: readonly NamedEntry[]
  readonly contexts: readonly NamedEntry[]
  readonly currentContext: KubeconfigField
}

export interface NamedEntry {
  readonly name: string
  readonly entry: KubeconfigField
}

/** Throws KubeconfigError; its text never quotes the file. */
export async function parseKubeconfig(text: string, file: string): Promise<KubeconfigFile> {
  const root = new KubeconfigField(file, '', await parseKubeconfigText(text, file))
  if (!root.present) throw root.error('is empty; a kubeconfig is expected')
  root.mapping()
  const version = root.get('apiVersion')
  if (version.present && version.value !== 'v1') throw version.error('must be v1')
  const kind = root.get('kind')
  if (kind.present && kind.value !== 'Config') throw kind.error('must be Config; this is not a kubeconfig')
  return {
    file,
    clusters: namedEntries(root.get('clusters'), 'cluster'),
    users: namedEntries(root.get('users'), 'user'),
    contexts: namedEntries(root.get('contexts'), 'context'),
    currentContext: root.get('current-context'),
  }
}

function namedEntries(list: KubeconfigField, key: string): NamedEntry[] {
  const seen = new Map<string, string>()
  return list.list().map((item) => {
    const name = item.get('name').requiredText()
    const earlier = seen.get(name)
    if (earlier !== undefined) throw item.get('name').error(`${earlier} has the same name`)
    seen.set(name, item.place)
    item.get(key).mapping()
    return { name, entry: item.get(key) }
  })
}

/** As client-go loads it: YAML, of which JSON is a part. An empty text is an empty kubeconfig. */
async function parseKubeconfigText(text: string, file: string): Promise<unknown> {
  const bare = text.replace(/^\ufeff/, '')
  try {
    const [document, ...others] = await readDocuments(bare)
    const second = others.find(({ value }) => value !== null)
    if (second) {
      throw new YamlError(
        'it holds several documents, of which Kubernetes reads only the first: keep one',
        second.position,
      )
    }
    return document?.value
  } catch (error) {
    if (error instanceof RangeError) throw new KubeconfigError(file, '', 'it is nested too deeply')
    if (!(error instanceof YamlError)) throw error
    const { problem, position } = error
    throw new KubeconfigError(
      position === undefined ? file : `${file}:${position.line}:${position.column}`,
      '',
      problem,
    )
  }
}
