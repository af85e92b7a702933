import { hashOf, type Item } from './battery.js'
import type { Mutant, Source } from './mutants.js'
import type { Reach } from './reach.js'
import type { Result } from './results.js'
import { tryItems } from './trial.js'
import { withMutant, type Workshop } from './workshop.js'

/** So many that hang are waited for: what hangs in the cheapest tests hangs in most. */
const hangsAtMost = 1

/** Seconds of tests that one process is given, so that not each mutant pays for every start. */
const secondsTogether = 3

/** What a mutant of `source` is put before, the most promising first. */
export class Hunt {
  /** Kills by file and item: what has killed there kills there again. */
  readonly #kills = new Map<string, number>()

  constructor(
    readonly items: readonly Item[],
    readonly reach: Reach,
    /** CPU-seconds that an item may take, at most. */
    readonly limit: number,
  ) {}

  itemsFor(mutant: Mutant, limit = this.limit): Item[] {
    return this.items
      .filter((item) => this.reach.isGreen(item) && this.reach.secondsOf(item) <= limit)
      .filter((item) => this.reach.comesBy(item, mutant))
      .filter((item) => mutant.file.startsWith('src/static-pods/') === item.name.startsWith('test/static-pods/'))
      .sort((a, b) => this.#costOf(a, mutant) - this.#costOf(b, mutant))
  }

  #costOf(item: Item, { file }: Mutant): number {
    const own = item.name === `test/${file.replace(/^src\//, '').replace(/\.ts$/, '')}.test.ts`
    const kills = (this.#kills.get(`${file} ${item.name}`) ?? 0) + (own ? 3 : 0)
    return this.reach.secondsOf(item) / (1 + kills)
  }

  /** Whether an answer still holds: mutant and killer are what they were, or of one that lives, everything that was tried. */
  isFresh(mutant: Mutant, { verdict, by, hash }: Result): boolean {
    if (verdict === 'killed') {
      const killer = this.items.find(({ name }) => name === by)
      return killer !== undefined && hash === hashOf(mutant.context, killer.hash)
    }
    return hash === this.#hashOfAll(mutant)
  }

  #hashOfAll(mutant: Mutant): string {
    const hashes = this.itemsFor(mutant).map(({ hash }) => hash)
    return hashOf(mutant.context, ...hashes.sort())
  }

  /** Those that share a process together, as many as a few seconds hold. */
  #batches(items: readonly Item[]): Item[][] {
    const batches: Item[][] = []
    let seconds = 0
    for (const item of items) {
      const batch = batches.at(-1)
      const joins = item.shares && batch?.every(({ shares }) => shares) && seconds < secondsTogether
      seconds = (joins ? seconds : 0) + this.reach.secondsOf(item)
      if (joins && batch) batch.push(item)
      else batches.push([item])
    }
    return batches
  }

  /** Puts it before all that come by it until one kills it. */
  async try(shop: Workshop, source: Source, mutant: Mutant, limit = this.limit): Promise<Result> {
    let worst: Pick<Result, 'verdict' | 'by'> = { verdict: 'survived', by: '' }
    let hangs = 0
    return withMutant(shop, source, mutant, async () => {
      for (const batch of this.#batches(this.itemsFor(mutant, limit))) {
        const patience = batch.reduce((sum, item) => sum + 8 * this.reach.secondsOf(item), 8)
        const answer = await tryItems(batch, shop, patience)
        const killer = this.items.find(({ name }) => name === answer.by)
        if (answer.verdict === 'killed' && killer) {
          const key = `${mutant.file} ${killer.name}`
          this.#kills.set(key, (this.#kills.get(key) ?? 0) + 1)
          return { ...answer, hash: hashOf(mutant.context, killer.hash) }
        }
        if (answer.verdict !== 'survived' && worst.verdict !== 'hangs') worst = answer
        hangs += answer.verdict === 'hangs' ? 1 : 0
        if (hangs > hangsAtMost) break
      }
      return { ...worst, hash: this.#hashOfAll(mutant) }
    })
  }
}
