import type { DirectoryState } from '../agent/directory-state.js'
import { dryPass, onePass, type OnePassOptions } from '../agent/one-pass.js'
import { isSourceAway, type Outcome } from '../agent/outcome.js'
import { pendingHookNames } from '../agent/status-file.js'
import { openSource } from '../agent/open-source.js'
import { disableCoreDumps, type DirectoryChange } from '../durable/index.js'
import { Exit, exitCodeOfAll, exitCodes } from './exit-codes.js'
import { interruptible } from './interruptible.js'
import { loadWithFlags } from './load.js'
import { createLogger } from './logger.js'
import { print, printJson } from './print.js'
import { Progress } from './progress.js'
import type { SyncOptions } from './sync.js'
import { table } from './table.js'
import { version } from './version.js'

/** One directory, as `-o json` tells of it. */
interface Line {
  readonly path: string
  /** created, replaced, unchanged; `stale`: whole by its record, the source did not answer; `failed`. */
  readonly outcome: string
  readonly digest: string | null
  /** Where it is true: the file system is not one on which durability is proven. */
  readonly unproven?: true
  readonly reason?: string
  readonly message?: string
  readonly changes?: readonly DirectoryChange[]
  /** With --hooks: those that have failed, and are left to the agent or the next run. */
  readonly pendingHooks?: readonly string[]
  /** What decides the exit code. */
  readonly error: unknown
}

export async function runSync(options: SyncOptions): Promise<void> {
  disableCoreDumps()
  const configuration = await loadWithFlags(options)
  const log = createLogger(options.logLevel)
  const progress = new Progress(process.stderr)
  const lines = await interruptible(async (signal) => {
    const pass: OnePassOptions = {
      log,
      signal,
      timeout: options.timeout,
      lockTimeout: options.lockTimeout,
      requireProven: configuration.requireProven,
      openSource: (listener) => openSource(configuration.source, listener, { log, version: version() }),
      waiting: (references, source) => progress.begin(references, source),
    }
    const stale = options.allowStale === true
    try {
      if (options.dryRun) {
        const planned = await dryPass(configuration, pass)
        return planned.map(({ state, plan }) =>
          'notPlanned' in plan
            ? lineOf(state, plan.notPlanned, stale)
            : { path: state.path, ...plan, error: undefined },
        )
      }
      const hooks = options.hooks === true
      const passed = await onePass(configuration, { ...pass, hooks })
      const lines = passed.map(({ state, outcome }) => lineOf(state, outcome, stale, hooks))
      // What was ended early is told by the signal's number; what has been published, even so, by what became of it.
      const unknown = exitCodeOfAll(errorsOf(lines)) === exitCodes.durabilityUnknown
      if (!unknown && passed.some(({ outcome }) => isAborted(outcome))) signal.throwIfAborted()
      return lines
    } finally {
      progress.end()
    }
  })
  if (options.output === 'json')
    printJson({
      ...(options.dryRun ? { dryRun: true } : {}),
      directories: lines.map((line) => ({ ...line, error: undefined })),
    })
  else print(lines.map((line) => text(line, options.dryRun === true)).join(''))
  const code = exitCodeOfAll(errorsOf(lines))
  if (code !== 0) throw new Exit(code)
}

function errorsOf(lines: readonly Line[]): unknown[] {
  return lines.map(({ error }) => error).filter((error) => error !== undefined)
}

function isAborted(outcome: Outcome | undefined): boolean {
  return outcome === undefined || outcome.kind === 'aborted'
}

function lineOf(state: DirectoryState, outcome: Outcome | undefined, allowStale: boolean, hooks = false): Line {
  const { path, published } = state
  if (outcome?.kind === 'published') {
    const { change, digest } = outcome
    const line = { path, outcome: change, digest, ...(outcome.unproven ? { unproven: true as const } : {}) }
    const pendingHooks = hooks ? pendingHookNames(state) : []
    if (pendingHooks.length === 0) return { ...line, error: undefined }
    return { ...line, pendingHooks, error: new Error(`${path}: hooks have failed`) }
  }
  const digest = state.digest ?? null
  const message = explanation(outcome) ?? published?.message ?? ''
  const reason =
    outcome?.kind === 'incomplete'
      ? outcome.findings[0]?.reason
      : outcome?.kind === 'failed'
        ? outcome.reason
        : 'SourceUnavailable'
  const details = { path, digest, message, ...(reason ? { reason } : {}) }
  if (outcome && isSourceAway(outcome) && state.intact && allowStale) {
    return { ...details, outcome: 'stale', error: undefined }
  }
  return {
    ...details,
    outcome: 'failed',
    error: outcome?.kind === 'failed' ? outcome.error : new Error(message),
  }
}

function explanation(outcome: Outcome | undefined): string | undefined {
  if (outcome === undefined) return undefined
  switch (outcome.kind) {
    case 'incomplete':
      return outcome.findings.map(({ message }) => message).join('; ')
    case 'failed':
      return outcome.error.message
    case 'waiting':
      return outcome.message
    case 'published':
    case 'aborted':
      return undefined
  }
}

function text(line: Line, dryRun: boolean): string {
  const { path, outcome, digest, reason, message, changes, pendingHooks = [] } = line
  const verb = dryRun && ['created', 'replaced'].includes(outcome) ? `would be ${outcome}` : outcome
  const about = message === undefined ? (digest ?? '') : `${reason ?? ''}: ${message}`
  const signs = { add: '+', change: '~', remove: '-' }
  const details = (changes ?? []).map((change) => ['', `${signs[change.change]} ${change.path}`])
  const hooks = pendingHooks.map((hook) => ['', `the hook "${hook}" has failed`])
  return table([[verb, path, about]]) + table([...details, ...hooks])
}
