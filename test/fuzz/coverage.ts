/** Which parts of the program have run, by V8's own counters: nothing is instrumented, and what runs is what ships. */
import { Session, type Profiler } from 'node:inspector'

/** One script: a byte for each character of its text, 1 where it has run. */
type Covered = Map<string, Uint8Array>

export class Coverage {
  readonly #session = new Session()
  readonly #covered: Covered = new Map()

  /** Begins to count; modules that are loaded later are covered whole. @param counts which scripts count, by URL */
  constructor(private readonly counts: (url: string) => boolean) {
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** What has run since the last look: how much of it had never run before, in characters of source; `keep` makes it known. */
  look(): { readonly fresh: number; readonly keep: () => void } {
    const news = this.#result().map(({ url, functions }) => {
      const ran = paint(functions)
      const known = this.#known(url, ran.length)
      return { known, at: freshIn(ran, known) }
    })
    const fresh = news.reduce((sum, { at }) => sum + at.length, 0)
    return { fresh, keep: () => news.forEach(({ known, at }) => at.forEach((one) => (known[one] = 1))) }
  }

  /** The share of a script that has run; undefined for one that was never loaded. */
  shareOf(isScript: (url: string) => boolean): number | undefined {
    const found = [...this.#covered].filter(([url]) => isScript(url)).map(([, bytes]) => bytes)
    const all = found.reduce((sum, { length }) => sum + length, 0)
    const ran = found.reduce((sum, bytes) => sum + bytes.reduce((one, byte) => one + byte, 0), 0)
    return all === 0 ? undefined : ran / all
  }

  close(): void {
    this.#session.disconnect()
  }

  #known(url: string, length: number): Uint8Array {
    const known = this.#covered.get(url) ?? new Uint8Array()
    if (known.length >= length) return known
    const longer = new Uint8Array(length)
    longer.set(known)
    this.#covered.set(url, longer)
    return longer
  }

  #result(): Profiler.ScriptCoverage[] {
    let result: Profiler.ScriptCoverage[] = []
    this.#session.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error !== null) throw error
      result = answer.result.filter(({ url }) => this.counts(url))
    })
    return result
  }

  #post(method: string, parameters: object = {}): void {
    this.#session.post(method, parameters, (error) => {
      if (error !== null) throw error
    })
  }
}

/** Outer functions and ranges stand before inner ones, which say otherwise than the outer. */
function paint(functions: readonly Profiler.FunctionCoverage[]): Uint8Array {
  const ends = functions.map(({ ranges }) => ranges[0]?.endOffset ?? 0)
  const ran = new Uint8Array(Math.max(0, ...ends))
  for (const { ranges } of functions)
    for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset)
  return ran
}

function freshIn(ran: Uint8Array, known: Uint8Array): number[] {
  const fresh: number[] = []
  for (let at = 0; at < ran.length; at++) if (ran[at] === 1 && known[at] !== 1) fresh.push(at)
  return fresh
}
