/**
 * Reads tests from a stream of TAP. A test is a `t.test` with its own assertions: a test that only holds other tests is a chapter, and
 * counts where it fails by itself. Assertions outside all tests make a test of the file's name.
 */
import { stringify } from 'yaml'
import { Parser, type Result } from 'tap-parser'

export type Outcome = 'passed' | 'failed' | 'skipped'

export interface TestResult {
  readonly name: string
  readonly outcome: Outcome
  /** Why it failed, in full, or why it was skipped. */
  readonly detail: string
}

/** The comment by which a process that runs several files says which is next. */
export const fileComment = 'file: '

/** tap's own comments. */
const tapsOwn = /^# (Subtest|time=|\{ total|skip: |no tests found|timeout=)/

/** The results of one file, from the stream. */
export class FileTally {
  readonly results: TestResult[] = []
  /** The tests' other output: comments, and text that is no TAP; `of`: the test that it comes from, '' for the file. */
  readonly remarks: { readonly of: string; readonly text: string }[] = []
  /** What it cost, until the next file of its process began; the process's own start is the first one's. */
  seconds = 0
  cpuSeconds = 0

  constructor(readonly file: string) {}

  failed(): boolean {
    return this.results.some(({ outcome }) => outcome === 'failed')
  }

  /** The fault of the file as a whole. */
  fail(detail: string): void {
    this.results.push({ name: this.file, outcome: 'failed', detail })
  }
}

/** The assertions of one test so far. */
interface Level {
  readonly path: string
  /** Assertions directly in it. */
  own: number
  /** Tests in it, skipped ones too. */
  chapters: number
  readonly wrong: string[]
  /** The test in it that was read last. */
  child: Level | undefined
  /** Why the plan says that all of it is skipped. */
  skipped: string | undefined
}

export class Tally {
  readonly files: FileTally[] = []
  readonly #parser = new Parser()
  #root = newLevel('')
  #bailout: string | undefined

  /** `only`: the file that the stream is of; without it, comments name the files. */
  constructor(
    only: string | undefined,
    private readonly ended: (result: TestResult) => void = () => {},
    private readonly closed: (file: FileTally) => void = () => {},
  ) {
    this.#watch(this.#parser, () => this.#root)
    this.#parser.on('bailout', (reason: string) => (this.#bailout = reason === '' ? 'no reason' : reason))
    if (only !== undefined) this.#start(only)
  }

  write(text: string): void {
    this.#parser.write(text)
  }

  /** After the last byte: what the process's end says of the file that ran last. `problem`: how it ended, if badly. */
  end(problem: string | undefined): void {
    this.#parser.end()
    const last = this.files.at(-1)
    if (last === undefined) return
    this.#closeFile()
    if (this.#bailout !== undefined) this.#add(last, last.file, 'failed', `Bail out: ${this.#bailout}`)
    const errors = (this.#parser.results?.failures ?? []).flatMap((one) =>
      'tapError' in one && typeof one.tapError === 'string' ? [one.tapError] : [],
    )
    if (!this.files.some((file) => file.failed())) {
      const whole = [...(problem === undefined ? [] : [problem]), ...errors]
      if (whole.length === 0 && this.#parser.results?.ok === false) whole.push('The TAP says that it failed, not where')
      if (whole.length > 0) this.#add(last, last.file, 'failed', whole.join('\n'))
    } else if (problem !== undefined && problem !== ordinaryFailure) {
      this.#add(last, last.file, 'failed', problem)
    }
  }

  #start(file: string): void {
    this.#closeFile()
    this.files.push(new FileTally(file))
  }

  /** The assertions outside all tests; and a file without any test is wrong. */
  #closeFile(): void {
    const file = this.files.at(-1)
    const root = this.#root
    this.#root = newLevel('')
    if (file === undefined) return
    const whole = { ...root, path: file.file }
    if (root.own > 0 || root.skipped !== undefined) this.#judge(file, whole, true)
    else if (root.chapters === 0) this.#add(file, whole.path, 'failed', 'It runs no test')
    this.closed(file)
  }

