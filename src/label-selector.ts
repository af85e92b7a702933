/**
 * Label selectors in Kubernetes' own syntax, matched here: what the API server would filter, files have, too.
 * Source: k8s.io/apimachinery/pkg/labels/selector.go.
 */
import { isLabelValue, isQualifiedName } from './kubernetes-names.js'
import { quote } from './message-text.js'

export type Labels = Readonly<Record<string, string>>

/** All of them must hold. */
export type LabelSelector = readonly Requirement[]

interface Requirement {
  readonly key: string
  /** `in`: the label has one of the values. `notin`: it has none of them, or is not set. */
  readonly operator: 'in' | 'notin' | 'exists' | 'absent'
  readonly values: readonly string[]
}

/** The mistake in a selector's text. */
export class SelectorError extends Error {
  constructor(
    message: string,
    readonly suggestion = "write app=web, app!=web, app in (web,db), app notin (web), app or !app, joined by ','",
  ) {
    super(message)
  }
}

/** @throws SelectorError */
export function parseSelector(text: string): LabelSelector {
  const tokens = new Tokens(text)
  const requirements = [readRequirement(tokens)]
  while (tokens.takes(',')) requirements.push(readRequirement(tokens))
  const rest = tokens.take()
  if (rest !== undefined) throw new SelectorError(`${quote(rest)} is not expected after a requirement`)
  return requirements
}

export function selects(selector: LabelSelector, labels: Labels): boolean {
  return selector.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    switch (operator) {
      case 'in':
        return value !== undefined && values.includes(value)
      case 'notin':
        return value === undefined || !values.includes(value)
      case 'exists':
        return value !== undefined
      case 'absent':
        return value === undefined
    }
  })
}

function readRequirement(tokens: Tokens): Requirement {
  if (tokens.takes('!')) return { key: readKey(tokens), operator: 'absent', values: [] }
  const key = readKey(tokens)
  if (tokens.ends()) return { key, operator: 'exists', values: [] }
  const operator = tokens.take() ?? ''
  switch (operator) {
    case '=':
    case '==':
      return { key, operator: 'in', values: [readSelectorValue(tokens)] }
    case '!=':
      return { key, operator: 'notin', values: [readSelectorValue(tokens)] }
    case 'in':
    case 'notin':
      return { key, operator, values: readValues(tokens) }
    default:
      throw new SelectorError(`${quote(operator)} is not an operator`)
  }
}

function readKey(tokens: Tokens): string {
  const key = tokens.take()
  if (key === undefined || isMark(key)) throw new SelectorError(`a label's key is missing${before(key)}`)
  if (!isQualifiedName(key)) {
    throw new SelectorError(`${quote(key)} is not a label's key`, 'it is [PREFIX/]NAME, as in app.kubernetes.io/name')
  }
  return key
}

function readValues(tokens: Tokens): string[] {
  if (!tokens.takes('(')) throw new SelectorError(`the values lack their '('`, 'write app in (web,db)')
  const values = [readSelectorValue(tokens)]
  while (tokens.takes(',')) values.push(readSelectorValue(tokens))
  if (!tokens.takes(')')) throw new SelectorError(`the values lack their ')'`, 'write app in (web,db)')
  return values
}

/** The value of a label may be empty. */
function readSelectorValue(tokens: Tokens): string {
  const value = tokens.takeWord() ?? ''
  if (isLabelValue(value)) return value
  const rule = "it is letters, digits, '-', '_' and '.', at most 63"
  throw new SelectorError(`${quote(value)} is not a label's value`, rule)
}

function before(token: string | undefined): string {
  return token === undefined ? '' : ` before ${quote(token)}`
}

function isMark(token: string): boolean {
  return /^[=!<>(),]/.test(token)
}

/** Marks and words; the white space that Kubernetes knows says nothing between them. */
class Tokens {
  readonly #tokens: readonly string[]
  #next = 0

  constructor(text: string) {
    this.#tokens = text.match(/==|!=|[=!<>(),]|[^ \t\r\n=!<>(),]+/g) ?? []
  }

  take(): string | undefined {
    const token = this.#tokens[this.#next]
    if (token !== undefined) this.#next += 1
    return token
  }

  takeWord(): string | undefined {
    const token = this.#tokens[this.#next]
    return token === undefined || isMark(token) ? undefined : this.take()
  }

  takes(token: string): boolean {
    if (this.#tokens[this.#next] !== token) return false
    this.#next += 1
    return true
  }

  /** A requirement ends here. */
  ends(): boolean {
    const token = this.#tokens[this.#next]
    return token === undefined || token === ','
  }
}
