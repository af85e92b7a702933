import { hashOf, type Item } from './battery.js'
import type { Bench } from './bench.js'
import type { Mutant, Source } from './mutants.js'
import type { Reach } from './reach.js'
import type { Result } from './results.js'

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

  /** Puts it before all that come by it until one kills it. */
  async try(bench: Bench, source: Source, mutant: Mutant, limit = this.limit): Promise<Result> {
    const items = this.itemsFor(mutant, limit)
    const answer = await bench.try(source, mutant, items, (item) => this.reach.secondsOf(item))
    const killer = answer.verdict === 'killed' ? items.find(({ name }) => name === answer.by) : undefined
    if (!killer) return { ...answer, hash: this.#hashOfAll(mutant) }
    const key = `${mutant.file} ${killer.name}`
    this.#kills.set(key, (this.#kills.get(key) ?? 0) + 1)
    return { ...answer, hash: hashOf(mutant.context, killer.hash) }
  }
}