  #watch(parser: Parser, level: () => Level): void {
    parser.on('child', (child: Parser) => {
      const parent = level()
      const below = newLevel(joined(parent.path, child.name))
      parent.child = below
      this.#watch(child, () => below)
    })
    parser.on('assert', (result: Result) => this.#assertion(level(), result))
    parser.on('plan', ({ end, comment }: { end: number; comment: string }) => {
      const why = comment.replace(/^(skip:?|no tests found)\s*/i, '')
      if (end === 0 && why !== '') level().skipped = why
    })
    parser.on('comment', (line: string) => this.#comment(line, level().path))
    parser.on('extra', (line: string) => this.#remark(line, ''))
  }

  #assertion(level: Level, result: Result): void {
    const file = this.files.at(-1)
    if (file === undefined) return
    const path = joined(level.path, result.name)
    if (result.skip !== false || result.todo !== false) {
      // A test that is skipped looks like an assertion that is: both did not run.
      level.chapters += 1
      this.#add(file, path === '' ? file.file : path, 'skipped', reason(result))
    } else if (result.closingTestPoint) {
      const test = level.child ?? newLevel(path)
      level.chapters += 1
      level.child = undefined
      if (!result.ok && test.wrong.length === 0 && test.chapters === 0) test.wrong.push(describe(result))
      this.#judge(file, { ...test, path }, result.ok)
    } else {
      level.own += 1
      if (!result.ok) level.wrong.push(describe(result))
    }
  }

  #judge(file: FileTally, { path, own, chapters, wrong, skipped }: Level, ok: boolean): void {
    if (wrong.length > 0) this.#add(file, path, 'failed', wrong.join('\n'))
    else if (own > 0) this.#add(file, path, 'passed', '')
    else if (skipped !== undefined) this.#add(file, path, 'skipped', skipped)
    else if (chapters === 0)
      this.#add(file, path, 'failed', ok ? 'It asserts nothing' : 'It failed, and nothing says why')
  }

  #add(file: FileTally, name: string, outcome: Outcome, detail: string): void {
    const result = { name, outcome, detail }
    file.results.push(result)
    this.ended(result)
  }

  #comment(line: string, of: string): void {
    const text = line.trim()
    if (text.startsWith(`# ${fileComment}`)) this.#start(text.slice(2 + fileComment.length))
    else if (!tapsOwn.test(text)) this.#remark(text, of)
  }

  #remark(line: string, of: string): void {
    if (line.trim() !== '') this.files.at(-1)?.remarks.push({ of, text: line.trimEnd() })
  }
}

/** How a process of Node ends in which tests failed. */
export const ordinaryFailure = 'It ended with exit code 1'

function newLevel(path: string): Level {
  return { path, own: 0, chapters: 0, wrong: [], child: undefined, skipped: undefined }
}

function joined(path: string, name: string): string {
  return [path, name].filter((part) => part !== '').join(' › ')
}

function reason({ skip, todo }: Result): string {
  if (todo !== false) return todo === true ? 'to do' : `to do: ${todo}`
  return skip === true ? '' : String(skip)
}

/** A frame of tap's one file, of which every stack has a dozen. */
const frameOfTap = /\/tap\/tap\.cjs:/

/** An assertion's own description, without fields that only repeat the test's text as it was compiled, and without tap's own frames. */
function describe({ name, diag }: Result): string {
  const { stack, ...fields } = (diag ?? {}) as Record<string, unknown>
  const kept = Object.entries(fields).filter(([key]) => key !== 'at' && key !== 'source')
  const frames = typeof stack === 'string' ? stack.split('\n').filter((line) => !frameOfTap.test(line)) : []
  const details = { ...Object.fromEntries(kept), ...(frames.length > 0 && { stack: frames.join('\n') }) }
  const text = Object.keys(details).length === 0 ? '' : stringify(details, { lineWidth: 0 }).trimEnd()
  return [name === '' ? '(without a name)' : name, ...text.split('\n').filter((line) => line !== '')].join('\n    ')
}
