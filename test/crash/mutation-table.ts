import { editsOf, type Mutation, type SuiteName, suiteNames } from './mutation.js'
import { makeProgram } from './program.js'
import { run, type Trial, trialOf, type TrialResult } from './suites.js'

interface Cell extends TrialResult {
  readonly trial: Trial
}

export interface Row {
  readonly mutation: Mutation
  readonly cells: readonly Cell[]
  readonly seconds: number
}

export interface Extent {
  /** Only this suite; '' for all. */
  readonly suite: string
  readonly isRoot: boolean
  /** Copies that are tried at a time. */
  readonly width: number
  /** Seconds after which no further mutation is begun. */
  readonly seconds: number
}

/** Longest time for one suite with one mutation, in milliseconds: one that hangs has been caught. */
const patience = 240_000

/** Each kind of fsync is also taken out on real disks, whatever else has caught it. Who names a suite wants all that it must catch. */
function trialsFor(mutation: Mutation, { suite: only, isRoot }: Extent): Trial[] {
  const [cheapest, ...others] = mutation.caughtBy
  const asked = only === '' ? [cheapest, ...others.filter(({ suite }) => suite === 'power')] : mutation.caughtBy
  return asked
    .map((catcher) => trialOf(catcher, mutation))
    .filter(({ suite, needsRoot }) => (isRoot || !needsRoot) && suite.includes(only))
}

/** The tried mutations: a row for each that began in time, and the program's complaints without any. */
export interface Tried {
  readonly rows: readonly Row[]
  readonly complaints: readonly string[]
}

/** Each mutation against its suites, until `extent.seconds` are over. */
export async function runMutations(
  mutations: readonly Mutation[],
  extent: Extent,
  report: (row: Row) => void,
): Promise<Tried> {
  const rows: Row[] = []
  const until = performance.now() + extent.seconds * 1000
  const unmutated = new UnmutatedProgram()
  try {
    await inTurns(mutations, extent.width, async (mutation) => {
      const began = performance.now()
      if (began > until) return
      const trials = trialsFor(mutation, extent)
      for (const trial of trials) await unmutated.try(trial)
      const program = makeProgram(editsOf(mutation))
      try {
        const cells: Cell[] = []
        for (const trial of trials) cells.push({ ...(await run(trial, program.directory, patience)), trial })
        const row = { mutation, cells, seconds: (performance.now() - began) / 1000 }
        rows.push(row)
        report(row)
      } finally {
        program.remove()
      }
    })
  } finally {
    unmutated.remove()
  }
  rows.sort((a, b) => mutations.indexOf(a.mutation) - mutations.indexOf(b.mutation))
  return { rows, complaints: unmutated.complaints }
}

/**
 * The same trials on the program as it is, each once: a trial that complains there would seem to catch everything. Those of the model and
 * of power cuts are parts of those suites' own runs.
 */
class UnmutatedProgram {
  readonly complaints: string[] = []
  readonly #program = makeProgram()
  readonly #tried = new Map<string, Promise<void>>()

  async try(trial: Trial): Promise<void> {
    if (trial.suite === 'model' || trial.suite === 'power') return
    const key = JSON.stringify([trial.command, trial.env])
    const tried = this.#tried.get(key) ?? this.#run(trial)
    this.#tried.set(key, tried)
    await tried
  }

  async #run(trial: Trial): Promise<void> {
    const { words, complaint } = await run(trial, this.#program.directory, patience)
    if (words.length > 0) this.complaints.push(`${trial.command.join(' ')}: ${complaint}`)
  }

  remove(): void {
    this.#program.remove()
  }
}

async function inTurns<Item>(
  items: readonly Item[],
  width: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const lane = async (): Promise<void> => {
    for (const item of queue) await task(item)
  }
  await Promise.all(Array.from({ length: width }, lane))
}

/** Words that a trial should have had, and has not. */
function missed({ trial, words }: Row['cells'][number]): string[] {
  return trial.expects.filter((word) => !words.includes(word))
}

/** The table for people: what caught it, `—` for not caught, nothing where a suite was not run, `!` where it had to. */
export function table(rows: readonly Row[]): string {
  const cell = ({ cells }: Row, suite: SuiteName): string => {
    const those = cells.filter(({ trial }) => trial.suite === suite)
    const words = [...new Set(those.flatMap((one) => one.words))]
    const complains = those.some((one) => missed(one).length > 0) ? ' !' : ''
    return (words.join(' ') || (those.length > 0 ? '—' : '')) + complains
  }
  const head = ['mutation', ...suiteNames]
  const lines = rows.map((row) => [row.mutation.name, ...suiteNames.map((suite) => cell(row, suite))])
  const widths = head.map((_, column) => Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)))
  const shown = (line: readonly string[]): string =>
    line
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [shown(head), shown(widths.map((width) => '-'.repeat(width))), ...lines.map(shown)].join('\n')
}

/** Mutations that a suite which was run should have caught. */
export function survivors(rows: readonly Row[]): Row[] {
  return rows.filter(({ cells }) => cells.some((cell) => missed(cell).length > 0))
}

/** Mutations for which nothing could be run here. */
export function untried(rows: readonly Row[]): Row[] {
  return rows.filter(({ cells }) => cells.length === 0)
}
