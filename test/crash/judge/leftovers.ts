/** What stays once a call has succeeded: a lock, the record of each content, and the earlier contents that a target is to keep. */
import { posix } from 'node:path'
import { type NameBeside, nameBeside, namesOf, ownPrefix } from './names.js'

export interface Stays {
  /** How many records a target may have: a published one has one record, a removed one has none. */
  readonly records: readonly number[]
  /** How many earlier contents it may keep. */
  readonly generations: number
  /** Names that stay beside these for a reason of their own. */
  readonly isExcused?: (name: NameBeside) => boolean
}

/** The fault beside a target; `names` are those of its parent's entries. */
export function leftBeside(target: string, names: Iterable<string>, stays: Stays): string | undefined {
  const { records, generations, isExcused = () => false } = stays
  const own = namesOf(target, names)
  const kept = own.filter(({ kind }) => kind === 'generation')
  if (kept.length > generations && !kept.every(isExcused))
    return `${kept.length} earlier contents stay beside ${target}, and not ${generations}`
  const left = own.filter((one) => !['lock', 'record', 'generation'].includes(one.kind) && !isExcused(one))
  if (left.length > 0) return `left beside ${target}: ${left.map(({ name }) => name).join(', ')}`
  const count = own.filter(({ kind }) => kind === 'record').length
  return records.includes(count) ? undefined : `${count} records stay beside ${target}, and not ${records.join(' or ')}`
}

/** The faults of a directory whose targets are these: leftovers of theirs, and names of holdfast's form that belong to none of them. */
export function leftIn(names: readonly string[], targets: ReadonlyMap<string, Stays>): string[] {
  const prefixes = [...targets.keys()].map((target) => ownPrefix(posix.basename(target)))
  const strays = names
    .map(nameBeside)
    .filter(({ prefix, kind }) => prefix !== undefined && kind !== 'lock' && !prefixes.includes(prefix))
  return [
    ...[...targets].flatMap(([target, stays]) => leftBeside(target, names, stays) ?? []),
    ...strays.map(({ name }) => `${name} belongs to no target`),
  ]
}

/** Names inside a target in the form of links that lead to nothing any more; `data`: where its `..data` leads. */
export function leftInside(target: string, names: Iterable<string>, data: string | undefined): string | undefined {
  const left = [...names].filter((name) => name.startsWith('..') && name !== '..data' && name !== data)
  return left.length === 0 ? undefined : `left in ${target}: ${left.join(', ')}`
}
