import { type ConfigurationError, logProblems } from '../../config/problem.js'
import { adviceWithoutProc, invalidInputOf } from '../../errors.js'
import type { ApiError } from '../../kubernetes/reads/api-error.js'
import { reasons, type Reason } from '../../reasons.js'
import { Exit } from '../words/exit-codes.js'
import { createLogger, logFormats, logLevels } from './logger.js'
import { isForPrograms, print } from './print.js'
import type { Io } from './io.js'

interface ErrorFacts {
  readonly message: string
  readonly code?: string
  readonly syscall?: string
  readonly path?: string
  readonly published?: boolean
  readonly reason?: Reason
  /** Each thing that is wrong in a configuration file, with its place. */
  readonly problems?: ConfigurationError['problems']
}

/** The parts of an error that a report may show: its sentence, and the fields of a durable write's error. Its cause stays inside. */
function errorFacts(error: unknown): ErrorFacts {
  if (!(error instanceof Error)) return { message: String(error) }
  const problems = problemsOf(error)
  const field = (name: string, type: 'string' | 'boolean') => {
    const value: unknown = Reflect.get(error, name)
    return typeof value === type ? { [name]: value } : {}
  }
  const { path, code } = error as NodeJS.ErrnoException
  const reason = invalidInputOf(error) === 'configuration' ? 'ConfigurationInvalid' : reasonOf(error)
  const advice = path?.startsWith('/proc/') ? adviceWithoutProc(code) : undefined
  return {
    message: advice === undefined || error.message.includes(advice) ? error.message : `${error.message}; ${advice}`,
    ...field('code', 'string'),
    ...field('syscall', 'string'),
    ...field('path', 'string'),
    ...field('published', 'boolean'),
    ...(reason !== undefined && { reason }),
    ...(problems && { problems }),
  }
}

/** Of the contract. A failed request says by a word of its own how its watch begins again, which is nobody else's. */
function reasonOf(error: Error): Reason | undefined {
  if (error.name === 'ConnectionError') return 'SourceUnavailable'
  const { reason, observation } = error as Partial<Pick<ApiError, 'reason' | 'observation'>>
  const given: string | undefined = observation?.reason ?? reason
  return reasons.find((known) => known === given)
}

/** The problems that the configuration's parser collected in its error. */
function problemsOf(error: Error): ConfigurationError['problems'] | undefined {
  return invalidInputOf(error) === 'configuration' && 'problems' in error
    ? (error as ConfigurationError).problems
    : undefined
}

/**
 * Reports the error that ended a command, as its flags ask for it: a line on standard error, and with `-o json` or `yaml` a document on
 * standard output too. Wrong usage is one plain sentence, as from the parser of the arguments, unless JSON lines were asked for.
 */
export async function reportError(error: unknown, options: Readonly<Record<string, unknown>>, io: Io): Promise<void> {
  if (error instanceof Exit) return
  const facts = errorFacts(error)
  if (isForPrograms(options.output)) {
    // Where the disk of standard output is full, standard error alone has the error.
    await print(io.stdout, options.output, { error: facts }, () => '').catch(() => {})
  }
  const logFormat = logFormats.find((known) => known === options.logFormat) ?? 'text'
  if (invalidInputOf(error) === 'argument' && logFormat !== 'json') {
    io.stderr.write(`error: ${facts.message}\n`)
    return
  }
  const { message, problems, ...fields } = facts
  const log = createLogger(io, { logLevel: logLevels.find((known) => known === options.logLevel) ?? 'info', logFormat })
  if (problems === undefined) log.error(fields, message)
  else logProblems(log, { problems })
}
