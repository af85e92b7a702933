import type { Log } from '../log.js'
import { describeProblem, type ConfigurationError } from './problem.js'

/** Logs what is wrong in a configuration file: a line for each problem, with its place in fields of its own. */
export function logProblems(log: Log, { problems }: Pick<ConfigurationError, 'problems'>): void {
  for (const problem of problems) {
    const { file, line, column, place } = problem
    log.error({ reason: 'ConfigurationInvalid', configuration: file, line, column, place }, describeProblem(problem))
  }
}
