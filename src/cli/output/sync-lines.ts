import type { DirectoryState } from '../../agent/directory-state.js'
import { isSourceAway, type PassOutcome } from '../../agent/outcome.js'
import { pendingHookNames } from '../../agent/report/status-file.js'
import type { DirectoryChange } from '../../durable/publish/index.js'
import type { DeclaredInvalid } from '../../errors.js'
import { changesText, outcomeText } from './print.js'
import { table } from './table.js'

/* The output of `sync` about a pass. */

/** One directory, as `-o json` shows it. */
export interface SyncLine {
  readonly path: string
  /** created, replaced, unchanged; `moving`, `moved`: an old path; `stale`: intact by its record, the source did not answer; `failed`. */
  readonly outcome: string
  readonly digest: string | null
  /** Where it is true: the file system is not one on which durability is proven. */
  readonly unproven?: true
  readonly reason?: string
  readonly message?: string
  readonly changes?: readonly DirectoryChange[]
  /** With --hooks: failed hooks, for the agent or the next run to repeat. */
  readonly pendingHooks?: readonly string[]
  /** The error that decides the exit code. */
  readonly error: unknown
}

export function errorsOf(lines: readonly SyncLine[]): unknown[] {
  return lines.map(({ error }) => error).filter((error) => error !== undefined)
}

/** A signal ended it before anything was published. */
export function wasAborted(outcome: PassOutcome | undefined): boolean {
  return outcome === undefined || outcome.kind === 'aborted'
}

export function lineOf(
  state: DirectoryState,
  outcome: PassOutcome | undefined,
  allowStale: boolean,
  hooks = false,
): SyncLine {
  const { path, facts } = state
  const { published } = facts
  if (outcome?.kind === 'published') {
    const { change, digest } = outcome
    const line = { path, outcome: change, digest, ...(outcome.unproven ? { unproven: true as const } : {}) }
    const pendingHooks = hooks ? pendingHookNames(facts) : []
    if (pendingHooks.length === 0) return { ...line, error: undefined }
    return { ...line, pendingHooks, error: new Error(`${path}: at least one hook failed`) }
  }
  const digest = facts.record?.digest ?? null
  if (outcome?.kind === 'moving') {
    const about = published && { reason: published.reason, message: published.message }
    return { path, digest, ...about, outcome: outcome.state === 'done' ? 'moved' : 'moving', error: undefined }
  }
  const message = explanation(outcome) ?? published?.message ?? ''
  const reason =
    outcome?.kind === 'incomplete'
      ? outcome.findings[0]?.reason
      : outcome?.kind === 'failed'
        ? outcome.reason
        : 'SourceUnavailable'
  const details = { path, digest, message, ...(reason ? { reason } : {}) }
  if (outcome && isSourceAway(outcome) && facts.intact && allowStale) {
    return { ...details, outcome: 'stale', error: undefined }
  }
  return {
    ...details,
    outcome: 'failed',
    error: outcome?.kind === 'failed' ? outcome.error : notPlanned(outcome, message),
  }
}

/** The error of a directory that was not tried: a source that is configured wrongly is wrong whatever the state of the node. */
export function notPlanned(outcome: PassOutcome | undefined, message: string): Error {
  const error = new Error(message)
  const isWrong = outcome?.kind === 'incomplete' && outcome.findings.some(({ misconfigured }) => misconfigured)
  return isWrong ? Object.assign(error, { invalid: 'configuration' } satisfies DeclaredInvalid) : error
}

/** Why a directory was not published. */
export function explanation(outcome: PassOutcome | undefined): string | undefined {
  if (outcome === undefined) return undefined
  switch (outcome.kind) {
    case 'incomplete':
      return outcome.findings.map(({ message }) => message).join('; ')
    case 'failed':
      return outcome.error.message
    case 'waiting':
      return outcome.message
    case 'published':
    case 'moving':
    case 'aborted':
      return undefined
  }
}

export function lineText(line: SyncLine, dryRun: boolean): string {
  const { path, outcome, digest, reason, message, changes, pendingHooks = [] } = line
  const about = message === undefined ? (digest ?? '') : `${reason ?? ''}: ${message}`
  const hooks = pendingHooks.map((hook) => ['', `the hook "${hook}" failed`])
  return table([[outcomeText(outcome, dryRun), path, about]]) + changesText(changes) + table(hooks)
}
