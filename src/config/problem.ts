import type { DeclaredInvalid } from '../errors.js'
import type { Position } from '../yaml/parse.js'
import type { Log } from '../log.js'

/** One thing that is wrong in a configuration file, and where. Never holds what may be secret: URLs, arguments, other files' text. */
interface Problem {
  /** As the user named it. */
  readonly file: string
  /** From 1; 0 where the problem has no line, as with a file that cannot be read. */
  readonly line: number
  readonly column: number
  /** `directories[0].contents[1].into`; empty for the file as a whole. */
  readonly place: string
  readonly message: string
  /** A text to write instead. */
  readonly suggestion?: string
}

/** `holdfast.yaml:12:7: directories[0].mode: 0755 is a number: write it as a string, "0755"`. */
function describeProblem({ file, line, column, place, message, suggestion }: Problem): string {
  const position = line > 0 ? `${file}:${line}:${column}` : file
  return [position, place, message, suggestion].filter((part) => part !== undefined && part !== '').join(': ')
}

/** A configuration file that cannot be used. The message has one line for each problem, in the order of the file. */
export class ConfigurationError extends Error implements DeclaredInvalid {
  override readonly name = 'ConfigurationError'
  readonly invalid = 'configuration'

  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(describeProblem).join('\n'))
  }
}

/** Gathers problems, so that all of them can be reported at once. */
export class Problems {
  readonly #found: Problem[] = []

  constructor(readonly file: string) {}

  add({ line, column }: Position, place: string, message: string, suggestion?: string): void {
    const problem = { file: this.file, line, column, place, message }
    this.#found.push(suggestion === undefined ? problem : { ...problem, suggestion })
  }

  /** Throws ConfigurationError if anything was found. */
  throwIfAny(): void {
    if (this.#found.length === 0) return
    const inOrder = [...this.#found].sort((a, b) => a.line - b.line || a.column - b.column)
    throw new ConfigurationError(inOrder)
  }
}

/** Logs the problems of a configuration file: a line for each, with its place in separate fields. */
export function logProblems(log: Log, { problems }: Pick<ConfigurationError, 'problems'>): void {
  for (const problem of problems) {
    const { file, line, column, place } = problem
    log.error({ reason: 'ConfigurationInvalid', configuration: file, line, column, place }, describeProblem(problem))
  }
}
