import type { Answer } from './answer.js'
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

/** A copy of the program on which mutants are tried, one at a time. */
export class Bench {
  readonly #shop: Workshop
  readonly #rig: Rig

  constructor(readonly refused: Refused) {
    this.#shop = openWorkshop()
    this.#rig = new Rig(this.#shop)
  }

  /** Puts the mutant before each of these until one kills it. */
  async try(
    source: Source,
    mutant: Mutant,
    items: readonly Item[],
    secondsOf: (item: Item) => number,
  ): Promise<Answer> {
    const patience = (some: readonly Item[]): number => some.reduce((sum, item) => sum + 8 * secondsOf(item), 8)
    const inMutant = (work: () => Promise<Answer>): Promise<Answer> => withMutant(this.#shop, source, mutant, work)
    const together = items.filter(({ isTest }) => isTest)
    const first = await this.#tryTogether(together, inMutant, patience)
    if (first.verdict === 'killed') return first
    const { inRig, alone } = this.refused
    // A process that has ended has not said what the others find.
    const isOpen = first.verdict !== 'survived' && first.by === ''
    const left = items.filter((item) => isOpen || !item.isTest || inRig.has(item.name))
    let worst = first
    let hangs = 0
    for (const item of left.filter(({ name }) => !alone.has(name))) {
      const answer = await inMutant(() => tryItem(item, this.#shop, patience([item])))
      if (answer.verdict === 'killed' && (await this.#passesAlone(item, patience([item])))) return answer
      if (answer.verdict === 'hangs' || answer.verdict === 'breaks') worst = answer
      hangs += answer.verdict === 'hangs' ? 1 : 0
      if (hangs > hangsAtMost) break
    }
    return isOpen && worst === first ? { verdict: 'survived', by: '' } : worst
  }

  async #tryTogether(
    items: readonly Item[],
    inMutant: (work: () => Promise<Answer>) => Promise<Answer>,
    patience: (items: readonly Item[]) => number,
  ): Promise<Answer> {
    const { inRig } = this.refused
    const some = items.filter(({ name }) => !inRig.has(name))
    if (some.length === 0) return { verdict: 'survived', by: '' }
    const inRigs = (chosen: readonly Item[]): Promise<Answer> => this.#rig.try(chosen, patience(chosen))
    const answer = await inMutant(() => inRigs(some))
    const killer = some.find(({ name }) => name === answer.by)
    if (answer.verdict !== 'killed' || killer === undefined) return answer
    // The same process without the mutant: a test that fails by itself, or since something was left behind, is no killer.
    if ((await inRigs([killer])).verdict === 'survived') return answer
    this.#rig.stop()
    const passes = (await inRigs([killer])).verdict === 'survived'
    this.#rig.stop()
    if (!passes) inRig.add(killer.name)
    else if ((await inMutant(() => inRigs([killer]))).verdict === 'killed') {
      this.#rig.stop()
      return answer
    }
    return this.#tryTogether(passes ? some.filter((item) => item !== killer) : items, inMutant, patience)
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
