/** A value of the configuration with its place. What reads it reports the value's faults and answers undefined. */
import { quote } from '../message-text.js'
import type { Problems } from './problem.js'
import { fieldPlace, type TreeNode } from '../yaml/tree.js'

export class Value {
  constructor(
    readonly node: TreeNode,
    readonly place: string,
    readonly problems: Problems,
  ) {}

  /** Reports a problem with this value; answers undefined, in place of the value that the caller reads. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- takes the type of the reader that returns it
  wrong<Read>(message: string, suggestion?: string): Read | undefined {
    this.problems.add(this.node, this.place, message, suggestion)
    return undefined
  }

  /** A string that is not empty and holds no NUL. `example`: a text to write, where only a certain form will do. */
  text(example?: string): string | undefined {
    const { node } = this
    if (node.kind !== 'scalar' || typeof node.value !== 'string') {
      return this.wrong(`must be a string, not ${this.kind}`, this.#asText(example))
    }
    if (node.value === '') return this.wrong('is an empty string', example && `write ${quote(example)}`)
    if (node.value.includes('\0')) return this.wrong('contains a NUL character')
    return node.value
  }

  /** The string to write in place of a value that is none. */
  #asText(example: string | undefined): string | undefined {
    const { node } = this
    if (node.kind !== 'scalar' || node.value === null) return undefined
    return example === undefined ? `quote it, ${quote(node.source)}` : `write as in ${quote(example)}`
  }

  /** The items of a list that must have at least one. */
  list(): readonly Value[] {
    const { node } = this
    if (node.kind !== 'list') {
      // Without the value: the file may be a Secret that was named by mistake.
      this.wrong(`must be a list, not ${this.kind}`, node.kind === 'scalar' ? 'write it in brackets: [ ]' : undefined)
      return []
    }
    if (node.items.length === 0) this.wrong('is an empty list')
    return node.items.map((item, index) => new Value(item, `${this.place}[${index}]`, this.problems))
  }

  /**
   * Whether it is a mapping; fields that are not among `known` are reported. `misplaced` says of fields that people expect here where
   * they belong.
   */
  isMappingOf(known: readonly string[], misplaced: Readonly<Record<string, string>> = {}): boolean {
    const { node } = this
    if (node.kind !== 'mapping') {
      this.wrong(`must be a mapping, not ${this.kind}`)
      return false
    }
    for (const [name, { name: at }] of node.entries) {
      if (known.includes(name)) continue
      const hint = Object.hasOwn(misplaced, name) ? misplaced[name] : didYouMean(name, known)
      this.problems.add(at, fieldPlace(this.place, name), 'unknown field', hint)
    }
    return true
  }

  has(name: string): boolean {
    return this.node.kind === 'mapping' && this.node.entries.has(name)
  }

  /** The field's value; undefined where it is absent. A field without a value is reported, with what to do. */
  field(name: string, todo = 'give the field a value, or remove it'): Value | undefined {
    const entry = this.node.kind === 'mapping' ? this.node.entries.get(name) : undefined
    if (entry === undefined) return undefined
    const place = fieldPlace(this.place, name)
    if (entry.value.kind === 'scalar' && entry.value.value === null) {
      this.problems.add(entry.name, place, 'has no value', todo)
      return undefined
    }
    return new Value(entry.value, place, this.problems)
  }

  /** Like field, but reports an absent field, too, with what to write. */
  required(name: string, example: string): Value | undefined {
    if (this.has(name)) return this.field(name)
    this.problems.add(this.node, fieldPlace(this.place, name), 'is required', `write ${name}: ${example}`)
    return undefined
  }

  /** The one of these fields that the mapping has; reports none and several. */
  exactlyOne<Name extends string>(names: readonly Name[]): Name | undefined {
    const [only, second] = names.filter((name) => this.has(name))
    if (only !== undefined && second === undefined) return only
    const message = only === undefined ? 'is incomplete' : `has both ${only} and ${second ?? ''}`
    return this.wrong(message, `give exactly one of ${names.join(', ')}`)
  }

  /** The kind of the value, without its content: `a list`. */
  get kind(): string {
    const { node } = this
    if (node.kind !== 'scalar') return `a ${node.kind}`
    return node.value === null ? 'nothing' : `a ${typeof node.value}`
  }
}

/** The known word that was probably meant: the nearest one, if it is near enough to be believed. */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3))
  let best: { candidate: string; distance: number } | undefined
  // Field names are short: a long word is no typing error, and must not cost a long comparison.
  if (word.length > 64) return undefined
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { candidate, distance }
  }
  return best?.candidate
}

/** `did you mean "publish"?`, or the choice where no word comes near. */
function didYouMean(word: string, known: readonly string[]): string {
  const candidate = nearestWord(word, known)
  return candidate === undefined ? `known here: ${known.join(', ')}` : `did you mean "${candidate}"?`
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let cost = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (same ? 0 : 1),
      )
      if (a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, at(beforePrevious, column - 2) + 1)
      }
      current.push(cost)
    }
    beforePrevious = previous
    previous = current
  }
  return at(previous, b.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity
}
