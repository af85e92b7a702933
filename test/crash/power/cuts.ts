/**
 * Every state that a power cut can leave, from the log of a disk. A write is certain once a flush that began after it has ended; of the
 * others, any subset may be on the disk, and of one of them any number of its sectors.
 *
 * Cuts come where most is uncertain: just before each flush ends. An instant between two flushes adds nothing, since its writes are a
 * subset of the uncertain ones at the end. And just after each answer of the program.
 *
 * No write of the superblock of ext4 or btrfs is torn: both rely on its atomicity, and no mount succeeds otherwise, with or without the
 * program.
 *
 * A write that reached the disk before a flush began counts as covered by it, although the file system may not have waited for its answer:
 * from outside the two look the same. A failed flush makes nothing certain, and loses nothing that a later one would save.
 */
import type { LogRecord } from '../../disk/write-log.js'
import { Expectations, type Expected, type Mark } from './marks.js'
import type { Random } from '../../random.js'
import type { Depth, Recording, Records } from './recording.js'

export interface CrashState {
  /** Index of the record before which the power was cut. */
  readonly cut: number
  /** Everything that was written before this index is on the disk. */
  readonly certain: number
  /** Of the writes after it, the ones that are on the disk, by index. */
  readonly lucky: readonly number[]
  /** How many sectors of the last of them are. */
  readonly sectors: number | undefined
  readonly expected: readonly Expected[]
}

export const sectorBytes = 512
/** Where ext4 has it, and btrfs, in bytes; xfs has its own in one sector. */
const superblocks = [
  { start: 1024, end: 2048 },
  { start: 65_536, end: 69_632 },
]

const amounts: Record<Depth, { random: number; torn: number; allSubsetsUpTo: number }> = {
  few: { random: 1, torn: 0, allSubsetsUpTo: 0 },
  default: { random: 2, torn: 1, allSubsetsUpTo: 2 },
  exhaustive: { random: 48, torn: 12, allSubsetsUpTo: 7 },
}

const changes = (record: LogRecord | undefined): boolean => record?.kind === 'write' || record?.kind === 'discard'

/** In the order of the log, each once: all of them, or so many drawn. */
export function crashStates(
  records: Records,
  recording: Pick<Recording, 'cuts' | 'depth' | 'most'>,
  random: Random,
): Iterable<CrashState> {
  const { most } = recording
  if (most === undefined) return allStates(records, recording, random)
  const rest = [...allStates(records, recording, random)]
  while (rest.length > most) rest.splice(random.below(rest.length), 1)
  return rest
}

function* allStates(
  { records, last }: Records,
  { cuts: where, depth }: Pick<Recording, 'cuts' | 'depth'>,
  random: Random,
): Generator<CrashState> {
  const seen = new Set<string>()
  for (const { cut, certain, expected, beforeFlush } of cutsOf(records, last)) {
    if (beforeFlush && where === 'said') continue
    const uncertain: number[] = []
    for (let index = certain; index < cut; index++) if (changes(records[index])) uncertain.push(index)
    for (const { lucky, sectors } of choices(records, uncertain, depth, random)) {
      const allowed = expected.map(({ allowed }) => allowed.join()).join(' ')
      const key = `${certain} ${lucky.join()} ${sectors ?? ''} ${allowed}`
      if (seen.has(key)) continue
      seen.add(key)
      yield { cut, certain, lucky, sectors, expected }
    }
  }
}

interface Cut extends Pick<CrashState, 'cut' | 'certain' | 'expected'> {
  readonly beforeFlush: boolean
}

function* cutsOf(records: readonly LogRecord[], last: number): Generator<Cut> {
  const expectations = new Expectations()
  const begun = new Map<number, number>()
  let certain = last
  for (const [index, { kind, number, data }] of records.entries()) {
    const counts = index >= last && expectations.all.length > 0
    if (kind === 'mark') {
      const said = expectations.apply(JSON.parse(data.toString()) as Mark)
      if (said && index >= last) yield { cut: index + 1, certain, expected: expectations.all, beforeFlush: false }
    }
    if (index < last) continue
    if (kind === 'flush-begun') begun.set(number, index)
    if (kind !== 'flush-ended') continue
    if (counts) yield { cut: index, certain, expected: expectations.all, beforeFlush: true }
    certain = Math.max(certain, begun.get(number) ?? certain)
  }
  if (expectations.all.length > 0)
    yield { cut: records.length, certain, expected: expectations.all, beforeFlush: false }
}

/** Where numbers are drawn from. */
type Draws = Pick<Random, 'below'>

export interface Choice {
  readonly lucky: readonly number[]
  readonly sectors: number | undefined
}

function* choices(
  records: readonly LogRecord[],
  uncertain: readonly number[],
  depth: Depth,
  random: Draws,
): Generator<Choice> {
  const { allSubsetsUpTo, ...amount } = amounts[depth]
  yield { lucky: [], sectors: undefined }
  if (uncertain.length === 0) return
  yield { lucky: uncertain, sectors: undefined }
  if (uncertain.length <= allSubsetsUpTo) {
    for (let bits = 1; bits < 2 ** uncertain.length - 1; bits++) {
      yield { lucky: uncertain.filter((_, index) => (bits >> index) & 1), sectors: undefined }
    }
  } else {
    for (let count = 0; count < amount.random; count++) {
      yield { lucky: subset(uncertain, random), sectors: undefined }
    }
  }
  for (let count = 0; count < amount.torn; count++) {
    const lucky = random.below(2) === 0 ? prefix(uncertain, random) : subset(uncertain, random)
    const torn = records[lucky.at(-1) ?? -1]
    const sectors = Math.floor((torn?.length ?? 0) / sectorBytes)
    if (sectors > 1 && !holdsSuperblock(torn)) yield { lucky, sectors: 1 + random.below(sectors - 1) }
  }
}

/** One of them, drawn: none, all, some, or some and a part of one more. */
export function drawnChoice(records: readonly LogRecord[], uncertain: readonly number[], random: Draws): Choice {
  const all = [...choices(records, uncertain, 'default', random)]
  return all[random.below(all.length)] ?? { lucky: [], sectors: undefined }
}

const prefix = (all: readonly number[], random: Draws): number[] => all.slice(0, 1 + random.below(all.length))

function holdsSuperblock(record: LogRecord | undefined): boolean {
  if (record === undefined) return false
  const { offset, length } = record
  return superblocks.some(({ start, end }) => offset < end && offset + length > start)
}

/** Different kinds of luck, since each finds other faults: about half, a prefix, all but one, one alone. */
function subset(all: readonly number[], random: Draws): number[] {
  const one = all[random.below(all.length)]
  switch (random.below(4)) {
    case 0:
      return prefix(all, random)
    case 1:
      return all.filter((index) => index !== one)
    case 2:
      return all.filter((index) => index === one)
    default:
      return all.filter(() => random.below(2) === 0)
  }
}
