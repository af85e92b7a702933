import type { InvalidInput } from '../../errors.js'

/**
 * One field of a kubeconfig, with its place: every complaint names the file and the field, and never the value,
 * since the value may be a key or a token.
 */

/** A kubeconfig that cannot be used: `FILE: PLACE: PROBLEM`. Retrying helps only once a file has changed. */
export class KubeconfigError extends Error implements InvalidInput {
  override readonly name = 'KubeconfigError'
  readonly invalid = 'configuration'
  constructor(
    readonly file: string,
    /** Such as `users[0].user.token`; the empty string where the whole file is meant. */
    readonly place: string,
    readonly problem: string,
  ) {
    super([file, place, problem].filter((part) => part !== '').join(': '))
  }
}

export class Field {
  constructor(
    readonly file: string,
    readonly place: string,
    readonly value: unknown,
  ) {}

  /** An error about this field, to be thrown. */
  fault(problem: string): KubeconfigError {
    return new KubeconfigError(this.file, this.place, problem)
  }

  get present(): boolean {
    return this.value !== undefined && this.value !== null && this.value !== ''
  }

  get(key: string): Field {
    const value = this.mapping()[key]
    return new Field(this.file, this.place === '' ? key : `${this.place}.${key}`, value)
  }

  /** Absent is an empty mapping, as in Kubernetes' own decoder. */
  mapping(): Readonly<Record<string, unknown>> {
    const value = this.value ?? {}
    if (typeof value !== 'object' || Array.isArray(value)) throw this.#wrongType('a mapping')
    return value as Record<string, unknown>
  }

  list(): Field[] {
    const value = this.value ?? []
    if (!Array.isArray(value)) throw this.#wrongType('a list')
    return value.map((item, index) => new Field(this.file, `${this.place}[${index}]`, item))
  }

  /** undefined where the field is absent, null or empty: Kubernetes does not tell these apart. */
  text(): string | undefined {
    if (!this.present) return undefined
    if (typeof this.value !== 'string') throw this.#wrongType('a string')
    return this.value
  }

  requiredText(): string {
    const text = this.text()
    if (text === undefined) throw this.fault('is missing')
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
    if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw this.fault('not base64')
    return Buffer.from(text, 'base64').toString()
  }

  #wrongType(wanted: string): KubeconfigError {
    const quoting = typeof this.value === 'number' && wanted === 'a string' ? '; put it in quotes' : ''
    return this.fault(`must be ${wanted}, not ${typeName(this.value)}${quoting}`)
  }
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a mapping' : `a ${typeof value}`
}
