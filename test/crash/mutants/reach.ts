import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../../project.js'
import { hashOf, type Item } from './battery.js'
import { type Mutant, probed, type Source } from './mutants.js'
import { secondsOfChildren, tryItem } from './trial.js'
import { openWorkshop, type Workshop } from './workshop.js'

/** The mutants that an item passes, and its CPU-seconds. Mutants are named by the hash of their name. */
interface Measured {
  readonly hash: string
  readonly seconds: number
  readonly isGreen: boolean
  readonly hit: readonly string[]
  readonly missed: readonly string[]
}

type Measures = Record<string, Measured>

const file = join(project, 'dist/.mutants-reach.json')

function kept(): Measures {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Measures
  } catch {
    return {}
  }
}

/** Writes each number once, at once: a process that is killed has said where it was. */
const probe = `
import { mkdirSync, openSync, writeSync } from 'node:fs'
const known = new Set()
let descriptor
export function hit(number) {
  if (known.has(number)) return
  known.add(number)
  if (descriptor === undefined) {
    mkdirSync('HITS', { recursive: true })
    descriptor = openSync('HITS/' + process.pid, 'a')
  }
  writeSync(descriptor, number + '\\n')
}
`

/** Which items come by which mutants, as measured now or when they were last changed. */
export class Reach {
  readonly #measures: Measures
  readonly #files = new Map<string, Set<string>>()
  readonly #sets = new Map<string, { hit: Set<string>; missed: Set<string> }>()

  private constructor(measures: Measures, sources: readonly Source[]) {
    this.#measures = measures
    for (const [name, { hit, missed }] of Object.entries(measures)) {
      const set = { hit: new Set(hit), missed: new Set(missed) }
      this.#sets.set(name, set)
      const come = sources.filter(({ mutants }) =>
        mutants.some(({ id, isTopLevel }) => !isTopLevel && set.hit.has(hashOf(id))),
      )
      this.#files.set(name, new Set(come.map((source) => source.file)))
    }
  }

  /** Measures the unknown items, and once more those that failed. */
  static async of(items: readonly Item[], sources: readonly Source[], say: (line: string) => void): Promise<Reach> {
    const measures = kept()
    const stale = items.filter(({ name, hash }) => measures[name]?.hash !== hash || !measures[name].isGreen)
    if (stale.length > 0) {
      const shop = openWorkshop()
      try {
        const hits = join(shop.temporary, 'hits')
        instrument(shop, sources, hits)
        for (const item of stale) {
          const measured = await measure(item, shop, hits, sources)
          measures[item.name] = measured
          writeFileSync(file, JSON.stringify(measures))
          say(
            `${item.name}: ${measured.seconds.toFixed(1)} s, comes by ${measured.hit.length}${measured.isGreen ? '' : ', FAILS'}`,
          )
        }
      } finally {
        shop.remove()
      }
    }
    return new Reach(measures, sources)
  }

  secondsOf({ name }: Item): number {
    return this.#measures[name]?.seconds ?? 1
  }

  isGreen({ name }: Item): boolean {
    return this.#measures[name]?.isGreen ?? false
  }

  /** An unmeasured mutant counts as passed by each item that reaches the rest of its file. */
  comesBy({ name }: Item, { id, file: source, isTopLevel }: Mutant): boolean {
    const inFile = this.#files.get(name)?.has(source) ?? false
    if (isTopLevel) return inFile
    const hash = hashOf(id)
    const set = this.#sets.get(name)
    return set?.hit.has(hash) === true || (inFile && set?.missed.has(hash) !== true)
  }
}

function instrument(shop: Workshop, sources: readonly Source[], hits: string): void {
  writeFileSync(join(shop.directory, 'probe.js'), probe.replaceAll('HITS', hits))
  let first = 0
  for (const source of sources) {
    shop.write(source.file, probed(source, first, `${'../'.repeat(source.file.split('/').length - 1)}probe.js`))
    first += source.mutants.length
  }
}

async function measure(item: Item, shop: Workshop, hits: string, sources: readonly Source[]): Promise<Measured> {
  rmSync(hits, { recursive: true, force: true })
  mkdirSync(hits)
  const before = secondsOfChildren()
  const { verdict } = await tryItem(item, shop, 300)
  const seconds = secondsOfChildren() - before
  const numbers = readdirSync(hits).flatMap((name) => readFileSync(join(hits, name), 'utf8').split('\n'))
  const seen = new Set(numbers.filter((line) => line !== '').map(Number))
  const all = sources.flatMap(({ mutants }) => mutants)
  const hashes = (chosen: (index: number) => boolean): string[] =>
    all.flatMap(({ id }, index) => (chosen(index) ? [hashOf(id)] : []))
  return {
    hash: item.hash,
    seconds,
    isGreen: verdict === 'survived',
    hit: hashes((index) => seen.has(index)),
    missed: hashes((index) => !seen.has(index)),
  }
}
