import type { AgentConfiguration } from '../config/types.js'
import { planDirectory, type DirectoryChange } from '../durable/index.js'
import type { Outcome } from '../durable/types.js'
import type { Log } from '../log.js'
import { firstAnswers, type ObservableSource } from '../objects/first-answers.js'
import type { ObjectReference, SourceListener } from '../objects/types.js'
import type { Attempt } from './attempt.js'
import type { DirectoryState } from './directory-state.js'
import { unheard } from './events.js'
import { runPendingHooks } from './hook-runner.js'
import { uncounted } from './metrics.js'
import { publishOperation } from './operations.js'
import { renderFrom, requestFor, untold } from './prepare.js'
import { failure } from './publish.js'
import { notice, publishBatch } from './publisher.js'
import { StateRegistry } from './state-registry.js'
import { wantedObjects } from './wanted.js'

export interface OnePassOptions {
  readonly log: Log
  readonly signal: AbortSignal
  /** Milliseconds to wait for the source. */
  readonly timeout: number
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  readonly requireProven: boolean
  openSource(listener: SourceListener): Promise<ObservableSource>
  /** Told how many objects are asked for, before the wait. */
  waiting(references: readonly ObjectReference[], source: ObservableSource): void
}

/** What became of one directory. `attempt` is undefined only where the pass never came to it. */
export interface Passed {
  readonly state: DirectoryState
  readonly attempt: Attempt | undefined
}

interface Pass {
  readonly states: StateRegistry
  readonly source: ObservableSource
}

/** Publishes every directory once. Rejects where the source cannot be opened, or with the signal's reason while it waits. */
export async function onePass(
  configuration: AgentConfiguration,
  options: OnePassOptions & { readonly hooks: boolean },
): Promise<Passed[]> {
  const { log, signal } = options
  return withSource(configuration, options, async ({ states, source }) => {
    const attempts = new Map<DirectoryState, Attempt>()
    const batch = new Map(
      [...states].map(({ path }) => [publishOperation(path), { causes: ['sync'], since: performance.now() }]),
    )
    await publishBatch(batch, {
      log,
      signal,
      metrics: uncounted,
      events: unheard,
      lockTimeout: options.lockTimeout,
      requireProven: () => options.requireProven,
      source: () => source,
      state: (operation) => states.byOperation(operation),
      settled: (state, attempt) => attempts.set(state, attempt),
    })
    if (options.hooks) {
      for (const state of states) {
        // Only what is known to be durable is told to others.
        if (attempts.get(state)?.kind !== 'published') continue
        await runPendingHooks(state, { log, signal, metrics: uncounted, events: unheard, changed: () => {} })
      }
    }
    return [...states].map((state) => ({ state, attempt: attempts.get(state) }))
  })
}

/** What a pass would do to one directory. */
export interface Planned {
  readonly state: DirectoryState
  readonly plan:
    | { readonly outcome: Outcome; readonly digest: string; readonly changes: readonly DirectoryChange[] }
    | { readonly attempt: Attempt }
}

/** Tells what a pass would do; writes nothing. */
export async function dryPass(configuration: AgentConfiguration, options: OnePassOptions): Promise<Planned[]> {
  return withSource(configuration, options, async ({ states, source }) => {
    const planned: Planned[] = []
    for (const state of states) planned.push({ state, plan: await plan(state, source, options.requireProven) })
    return planned
  })
}

async function plan(
  { configuration }: DirectoryState,
  source: ObservableSource,
  requireProven: boolean,
): Promise<Planned['plan']> {
  const latest = (reference: ObjectReference) => source.latest(reference)
  if (untold(configuration, latest).length > 0) {
    return { attempt: { kind: 'waiting', message: 'the source has not told of all objects in time' } }
  }
  const rendering = await renderFrom(configuration, latest)
  if (!rendering.ready) return { attempt: { kind: 'incomplete', findings: rendering.findings } }
  try {
    return await planDirectory({ ...requestFor(configuration, rendering), requireProven })
  } catch (error) {
    return { attempt: failure(error) }
  }
}

async function withSource<T>(
  configuration: AgentConfiguration,
  options: OnePassOptions,
  use: (pass: Pass) => Promise<T>,
): Promise<T> {
  const states = new StateRegistry()
  for (const directory of configuration.directories) {
    const state = states.add(directory)
    await notice(state, publishOperation(state.path), { log: options.log, metrics: uncounted })
  }
  const source = await options.openSource({ observed() {}, confirmed() {}, watchRestarted() {} })
  try {
    const wanted = wantedObjects(states)
    source.follow(wanted)
    const references = wanted.map(({ reference }) => reference)
    options.waiting(references, source)
    await firstAnswers(source, references, { timeout: options.timeout, signal: options.signal })
    return await use({ states, source })
  } finally {
    await source.close()
  }
}
