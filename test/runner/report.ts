/** Prints a run: a line for each file as it ends, then the failures in full, the skipped tests, and the totals. */
import type { Ran } from './run-batch.js'
import { inSources } from './source-places.js'
import type { FileTally, Outcome, TestResult } from './tally.js'

/**
 * Of a failed test's other output, the last lines, and of each so many characters at its beginning and its end: a log may name a
 * hundred objects in one line, whose end is its message.
 */
const keptLines = 60
const keptCharacters = { first: 140, last: 200 }
/** Of a line that says what failed; and of lines that differ, so many. */
const keptOfWhy = { first: 500, last: 200 }
const keptDifferences = 3

export class Report {
  readonly #counts: Record<Outcome, number> = { passed: 0, failed: 0, skipped: 0 }
  readonly #failures: string[] = []
  /** One line each, for readers of the end alone. */
  readonly #failed: string[] = []
  readonly #skipped: string[] = []

  constructor(
    private readonly print: (line: string) => void,
    private readonly verbose: boolean,
  ) {}

  get failed(): number {
    return this.#counts.failed
  }

  /** One test, as soon as it ends. */
  test({ name, outcome }: TestResult): void {
    if (this.verbose) this.print(`  ${outcome === 'passed' ? 'ok     ' : outcome} ${name}`)
  }

  batch({ files, stderr }: Ran): void {
    for (const file of files) this.#file(file, stderr)
    for (const tally of files) {
      const { file, results, seconds, cpuSeconds } = tally
      const state = (tally.failed() ? 'FAILED' : 'ok').padEnd(6)
      this.print(
        `${state} ${file}: ${results.length} tests, ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU`,
      )
    }
  }

  #file({ file, results, remarks }: FileTally, stderr: string): void {
    for (const { name, outcome, detail } of results) {
      this.#counts[outcome] += 1
      if (outcome === 'skipped') this.#skipped.push(`skipped: ${file} › ${name}${detail === '' ? '' : ` (${detail})`}`)
    }
    if (this.verbose) for (const { text } of remarks) this.print(`  ${text}`)
    const failures = results.filter(({ outcome }) => outcome === 'failed')
    if (failures.length === 0) return
    for (const { name, detail } of failures) {
      this.#failed.push(`failed: ${name === file ? file : `${file} › ${name}`}: ${inOneLine(detail)}`)
    }
    const lines = failures.map(
      ({ name, detail }) => `✗ ${name === file ? '' : `${name}\n`}${indented(inSources(detail))}`,
    )
    // The output of tests that went well would take the place of what matters.
    const names = failures.map(({ name }) => name)
    const about = remarks.filter(
      ({ of }) => names.includes(file) || names.some((name) => name.startsWith(of) || of.startsWith(name)),
    )
    const more = [about.map(({ text }) => text), inSources(stderr).split('\n')].flatMap((said) =>
      said.filter((line) => line.trim() !== '').slice(-keptLines),
    )
    this.#failures.push([`-- ${file}`, ...lines, ...more.map((line) => `  | ${shortened(line)}`)].join('\n'))
  }

  /** The end of the run; the last line counts. */
  totals(seconds: number, cpuSeconds: number): void {
    for (const failure of this.#failures) this.print(`\n${failure}`)
    if (this.#failures.length > 0) this.print('')
    for (const line of this.#failed) this.print(shortened(line, keptOfWhy))
    for (const line of this.#skipped) this.print(line)
    this.print(`${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU`)
    const { passed, failed, skipped } = this.#counts
    this.print(`${passed} passed, ${failed} failed, ${skipped} skipped`)
  }
}

/** The message, and what differs: of many assertions the message alone says only that something does. */
function inOneLine(detail: string): string {
  const [why = '', ...rest] = detail.split('\n').map((line) => line.trim())
  const differing = rest.filter((line) => /^[-+](?![-+]).*\w/.test(line) && !/^[-+]\s*(Array|Object) \S+$/.test(line))
  const shown = differing.slice(0, keptDifferences).map((line) => line.replace(/^([-+])\s*/, '$1'))
  return [why, ...(shown.length > 0 ? [shown.join(' ')] : [])].join(': ')
}

function shortened(line: string, { first, last } = keptCharacters): string {
  return line.length > first + last ? `${line.slice(0, first)}…${line.slice(-last)}` : line
}

function indented(text: string): string {
  return text.replace(/^/gm, '    ')
}
