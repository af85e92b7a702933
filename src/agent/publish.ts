import type { DirectoryConfiguration } from '../config/types.js'
import { failureFrom } from '../errors.js'
import { DurableWriteError, replaceDirectories } from '../durable/index.js'
import type { ReplaceResult } from '../durable/types.js'
import type { Rendering } from '../directories/types.js'
import type { Log } from '../log.js'
import { describeReference } from '../objects/types.js'
import type { Attempt } from './attempt.js'
import { renderFrom, requestFor, untold, type Latest, type Request } from './prepare.js'

export interface PublishOptions {
  readonly latest: Latest
  readonly requireProven: boolean
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  /** Gives up before anything becomes visible, never after. */
  readonly signal: AbortSignal
  readonly log: Log
  /** Told how long the barriers and what lies between them took, in seconds. */
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
): Promise<Map<string, Attempt>> {
  const attempts = new Map<string, Attempt>()
  const ready: { configuration: DirectoryConfiguration; rendering: Ready; request: Request }[] = []
  for (const configuration of configurations) {
    const rendering = await prepare(configuration, options.latest)
    if ('kind' in rendering) attempts.set(configuration.path, rendering)
    else if (!rendering.ready) attempts.set(configuration.path, { kind: 'incomplete', findings: rendering.findings })
    else
      ready.push({
        configuration,
        rendering,
        request: complete(requestFor(configuration, rendering), options),
      })
  }
  if (ready.length === 0) return attempts
  const began = performance.now()
  const results = await replaceAll(
    ready.map(({ request }) => request),
    options,
  )
  options.barrier((performance.now() - began) / 1000)
  ready.forEach(({ configuration, rendering }, index) => {
    const result = results[index]
    if (result) attempts.set(configuration.path, attemptFrom(result, rendering, configuration, options.signal))
  })
  return attempts
}

async function prepare(configuration: DirectoryConfiguration, latest: Latest): Promise<Rendering | Attempt> {
  const missing = untold(configuration, latest)
  if (missing.length > 0) {
    return {
      kind: 'waiting',
      message: `the source has not told of ${missing.map(describeReference).join(', ')} yet`,
    }
  }
  try {
    return await renderFrom(configuration, latest)
  } catch (error) {
    return failure(error)
  }
}

function complete(request: Request, { requireProven, lockTimeout, log }: PublishOptions): Request {
  return { ...request, requireProven, lockTimeout, log }
}

type Result = ReplaceResult | { error: Error }

/**
 * The batch is refused as a whole where two targets are one directory under two names. Which ones that are cannot be told from
 * outside, so then each is published by itself, in turn.
 */
async function replaceAll(requests: Request[], { signal }: PublishOptions): Promise<Result[]> {
  try {
    return await replaceDirectories(requests, { signal })
  } catch (error) {
    if (requests.length === 1) return [{ error: asError(error) }]
    const results: Result[] = []
    for (const request of requests) {
      const [result] = await replaceDirectories([request], { signal }).catch((reason: unknown): Result[] => [
        { error: asError(reason) },
      ])
      results.push(result ?? { error: asError(error) })
    }
    return results
  }
}

function attemptFrom(
  result: Result,
  rendering: Ready,
  configuration: DirectoryConfiguration,
  signal: AbortSignal,
): Attempt {
  if ('error' in result) {
    const attempt = failure(result.error)
    return signal.aborted && attempt.kind === 'failed' && !attempt.published ? { kind: 'abandoned' } : attempt
  }
  return {
    kind: 'published',
    outcome: result.outcome,
    digest: result.digest,
    objects: rendering.objects,
    warnings: rendering.warnings,
    certificates: rendering.certificates,
    hooks: configuration.afterPublish.map(({ key }) => key),
    unproven: result.unproven ?? false,
  }
}

/** What an error makes of an attempt. */
export function failure(error: unknown): Attempt {
  const { reason, terminal } = failureFrom(error)
  const published = error instanceof DurableWriteError && error.published
  return { kind: 'failed', reason, terminal, published, error: asError(error) }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
