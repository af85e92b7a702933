import type { DirectoryConfiguration } from '../config/types.js'
import { DurableWriteError, OverlappingTargets, replaceDirectories } from '../durable/index.js'
import type { ReplaceResult } from '../durable/types.js'
import { failureFrom, toError } from '../errors.js'
import type { Rendering } from '../directories/types.js'
import type { Log } from '../log.js'
import { describeReference, type ObjectReference, type Source } from '../objects/types.js'
import { renderFrom, requestFor, unreported, type Request } from './desired-content.js'
import type { Outcome } from './outcome.js'

interface PublishOptions {
  readonly source: Pick<Source, 'latest'>
  readonly requireProven: boolean
  readonly release?: boolean
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  /** Stops the pass before anything becomes visible, never after. */
  readonly signal: AbortSignal
  readonly log: Log
  /** Called with the seconds that the barriers and what lies between them took. */
  barrier(seconds: number): void
}

type Ready = Extract<Rendering, { ready: true }>

/**
 * Makes the disk hold what the source says, for all of these directories in one pair of barriers. Answers for each path; never
 * rejects for what is wrong with one of them: the others go on.
 */
export async function publish(
  configurations: readonly DirectoryConfiguration[],
  options: PublishOptions,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>()
  const ready: { configuration: DirectoryConfiguration; rendering: Ready; request: Request }[] = []
  for (const configuration of configurations) {
    const rendering = await renderFor(configuration, options.source)
    if ('kind' in rendering) outcomes.set(configuration.path, rendering)
    else if (!rendering.ready) outcomes.set(configuration.path, { kind: 'incomplete', findings: rendering.findings })
    else
      ready.push({
        configuration,
        rendering,
        request: withOptions(requestFor(configuration, rendering), options),
      })
  }
  if (ready.length === 0) return outcomes
  const startedAt = performance.now()
  const results = await replaceAll(
    ready.map(({ request }) => request),
    options,
  )
  options.barrier((performance.now() - startedAt) / 1000)
  ready.forEach(({ configuration, rendering }, index) => {
    const result = results[index]
    if (result) outcomes.set(configuration.path, outcomeFrom(result, rendering, configuration, options.signal))
  })
  return outcomes
}

async function renderFor(
  configuration: DirectoryConfiguration,
  source: PublishOptions['source'],
): Promise<Rendering | Outcome> {
  const latest = (reference: ObjectReference) => source.latest(reference)
  const missing = unreported(configuration, latest)
  if (missing.length > 0) {
    return {
      kind: 'waiting',
      message: `the source has not reported ${missing.map(describeReference).join(', ')} yet`,
    }
  }
  try {
    return await renderFrom(configuration, latest)
  } catch (error) {
    return failedOutcome(error)
  }
}

function withOptions(request: Request, { requireProven, release = false, lockTimeout, log }: PublishOptions): Request {
  return { ...request, requireProven, release, lockTimeout, log }
}

type Result = ReplaceResult | { error: Error }

/**
 * The batch is refused as a whole where two targets are one directory, or nested, by a symbolic link or a bind mount: the configuration
 * sees only their texts. Each would destroy the other's content, so neither is published; the others are.
 */
async function replaceAll(requests: Request[], { signal }: PublishOptions): Promise<Result[]> {
  const refused = new Map<Request, Error>()
  for (;;) {
    const going = requests.filter((request) => !refused.has(request))
    try {
      const results = await replaceDirectories(going, { signal })
      const byRequest = new Map(going.map((request, index) => [request, results[index]]))
      return requests.map((request) => byRequest.get(request) ?? { error: refused.get(request) ?? notAnswered() })
    } catch (error) {
      const overlapping: readonly string[] = error instanceof OverlappingTargets ? error.paths : []
      const pair = going.filter(({ target }) => overlapping.includes(target))
      // What is wrong with the batch as such is wrong with each of it.
      for (const request of pair.length > 0 ? pair : going) {
        refused.set(request, pair.length > 0 ? overlaps(request.target, overlapping) : toError(error))
      }
    }
  }
}

function overlaps(target: string, paths: readonly string[]): Error {
  const other = paths.find((path) => path !== target) ?? target
  return new DurableWriteError(`${target} and ${other} are the same directory, or one lies in the other`, {
    code: 'EEXIST',
    syscall: 'openat2',
    path: target,
    reason: 'TargetUnfit',
    state: 'holdfast changed neither',
    advice: 'name each directory once in the configuration, by its real path',
  })
}

function notAnswered(): Error {
  return new Error('the core has not answered for this directory')
}

function outcomeFrom(
  result: Result,
  rendering: Ready,
  configuration: DirectoryConfiguration,
  signal: AbortSignal,
): Outcome {
  if ('error' in result) {
    const outcome = failedOutcome(result.error)
    return signal.aborted && !outcome.published ? { kind: 'aborted' } : outcome
  }
  return {
    kind: 'published',
    change: result.outcome,
    digest: result.digest,
    objects: rendering.objects,
    warnings: rendering.warnings,
    certificates: rendering.certificates,
    hooks: result.pendingHooks ?? configuration.afterPublish.map(({ key }) => key),
    unproven: result.unproven ?? false,
  }
}

export function failedOutcome(error: unknown): Extract<Outcome, { kind: 'failed' }> {
  const { reason, terminal } = failureFrom(error)
  const published = error instanceof DurableWriteError && error.published
  return { kind: 'failed', reason, terminal, published, error: toError(error) }
}
