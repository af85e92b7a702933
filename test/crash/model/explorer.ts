import { hash } from 'node:crypto'
import { Random } from '../../random.js'
import { eachChoice } from './choices.js'
import { canonical, holds, type Target, textOf } from './content.js'
import type { Inode } from './inode.js'
import { attemptLedger, type Catalogue, judge, type Ledger } from './ledger.js'
import type { ModelDisk } from './model-disk.js'
import { type Instant, play, type Played, type PlayOptions } from './play.js'
import { powerCut } from './power-cut.js'
import {
  catalogues,
  faultBeside,
  leftWithoutRecord,
  lostToHistory,
  lostToItsUser,
  type Scenario,
  type Step,
  strayInside,
} from './scenario.js'

export interface Counts {
  /** Disks that a power cut left: each was judged. */
  states: number
  /** Those of them whose disks differ, in a scenario. */
  distinct: number
  /** Calls of the core that came to their end. */
  plays: number
  /** Failures injected. */
  faults: number
  /** Instants whose crash states were all judged, not only drawn. */
  exhausted: number
  instants: number
}

export class Broken extends Error {}

/** A disk, and what the contract allows of it. */
export interface Position {
  readonly disk: ModelDisk
  readonly ledgers: readonly Ledger[]
  /** How it came about, for people. */
  readonly trail: readonly string[]
}

/** Plays, cuts the power, judges and counts. Keeps each kind of fault with the first way there. */
export class Explorer {
  readonly counts: Counts = { states: 0, distinct: 0, plays: 0, faults: 0, exhausted: 0, instants: 0 }
  readonly broken = new Map<string, { times: number; trail: readonly string[] }>()
  readonly random: Random
  readonly catalogues: readonly Catalogue[]
  /** As one text, what another program has put there: it must be somewhere from then on. */
  theirs: string | undefined
  readonly #seen = new Set<string>()

  constructor(
    readonly scenario: Scenario,
    seed: number,
    /** Stop at the first thing that is wrong. */
    readonly impatient: boolean,
  ) {
    this.random = new Random(seed)
    this.catalogues = catalogues(scenario)
  }

  report(fault: string, trail: readonly string[]): void {
    const known = this.broken.get(fault)
    if (known) known.times += 1
    else this.broken.set(fault, { times: 1, trail })
    if (this.impatient) throw new Broken(`${this.scenario.name}: ${fault}\n  ${trail.join('\n  ')}`)
  }

  /** One call; judges its answers, and after a success its leftovers and the disk after a power cut. */
  async play(position: Position, step: Step, what: string, options?: PlayOptions): Promise<Played & Position> {
    const played = await this.attempt(position, step, what, options)
    for (const fault of played.faults) this.report(fault, played.trail)
    return played
  }

  /** One call whose answers cannot be judged by themselves, since another process is at work. */
  async attempt(position: Position, step: Step, what: string, options?: PlayOptions): Promise<Played & Position> {
    this.counts.plays += 1
    const { disk } = position
    const played = await play(disk, this.catalogues, position.ledgers, step, options)
    return { ...played, disk, trail: [...position.trail, `${what} ${step.join('+')} → ${outcomesOf(played)}`] }
  }

  /**
   * Where a process was at an instant of a step, as its successor or the next boot meets it: each requested content may already be there.
   * `found`: where it had begun.
   */
  at(
    { ledgers, trail }: Position,
    { what, disk }: Instant,
    step: Step,
    found: Pick<Position, 'ledgers'> = { ledgers },
  ): Position {
    const underWay = this.catalogues.flatMap((catalogue, index) => {
      const [ledger] = ledgers.slice(index)
      const [before] = found.ledgers.slice(index)
      const [wanted] = step.slice(index)
      if (!ledger || !before || wanted === undefined) return ledger ?? []
      return attemptLedger(ledger, catalogue.made(wanted, before.visible))
    })
    return { disk, ledgers: underWay, trail: [...trail, `${step.join('+')}, stopped after: ${what}`] }
  }

  /** No staged entry remains. */
  tidy(position: Position, step: Step): void {
    const known = (target: Target, text: string): boolean =>
      (target.retire ?? target.history ?? target.takesOver) !== undefined &&
      this.catalogues.some((one) => one.target === target && one.knows(text))
    const fault = faultBeside(this.scenario, position.disk, step, this.theirs, known) ?? this.#loss(position.disk)
    if (fault !== undefined) this.report(fault, position.trail)
  }

  /** No target of the step shows its consumers anything but its content. */
  pure({ disk, trail }: Position, step: Step): void {
    const targets = this.scenario.targets.filter((_, index) => step[index] !== undefined)
    const fault = targets.map((target) => strayInside(disk, target)).find((one) => one !== undefined)
    if (fault !== undefined) this.report(`after the power cut ${fault}`, trail)
  }

