/** A thread that runs one target: makes inputs, keeps those that reach something new, and reports those that break a rule. */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { Random } from '../random.js'
import { Coverage } from './coverage.js'
import { GoReader } from './go-readings.js'
import { mutated } from './mutate.js'
import { SharedInput } from './shared-input.js'
import type { Target } from './target.js'
import { loadTarget } from './targets/index.js'

export interface LoopData {
  readonly target: string
  readonly seed: number
  /** What to begin with. */
  readonly corpus: readonly Uint8Array[]
  /** Milliseconds, and inputs: the first of the two ends it. */
  readonly time: number
  readonly inputs: number
  /** Different findings after which it ends. */
  readonly findings: number
  /** Milliseconds of processor time that one input may take, the least of three runs. */
  readonly slowest: number
  /** go-readings; undefined: nothing is compared with it. */
  readonly go: string | undefined
  readonly memory: SharedArrayBuffer
}

export type LoopMessage =
  | { readonly type: 'finding'; readonly input: Uint8Array; readonly message: string }
  | { readonly type: 'done'; readonly inputs: number; readonly share: number; readonly corpus: readonly Uint8Array[] }

/** Inputs between two looks at the coverage, which takes as long as some hundred of the shortest. */
const batch = 64
/** Runs that may go into making a finding's input shorter. */
const shortenings = 400

class Loop {
  readonly #data: LoopData
  readonly #corpus: Buffer[] = []
  readonly #kept: Buffer[] = []
  readonly #found = new Set<string>()
  readonly #random: Random
  readonly #words: Buffer[]
  readonly #shared: SharedInput
  #inputs = 0

  constructor(
    data: LoopData,
    private readonly target: Target,
    private readonly coverage: Coverage,
    private readonly go: GoReader | undefined,
  ) {
    this.#data = data
    this.#shared = new SharedInput(data.memory)
    this.#random = Random.for(data.seed, data.target)
    this.#words = target.words.map((word) => Buffer.from(word, /^[\0-\xff]*$/.test(word) ? 'latin1' : 'utf8'))
  }

  async run(): Promise<void> {
    const end = performance.now() + this.#data.time
    const seeds = [Buffer.alloc(0), ...this.#data.corpus.map((input) => Buffer.from(input))]
    for (let at = 0; at < seeds.length; at += batch) await this.#runBatch(seeds.slice(at, at + batch))
    const { longest } = this.target
    while (performance.now() < end && this.#inputs < this.#data.inputs && this.#found.size < this.#data.findings) {
      const sources = { corpus: this.#corpus, words: this.#words, longest }
      await this.#runBatch(Array.from({ length: batch }, () => mutated(this.#random, sources)))
    }
    const { files } = this.target
    const share = this.coverage.shareOf((url) => files.some((file) => url.endsWith(`/dist/src/${file}`))) ?? 0
    send({ type: 'done', inputs: this.#inputs, share, corpus: this.#kept })
  }

  async #runBatch(inputs: readonly Buffer[]): Promise<void> {
    const readings: unknown[] = []
    const broken = new Set<Buffer>()
    for (const input of inputs) {
      const tried = await this.#try(input)
      readings.push(tried.reading)
      if (tried.problem !== undefined) broken.add(input)
    }
    this.#inputs += inputs.length
    for (const [at, problem] of (await this.#contradictions(inputs, readings)).entries()) {
      const input = inputs[at]
      if (problem !== undefined && input !== undefined) broken.add(input)
    }
    for (const input of broken) await this.#report(input)
    const batchLook = this.coverage.look()
    if (batchLook.fresh === 0) return
    // Which of them it was shows one by one.
    for (const input of inputs) {
      await this.#try(input)
      const { fresh, keep } = this.coverage.look()
      if (fresh === 0) continue
      keep()
      this.#corpus.push(input)
      if (!this.#isGiven(input)) this.#kept.push(input)
    }
    batchLook.keep()
  }

  #isGiven(input: Buffer): boolean {
    return this.#data.corpus.some((given) => input.equals(given))
  }

  /** The reading, and what it broke. */
  async #try(input: Buffer): Promise<{ readonly reading?: unknown; readonly problem?: string }> {
    this.#shared.put(input)
    const { slowest } = this.#data
    let fastest = Infinity
    let reading: unknown
    try {
      // A collection of garbage may fall into one: the least of three runs counts.
      for (let run = 0; run < 3 && fastest > slowest; run++) {
        const start = process.cpuUsage()
        reading = await this.target.read(input)
        const { user, system } = process.cpuUsage(start)
        fastest = Math.min(fastest, (user + system) / 1000)
      }
    } catch (error) {
      return { problem: describe(error) }
    }
    return fastest > slowest ? { problem: `slower than ${slowest} ms` } : { reading }
  }

  async #contradictions(inputs: readonly Buffer[], readings: readonly unknown[]): Promise<(string | undefined)[]> {
    const { go } = this.target
    if (go === undefined || this.go === undefined) return []
    const theirs = await this.go.read(go.as, inputs)
    return inputs.map((input, at) => go.contradiction(input, readings[at], theirs[at] ?? {}))
  }

  /** What an input breaks, by itself. */
  async #problem(input: Buffer): Promise<string | undefined> {
    const { problem, reading } = await this.#try(input)
    return problem ?? (await this.#contradictions([input], [reading]))[0]
  }

  async #report(input: Buffer): Promise<void> {
    const problem = await this.#problem(input)
    if (problem === undefined || this.#found.has(kindOf(problem))) return
    this.#found.add(kindOf(problem))
    const shortest = await this.#shortened(input, kindOf(problem))
    send({ type: 'finding', input: shortest, message: (await this.#problem(shortest)) ?? problem })
  }

  /** Without the parts that the problem does not need. */
  async #shortened(input: Buffer, kind: string): Promise<Buffer> {
    let left = shortenings
    for (let size = Math.ceil(input.length / 2); size >= 1 && left > 0; size = Math.floor(size / 2)) {
      for (let at = 0; at < input.length && left > 0; left--) {
        const shorter = Buffer.concat([input.subarray(0, at), input.subarray(at + size)])
        const problem = await this.#problem(shorter)
        if (problem !== undefined && kindOf(problem) === kind) input = shorter
        else at += size
      }
    }
    return input
  }
}

/** Without what differs from input to input. */
function kindOf(problem: string): string {
  return problem.replaceAll(/"(?:[^"\\]|\\.)*(?:"|$)|[-\d.e+]+/g, '').slice(0, 60)
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return `threw ${String(error)}`
  if (error.name === 'Finding') return error.message
  const place = /\/dist\/(?:src|test)\/\S+?:\d+/.exec(error.stack ?? '')?.[0] ?? ''
  return `${error.name}: ${error.message} (${place})`
}

function send(message: LoopMessage): void {
  parentPort?.postMessage(message)
}

/** The scripts whose coverage leads to new inputs. */
function counts(url: string): boolean {
  return /\/dist\/src\/|\/node_modules\/yaml\/|\/fuzz\/targets\/planted\.js$/.test(url)
}

async function main(data: LoopData): Promise<void> {
  const coverage = new Coverage(counts)
  const target = await loadTarget(data.target)
  const go = data.go === undefined || target.go === undefined ? undefined : new GoReader(data.go)
  try {
    await new Loop(data, target, coverage, go).run()
  } finally {
    go?.close()
    coverage.close()
    await target.close?.()
  }
}

if (!isMainThread) await main(workerData as LoopData)
