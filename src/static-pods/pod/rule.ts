/** Reads a table of rules. */
import { asList, asText } from '../json.js'
import { isThere, textOf, wholeOf, type Check } from './place.js'
import { checks, texts } from './pod-checks.js'

/** The words of an enumeration. */
interface Words {
  readonly words: readonly string[]
  /** kubelet puts a default for no text (`defaulted`), or refuses an empty one (`given`), or a missing one, too (`needed`). */
  readonly none: 'defaulted' | 'given' | 'needed'
}

/** The minor versions of Kubernetes 1 whose kubelet has the rule: from one on, until before another. All, where nothing is said. */
export interface Kubelets {
  readonly from?: number
  readonly until?: number
}

export interface Rule {
  /** As in the table. */
  readonly fields: readonly string[]
  readonly check: Check | Words
  readonly problem: string
  readonly kubelets: Kubelets
  /** kubelet takes the pod, and never runs it. */
  readonly never: boolean
}

/** @throws TypeError for a check that there is not */
export function readRules(table: string): Map<string, Rule[]> {
  const rules = new Map<string, Rule[]>()
  let type: Rule[] = []
  for (const line of table.split('\n').filter(Boolean)) {
    if (!line.startsWith(' ')) rules.set(line, (type = []))
    else {
      const [fields = '', check = '', problem, where = ''] = line.trim().split(/ *\| */)
      const [kind, minor] = where.split(' ')
      const [test, usual] = checkOf(check)
      type.push({
        fields: fields.split(' '),
        check: test,
        problem: problem || usual || 'is missing',
        kubelets: minor === undefined ? {} : { [kind === 'from' ? 'from' : 'until']: Number(minor) },
        never: where === 'never',
      })
    }
  }
  return rules
}

type Made = readonly [check: Check | Words, problem?: string | undefined]

/** With what is usually wrong where it fails. */
function checkOf(text: string): Made {
  const named = checks[text]
  if (named !== undefined) return typeof named === 'function' ? [named] : named
  const [first = '', ...others] = text.split(' ')
  const rest = others.join(' ')
  const made = makers[first]?.(rest) ?? textCheck(first, rest)
  if (made === undefined) throw new TypeError(`no check is named ${text}`)
  return made
}

const makers: Readonly<Record<string, (rest: string) => Made | undefined>> = {
  words: (rest) => wordCheck(rest, 'defaulted'),
  within: (rest) => {
    const [least = 0, most = Infinity] = rest.split(' ').map(Number)
    const problem = most === Infinity ? `must not be less than ${least}` : `must be ${least} to ${most}`
    return [(value) => value === undefined || (wholeOf(value) >= least && wholeOf(value) <= most), problem]
  },
  at: (rest) => {
    const most = Number(rest.split(' ')[1])
    return [(value) => asList(value).length <= most, `must be at most ${most}`]
  },
  one: (rest) => {
    const names = rest.split(' ').slice(1)
    const count: Check = (_, { owner }) => names.filter((name) => isThere(owner[name])).length === 1
    return [count, `must have one of ${names.join(', ')}`]
  },
  not: (rest) => [(value) => value !== rest],
  refers: (rest) => refersTo(rest, (value) => value === undefined),
  named: (rest) => refersTo(rest.replace('refers ', ''), (value) => textOf(asText(value) ?? itemName(value)) === ''),
  any: (rest) => refersTo(rest.replace('refers ', ''), (value) => asList(value).length === 0),
}

const itemName = (value: unknown) => (value as { readonly name?: unknown } | undefined)?.name

/** A static pod may not refer to objects of the API: kubelet has to run it without. */
function refersTo(objects: string, check: Check): Made {
  const advice = "put what it needs on the node's disk, and mount it with hostPath"
  return [check, `refers to objects of the API (${objects}), which a static pod may not: ${advice}`]
}

function wordCheck(text: string, none: Words['none']): Made {
  const words = text.split(' ')
  return [{ words, none }, `must be ${words.length > 1 ? 'one of ' : ''}${words.join(', ')}`]
}

/** A text that must be there; that may be missing or empty; that may be missing, and not empty. */
function textCheck(when: string, name: string): Made | undefined {
  if (when !== 'needed' && when !== 'optional' && when !== 'given') return undefined
  if (name.startsWith('words ')) return wordCheck(name.slice('words '.length), when === 'needed' ? 'needed' : 'given')
  const [is = () => true, problem] = name === '' ? [] : (texts[name] ?? [])
  if (name !== '' && texts[name] === undefined) return undefined
  if (when === 'needed') return [(value) => textOf(value) !== '' && is(textOf(value)), problem]
  if (when === 'optional') return [(value) => textOf(value) === '' || is(textOf(value)), problem]
  return [(value) => value === undefined || is(textOf(value)), problem]
}
