import type { Log } from '../log.js'
import { describeProblem, type ConfigurationError } from './problem.js'

/** Logs the problems of a configuration file: a line for each, with its place in separate fields. */
export function logProblems(log: Log, { problems }: Pick<ConfigurationError, 'problems'>): void {
  for (const problem of problems) {
    const { file, line, column, place } = problem
    log.error({ reason: 'ConfigurationInvalid', configuration: file, line, column, place }, describeProblem(problem))
  }
}
