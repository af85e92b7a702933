import { busyness } from '../../until.js'
import type { Answer, Verdict } from './answer.js'
import type { Item } from './battery.js'
import type { Mutant, Source } from './mutants.js'
import { Rig } from './rig.js'
import { tryItem } from './trial.js'
import { openWorkshop, withMutant, type Workshop } from './workshop.js'

/** What fails without a mutant: no failure of it counts as a kill. By all benches of a run. */
export class Refused {
  /** These fail beside others in one process: they are given one of their own. */
  readonly inRig = new Set<string>()
  readonly alone = new Set<string>()
  readonly passed = new Set<string>()
}

/** So many that hang are waited for: what hangs in the cheapest tests hangs in most. */
const hangsAtMost = 1

/** Seconds that something which takes so many CPU-seconds may take. */
export function patienceFor(seconds: number): number {
  return (5 + 8 * seconds) * busyness()
}

/** A copy of the program on which mutants are tried, one at a time. */
export class Bench {
  readonly #shop: Workshop
  readonly #rig: Rig

  constructor(
    readonly refused: Refused,
    /** Compares each kill with the unmutated program at once; otherwise the caller does, with `fails`. */
    readonly isStrict = true,
    copied?: readonly string[],
  ) {
    this.#shop = openWorkshop(copied)
    this.#rig = new Rig(this.#shop)
  }

  /** As `try`, but with a killer that kills twice: a single kill may be luck, and no claim of the table rests on it. */
  async confirm(
    source: Source,
    mutant: Mutant,
    items: readonly Item[],
    secondsOf: (item: Item) => number,
  ): Promise<Answer> {
    let left = items
    for (;;) {
      const answer = await this.try(source, mutant, left, secondsOf)
      const killer = answer.verdict === 'killed' ? left.find(({ name }) => name === answer.by) : undefined
      if (!killer || (await this.try(source, mutant, [killer], secondsOf)).verdict === 'killed') return answer
      left = left.filter((item) => item !== killer)
    }
  }

  /** Puts the mutant before each of these until one kills it. */
  async try(
    source: Source,
    mutant: Mutant,
    items: readonly Item[],
    secondsOf: (item: Item) => number,
  ): Promise<Answer> {
    const patience = (item: Item): number => patienceFor(secondsOf(item))
    const inMutant = (work: () => Promise<Answer>): Promise<Answer> => withMutant(this.#shop, source, mutant, work)
    const { inRig, alone } = this.refused
    let worst = await this.#tryTogether(
      items.filter(({ isTest }) => isTest),
      inMutant,
      patience,
    )
    if (worst.verdict === 'killed') return worst
    let hangs = worst.verdict === 'hangs' ? 1 : 0
    for (const item of items.filter(({ name, isTest }) => (!isTest || inRig.has(name)) && !alone.has(name))) {
      if (hangs > hangsAtMost) break
      const answer = await inMutant(() => tryItem(item, this.#shop, patience(item)))
      if (answer.verdict === 'killed' && (await this.#passesAlone(item, patience(item)))) return answer
      if (answer.verdict === 'hangs' || answer.verdict === 'breaks') worst = answer
      hangs += answer.verdict === 'hangs' ? 1 : 0
    }
    return worst
  }

  async #tryTogether(
    items: readonly Item[],
    inMutant: (work: () => Promise<Answer>) => Promise<Answer>,
    patience: (item: Item) => number,
  ): Promise<Answer> {
    const { inRig } = this.refused
    let left = items.filter(({ name }) => !inRig.has(name))
    let worst: Answer = { verdict: 'survived', by: '' }
    let hangs = 0
    while (left.length > 0 && hangs <= hangsAtMost) {
      const some = left
      const answer = await inMutant(() => this.#rig.try(some, patience))
      const at = some.findIndex(({ name }) => name === answer.by)
      const one = some[at]
      if (answer.verdict === 'killed' && one && (await this.#isKill(one, inMutant, patience))) return answer
      if (answer.verdict !== 'survived' && answer.verdict !== 'killed') worst = answer
      // A test that ends or blocks its process keeps those behind it from running.
      hangs += answer.verdict === 'hangs' ? 1 : 0
      left = answer.verdict === 'survived' ? [] : some.slice(at + 1)
    }
    return worst
  }

  /** A test that fails by itself, or since something was left behind, is no killer. */
  async #isKill(
    item: Item,
    inMutant: (work: () => Promise<Answer>) => Promise<Answer>,
    patience: (item: Item) => number,
  ): Promise<boolean> {
    if (!this.isStrict) return true
    const once = (): Promise<Answer> => this.#rig.try([item], patience)
    // In the same process, without the mutant.
    if ((await once()).verdict === 'survived') return true
    this.#rig.stop()
    const passes = (await once()).verdict === 'survived'
    this.#rig.stop()
    if (!passes) this.refused.inRig.add(item.name)
    const kills = passes && (await inMutant(once)).verdict === 'killed'
    this.#rig.stop()
    return kills
  }

  /**
   * One test's verdict on the mutant. A test that hangs or breaks without a mutant, too, proves nothing, and `refused` names it. A hang of a
   * test that is slow without a mutant, too, may be impatience: the bench asks again, with patience for a test of that length.
   */
  async ask(source: Source, mutant: Mutant, item: Item, seconds: number): Promise<Verdict> {
    const { verdict } = await this.try(source, mutant, [item], () => seconds)
    if (verdict === 'killed' || verdict === 'survived') return verdict
    const { inRig } = this.refused
    const patience = patienceFor(seconds)
    if (!item.isTest || inRig.has(item.name)) return (await this.#passesAlone(item, patience)) ? verdict : 'survived'
    const began = performance.now()
    const fails = await this.fails(item, patience)
    // Others that keep the machine busy count once: in the patience.
    const taken = (performance.now() - began) / 1000 / busyness()
    if (!fails) return verdict === 'hangs' && taken > 2 * seconds ? this.ask(source, mutant, item, taken) : verdict
    this.#rig.stop()
    inRig.add(item.name)
    return this.ask(source, mutant, item, seconds)
  }

  /** Whether a test does not pass here without a mutant. */
  async fails(item: Item, patience: number): Promise<boolean> {
    return item.isTest && (await this.#rig.try([item], () => patience)).verdict !== 'survived'
  }

  /** Tried once: without a mutant it must pass. */
  async #passesAlone(item: Item, patience: number): Promise<boolean> {
    const { alone, passed } = this.refused
    if (!passed.has(item.name)) {
      const { verdict } = await tryItem(item, this.#shop, patience)
      ;(verdict === 'survived' ? passed : alone).add(item.name)
    }
    return passed.has(item.name)
  }

  remove(): void {
    this.#rig.stop()
    this.#shop.remove()
  }
}