  /** What must hold once a call has succeeded. */
  finished(position: Position, step: Step): void {
    this.tidy(position, step)
    this.judged({ ...position, trail: [...position.trail, 'looked at'] })
  }

  /** The content that a process uses is there. */
  used(disk: ModelDisk, trail: readonly string[]): void {
    const fault = lostToItsUser(this.scenario, disk)
    if (fault !== undefined) this.report(fault, trail)
  }

  /** The step's old content is in the history; a removal has a record for as long as any part of the target is there. */
  remembered({ disk, trail }: Position): void {
    const fault = lostToHistory(this.scenario, disk) ?? leftWithoutRecord(this.scenario, disk)
    if (fault !== undefined) this.report(fault, trail)
  }

  /** The disks that a power cut may leave; each is judged, and those that were not met before are handed over. */
  cut(position: Position, limit: number, then?: (survivor: Position) => void): void {
    this.counts.instants += 1
    const here = new Set<string>()
    const all = eachChoice(limit, this.random, (choose) => {
      const disk = powerCut(position.disk, choose)
      this.counts.states += 1
      // The faults of a disk depend on its content, and on the position, which is the same for all of these.
      const text = digestOf(disk)
      if (here.has(text)) return
      here.add(text)
      const survivor = this.judged({ ...position, disk })
      if (!survivor) return
      const key = text + shownTo(survivor)
      if (!this.#seen.has(key)) {
        this.#seen.add(key)
        this.counts.distinct += 1
      }
      then?.(survivor)
    })
    if (all) this.counts.exhausted += 1
  }

  /** Judges the visible content; from then on only that is possible, since it came from the disk. */
  judged(position: Position): Position | undefined {
    const ledgers: Ledger[] = []
    for (const [index, catalogue] of this.catalogues.entries()) {
      const ledger = position.ledgers[index]
      if (!ledger) throw new Error('a target without a ledger')
      const judgement = judge(catalogue, ledger, position.disk)
      if (judgement.fault !== undefined) {
        this.report(judgement.fault, [...position.trail, `power cut: ${shown(position.disk)}`])
        return undefined
      }
      const { visible } = judgement
      ledgers.push({ visible, possible: new Set([visible]), linked: ledger.linked })
    }
    const fault = faultBeside(this.scenario, position.disk) ?? this.#loss(position.disk)
    if (fault !== undefined) this.report(fault, position.trail)
    return { disk: position.disk, ledgers, trail: [...position.trail, 'power cut'] }
  }

  /** What a successor finds visible after a kill; what a power cut may bring back stays as it was. */
  visible(position: Position): Position | undefined {
    const ledgers: Ledger[] = []
    for (const [index, catalogue] of this.catalogues.entries()) {
      const ledger = position.ledgers[index]
      if (!ledger) throw new Error('a target without a ledger')
      const judgement = judge(catalogue, ledger, position.disk)
      if (judgement.fault !== undefined) {
        this.report(judgement.fault, [...position.trail, 'killed'])
        return undefined
      }
      ledgers.push({ ...ledger, visible: judgement.visible })
    }
    const fault = this.#loss(position.disk)
    if (fault !== undefined) this.report(fault, [...position.trail, 'killed'])
    return { ...position, ledgers, disk: position.disk.fork() }
  }

  #loss(disk: ModelDisk): string | undefined {
    if (this.theirs === undefined || holds(disk, this.theirs)) return undefined
    return "another program's content is lost"
  }

  keyOf({ disk, ledgers }: Position): string {
    return digestOf(disk) + shownTo({ ledgers })
  }
}

const leaves = new WeakMap<Inode, string>()

/** Equal for disks that hold the same. */
function digestOf(disk: ModelDisk): string {
  const leaf = (inode: Inode): string => {
    let digest = leaves.get(inode)
    if (digest === undefined) leaves.set(inode, (digest = hash('sha1', textOf(disk, inode), 'base64')))
    return digest
  }
  return hash('sha1', canonical(disk, leaf), 'base64')
}

function shownTo({ ledgers }: Pick<Position, 'ledgers'>): string {
  return ledgers.map(({ visible, linked }) => [visible, ...linked].join()).join(';')
}

/** The disk, for people: without the constant parts. */
function shown(disk: ModelDisk): string {
  return canonical(disk)
    .replace(/[^{,]*=f [0-7]+ 0:0 <[^>]* is not ours>,?/g, '')
    .replace(/,"publishedAt.*?(?=\n)/g, ' …')
    .replace(/\u00a5+/g, '(garbage)')
    .replace(/\0+/g, '(zeroes)')
    .slice(0, 1200)
}

function outcomesOf({ outcomes }: Played): string {
  return outcomes
    .map((outcome) => {
      if (outcome === undefined) return '-'
      if (!('error' in outcome)) return outcome.outcome
      return `${outcome.error.code}, published: ${outcome.error.published}`
    })
    .join('+')
}
