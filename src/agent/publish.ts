import { listed, objectName } from '../message-text.js'
import { expand } from '../config/references.js'
import type { DirectoryConfiguration } from '../config/types.js'
import { history, replaceDirectories } from '../durable/index.js'
import { DurableWriteError, OverlappingTargets } from '../durable/errors.js'
import type { RecordedObject, ReplaceResult } from '../durable/types.js'
import { contentPassed } from '../content-garbage.js'
import { failureFrom, messageOf, toError } from '../errors.js'
import type { Rendering } from '../directories/types.js'
import type { Log } from '../log.js'
import { ConfiguredCheck, type Examining } from './content-check.js'
import type { Rejection } from './conditions.js'
import type { ObjectKind, ObjectReference, Source } from '../objects/types.js'
import { historyFor, PassObjects, renderFrom, publicationRequest, unreported } from './desired-content.js'
import type { PublicationRequest } from '../durable/publish/index.js'
import type { PassOutcome } from './outcome.js'
import { recordGone } from './record-versions.js'

interface PublishOptions {
  readonly source: Pick<Source, 'latest' | 'load'>
  readonly requireProven: boolean
  /** Which agent this is. */
  readonly agent?: string | undefined
  readonly release?: boolean
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  /** Stops the pass before anything becomes visible, never after. */
  readonly signal: AbortSignal
  readonly log: Log
  /** What `beforePublish` of a directory has rejected and need not look at again. */
  rejection(path: string): Rejection | undefined
  /** Files that held certificates before, and are published empty: the last pass warned of them. */
  emptied?(path: string): readonly string[]
  /** Called with the seconds that the barriers and what lies between them took. */
  barrier(seconds: number): void
  /** The pass gets the removal of a directory's past here, and runs it once it has reported all directories: see Later. */
  readonly later: (path: string, removal: () => Promise<void>) => void
  readonly examining?: Examining | undefined
}

/** Bytes of content that are published together: those of all directories need not fit into memory. */
const batchBytes = 16 * 1024 * 1024

interface Ready {
  readonly configuration: DirectoryConfiguration
  readonly rendering: Extract<Rendering, { ready: true }>
  readonly request: PublicationRequest
  readonly check: ConfiguredCheck | undefined
}

/**
 * Makes the disk hold the source's content, for all of these directories in one pair of barriers, or one for each 16 MiB; those with
 * `beforePublish` each in a separate pair, so that none waits for another's commands. Answers for each path; never rejects for a failure of one: the others go on.
 */
export async function publishDirectories(
  configurations: readonly DirectoryConfiguration[],
  options: PublishOptions,
): Promise<Map<string, PassOutcome>> {
  const outcomes = new Map<string, PassOutcome>()
  const left = configurations.values()
  let isOver = false
  while (!isOver) {
    const ready: Ready[] = []
    // They hold the content of each object that they have loaded.
    const objects = new PassObjects(options.source, options.signal)
    let size = 0
    while (!isOver && size < batchBytes) {
      const { value: configuration, done } = left.next()
      isOver = done === true
      if (configuration === undefined) break
      const rendering = await renderFor(configuration, objects, options)
      if ('kind' in rendering) outcomes.set(configuration.path, rendering)
      else if (rendering.ready) {
        ready.push(readyFor(configuration, rendering, options))
        size += renderedBytes(rendering)
      } else {
        const { findings, unread } = rendering
        await forget(configuration, options)
        outcomes.set(configuration.path, { kind: 'incomplete', findings, unread })
      }
    }
    await publishReady(ready, options, outcomes)
  }
  return outcomes
}

async function publishReady(
  ready: readonly Ready[],
  options: PublishOptions,
  outcomes: Map<string, PassOutcome>,
): Promise<void> {
  const together = ready.filter(({ check }) => check === undefined)
  const alone = ready.filter(({ check }) => check !== undefined)
  const batches = [...(together.length > 0 ? [together] : []), ...alone.map((one) => [one])]
  await Promise.all(batches.map((batch) => publishBatch(batch, options, outcomes)))
}

/** An object that is gone keeps a directory from being published, and its earlier contents from being kept. */
async function forget(configuration: DirectoryConfiguration, options: PublishOptions): Promise<void> {
  const { source, lockTimeout, signal, log } = options
  const { path } = configuration
  const limits = historyFor(configuration, (reference) => source.latest(reference))
  await recordGone(path, isGoneBy(source), log)
  try {
    const removed = await history.prune(path, limits, { lockTimeout, signal, log })
    if (removed > 0)
      log.info(
        { directory: path, removed },
        `earlier contents of ${path} went: an object of theirs is gone, or their time is over`,
      )
  } catch (error) {
    log.warn({ directory: path }, messageOf(error))
  }
}

function saysPublished(error: Error): boolean {
  return error instanceof DurableWriteError && error.published
}

function isGoneBy(source: Pick<Source, 'latest'>): (object: RecordedObject) => boolean {
  return (object) => source.latest({ ...object, kind: object.kind as ObjectKind })?.state === 'absent'
}

