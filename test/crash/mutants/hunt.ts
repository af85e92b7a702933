import { testsOf } from '../../tested.js'
import { hashOf, type Item } from './battery.js'
import type { Bench } from './bench.js'
import type { Mutant, Source } from './mutants.js'
import type { Reach } from './reach.js'
import { inPart, type Result } from './results.js'

/** What a mutant of `source` is put before, the most promising first. */
export class Hunt {
  /** Kills by file and item: a killer in this file kills there again. */
  readonly #kills = new Map<string, number>()

  /** @throws Error where one of the items fails without a mutant. */
  constructor(
    readonly items: readonly Item[],
    readonly reach: Reach,
    /** CPU-seconds that an item may take, at most. */
    readonly limit: number,
    /** So many tests for each mutant, at most: what lives is then tried again by the next run. */
    readonly first: number,
    /** The known results. */
    results: ReadonlyMap<string, Result>,
    named: ReadonlyMap<string, Mutant>,
  ) {
    const red = items.filter((item) => !reach.isGreen(item)).map(({ name }) => name)
    if (red.length > 0) throw new Error(`these fail in the copy without a mutant, and judge nothing: ${red.join(', ')}`)
    for (const [id, { verdict, by }] of results) if (verdict === 'killed') this.#count(named.get(id)?.file ?? '', by)
  }

  #count(file: string, item: string): void {
    // Killers of other files count, too, but less.
    for (const key of [`${file} ${item}`, ` ${item}`]) this.#kills.set(key, (this.#kills.get(key) ?? 0) + 1)
  }

  itemsFor(mutant: Mutant): Item[] {
    return this.items
      .filter((item) => this.reach.secondsOf(item) <= this.limit)
      .filter((item) => this.reach.comesBy(item, mutant))
      .filter(
        (item) =>
          mutant.file.startsWith('src/static-pods/') === item.name.startsWith('test/static-pods/') ||
          this.#isNamed(item, mutant),
      )
      .sort((a, b) => this.#costOf(a, mutant) - this.#costOf(b, mutant))
  }

  #isNamed({ name }: Item, { file }: Pick<Mutant, 'file'>): boolean {
    return testsOf(file).includes(name)
  }

  #costOf(item: Item, { file }: Mutant): number {
    const there = this.#kills.get(`${file} ${item.name}`) ?? 0
    const named = this.#isNamed(item, { file }) ? 10 : 0
    const kills = there + (this.#kills.get(` ${item.name}`) ?? 0) / 20 + named
    return this.reach.secondsOf(item) / (1 + kills)
  }

  /** Whether an answer still holds: mutant and killer are the same, or for a survivor, all of its tests. */
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
  async try(bench: Bench, source: Source, mutant: Mutant): Promise<Result> {
    const all = this.itemsFor(mutant)
    const items = all.slice(0, this.first)
    const answer = await bench.confirm(source, mutant, items, (item) => this.reach.secondsOf(item))
    const killer = answer.verdict === 'killed' ? items.find(({ name }) => name === answer.by) : undefined
    if (!killer) return { ...answer, hash: items.length < all.length ? inPart : this.#hashOfAll(mutant) }
    this.#count(mutant.file, killer.name)
    return { ...answer, hash: hashOf(mutant.context, killer.hash) }
  }
}