function readyFor(
  configuration: DirectoryConfiguration,
  rendering: Ready['rendering'],
  options: PublishOptions,
): Ready {
  const { requireProven, release = false, lockTimeout, log, source, agent } = options
  const latest = (reference: ObjectReference) => source.latest(reference)
  const check =
    configuration.beforePublish.length === 0
      ? undefined
      : new ConfiguredCheck(configuration, { ...options, rejection: options.rejection(configuration.path) })
  const held = release ? ('release' as const) : ('refuse' as const)
  const pass = { requireProven, agent, held, lockTimeout, log, ...(check && { check }) }
  return { configuration, rendering, check, request: publicationRequest(configuration, rendering, latest, pass) }
}

async function publishBatch(
  batch: readonly Ready[],
  options: PublishOptions,
  outcomes: Map<string, PassOutcome>,
): Promise<void> {
  const startedAt = performance.now()
  const results = await replaceAll(
    batch.map(({ request }) => request),
    options,
  )
  const checked = batch.reduce((sum, { check }) => sum + (check?.milliseconds ?? 0), 0)
  options.barrier((performance.now() - startedAt - checked) / 1000)
  // Once nothing here refers to it any more.
  setImmediate(
    contentPassed,
    batch.reduce((sum, { rendering }) => sum + renderedBytes(rendering), 0),
  )
  const isGone = isGoneBy(options.source)
  for (const [index, one] of batch.entries()) {
    const { path } = one.configuration
    const result = results[index]
    if (result) outcomes.set(path, outcomeFrom(result, one, options.signal))
    // Earlier contents that may not stay any longer go, even where a refusal stops the new content.
    if (result && 'error' in result && !saysPublished(result.error)) await forget(one.configuration, options)
    // The kept files of an object may not stay once another object has its name.
    if (one.rendering.objects.some(isGone)) await recordGone(path, isGone, options.log)
  }
}

async function renderFor(
  configuration: DirectoryConfiguration,
  objects: PassObjects,
  { source, signal, emptied }: Pick<PublishOptions, 'source' | 'signal' | 'emptied'>,
): Promise<Rendering | PassOutcome> {
  const latest = (reference: ObjectReference) => source.latest(reference)
  for (;;) {
    const missing = unreported(configuration, latest)
    if (missing.length > 0) {
      return {
        kind: 'waiting',
        message: `the source has not reported ${listed(missing.map(objectName))} yet`,
      }
    }
    try {
      const expanded = expand(configuration, latest)
      const rendering = await renderFrom(configuration, objects, emptied?.(configuration.path))
      // An object that came or went meanwhile was not rendered, or is not followed any more.
      if (expand(configuration, latest) === expanded) return rendering
    } catch (error) {
      return signal.aborted ? { kind: 'aborted' } : failedOutcome(error)
    }
  }
}

/** Bytes. */
function renderedBytes({ files }: Ready['rendering']): number {
  return Object.values(files).reduce((sum, { content }) => sum + content.length, 0)
}

type Result = ReplaceResult | { error: Error }

/**
 * The batch is refused as a whole where two targets are one directory, or nested, by a symbolic link or a bind mount: the configuration
 * sees only their texts. Each would destroy the other's content, so neither is published; the others are.
 */
async function replaceAll(requests: PublicationRequest[], { signal, later }: PublishOptions): Promise<Result[]> {
  const refused = new Map<PublicationRequest, Error>()
  for (;;) {
    const going = requests.filter((request) => !refused.has(request))
    try {
      const results = await replaceDirectories(going, { signal, later })
      const byRequest = new Map(going.map((request, index) => [request, results[index]]))
      return requests.map((request) => byRequest.get(request) ?? { error: refused.get(request) ?? notAnswered() })
    } catch (error) {
      const overlapping: readonly string[] = error instanceof OverlappingTargets ? error.paths : []
      const pair = going.filter(({ target }) => overlapping.includes(target))
      // An error of the whole batch is an error of each request.
      for (const request of pair.length > 0 ? pair : going) {
        refused.set(request, pair.length > 0 ? overlapError(request.target, overlapping) : toError(error))
      }
    }
  }
}

function overlapError(target: string, paths: readonly string[]): Error {
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

function outcomeFrom(result: Result, { rendering, configuration, check }: Ready, signal: AbortSignal): PassOutcome {
  if ('error' in result) {
    const outcome = failedOutcome(result.error)
    if (signal.aborted && !outcome.published) return { kind: 'aborted' }
    const digest = check?.digest
    return outcome.reason !== 'ContentRejected' || digest === undefined
      ? outcome
      : { ...outcome, rejection: { digest, error: outcome.error } }
  }
  return {
    kind: 'published',
    change: result.outcome,
    digest: result.digest,
    sequence: result.sequence,
    objects: rendering.objects,
    warnings: rendering.warnings,
    certificates: rendering.certificates,
    hooks: result.pendingHooks ?? configuration.afterPublish.map(({ key }) => key),
    unproven: result.unproven ?? false,
    repeated: result.pendingHooks !== undefined,
  }
}

export function failedOutcome(error: unknown): Extract<PassOutcome, { kind: 'failed' }> {
  const { reason, terminal } = failureFrom(error)
  const published = error instanceof DurableWriteError && error.published
  return { kind: 'failed', reason, terminal, published, error: toError(error) }
}
