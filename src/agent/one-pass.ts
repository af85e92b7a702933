import { expand, referencesOf } from '../config/references.js'
import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import type { ContentFinding } from '../directories/types.js'
import { planDirectory } from '../durable/index.js'
import type { DirectoryChange } from '../durable/publish/index.js'
import type { RecordedObject, ReplaceResult } from '../durable/types.js'
import type { Log } from '../log.js'
import { firstAnswers, type ObservableSource } from '../objects/first-answers.js'
import type { DesiredObject, ObjectKind, ObjectReference, SourceListener } from '../objects/types.js'
import {
  desiredObjects,
  PassObjects,
  renderFrom,
  publicationRequest,
  unreported,
  type PassRequest,
} from './desired-content.js'
import type { PublicationRequest } from '../durable/publish/index.js'
import { noteForPass } from './leaving/departures.js'
import { detectDrift } from './detect-drift.js'
import { DirectoryStates, type DirectoryState } from './directory-state.js'
import { runPendingHooks } from './hook-runner.js'
import { withOldPaths } from './leaving/moves.js'
import type { PassOutcome } from './outcome.js'
import { failedOutcome } from './publish.js'
import { reconcile } from './reconcile.js'
import { noEvents } from './report/agent-events.js'
import { noMetrics } from './report/report-metrics.js'

export interface OnePassOptions {
  readonly log: Log
  readonly signal: AbortSignal
  /** Milliseconds to wait for the source. */
  readonly timeout: number
  /** Milliseconds to wait for another holder of a target's lock. */
  readonly lockTimeout: number
  readonly requireProven: boolean
  /** The paths of the directories that the pass is about; without it, of all. Others count as configured, and stay as they are. */
  readonly only?: ReadonlySet<string>
  /** Which agent this is the pass of. */
  readonly agent?: string | undefined
  /** Publish even what an operator holds, and let it go. */
  readonly release: boolean
  openSource(listener: SourceListener): Promise<ObservableSource>
  /** Called with the objects of the pass, before the wait. */
  waiting(references: () => readonly ObjectReference[], source: ObservableSource): void
}

/** What became of one directory. `outcome` is undefined only where the pass never came to it. */
interface Passed {
  readonly state: DirectoryState
  readonly outcome: PassOutcome | undefined
}

interface Pass {
  readonly states: DirectoryStates
  readonly source: ObservableSource
}

/** Publishes every directory once. Rejects where the source cannot be opened, or with the signal's reason while it waits. */
export async function onePass(
  configuration: AgentConfiguration,
  options: OnePassOptions & { readonly hooks: boolean },
): Promise<Passed[]> {
  const { log, signal, agent } = options
  const isOwed = await noteForPass(configuration, { log, identity: agent })
  return withSource(configuration, options, async ({ states, source }) => {
    const outcomes = new Map<DirectoryState, PassOutcome>()
    const causes = { causes: ['sync'], since: performance.now() }
    const batch = new Map([...states].map(({ publishOperation }) => [publishOperation, causes]))
    const results = await reconcile(batch, {
      log,
      signal,
      metrics: noMetrics,
      events: noEvents,
      lockTimeout: options.lockTimeout,
      agent,
      requireProven: () => options.requireProven,
      release: options.release,
      isOwed,
      source,
      state: (operation) => states.byOperation(operation),
      applied: (state, outcome) => outcomes.set(state, outcome),
    })
    if (options.hooks) {
      // Hooks announce only durable content.
      const isDurable = (outcome: PassOutcome | undefined) =>
        outcome?.kind === 'published' || outcome?.kind === 'moving'
      const published = [...states].filter((state) => isDurable(outcomes.get(state)))
      await runPendingHooks(published, { log, signal, metrics: noMetrics, events: noEvents, changed: () => {} })
    }
    for (const result of results.values()) await result
    return [...states].map((state) => ({ state, outcome: outcomes.get(state) }))
  })
}

/** What a pass would do to one directory. */
interface Planned {
  readonly state: DirectoryState
  readonly plan:
    | {
        readonly outcome: ReplaceResult['outcome']
        readonly digest: string
        readonly changes: readonly DirectoryChange[]
      }
    | { readonly notPlanned: PassOutcome }
}

/** Plans what a pass would do; writes nothing. */
export async function dryPass(configuration: AgentConfiguration, options: OnePassOptions): Promise<Planned[]> {
  return withSource(configuration, options, async ({ states, source }) => {
    const planned: Planned[] = []
    const own = [...states].filter((state) => state.configuration.follows === undefined)
    for (const state of own) planned.push({ state, plan: await plan(state, source, options) })
    return planned
  })
}

async function plan(
  { configuration }: DirectoryState,
  source: ObservableSource,
  { requireProven, release, signal }: Pick<OnePassOptions, 'requireProven' | 'release' | 'signal'>,
): Promise<Planned['plan']> {
  const rendered = await renderedRequest(configuration, source, signal, {
    requireProven,
    held: release ? 'release' : 'refuse',
  })
  if ('notPlanned' in rendered) return rendered
  try {
    return await planDirectory(rendered.request)
  } catch (error) {
    return { notPlanned: failedOutcome(error) }
  }
}

async function renderedRequest(
  configuration: DirectoryConfiguration,
  source: ObservableSource,
  signal: AbortSignal,
  pass: PassRequest,
): Promise<{ readonly request: PublicationRequest } | { readonly notPlanned: PassOutcome }> {
  const latest = (reference: ObjectReference) => source.latest(reference)
  if (unreported(configuration, latest).length > 0) {
    return { notPlanned: { kind: 'waiting', message: 'the source did not report all objects in time' } }
  }
  const rendering = await renderFrom(configuration, new PassObjects(source, signal))
  if (!rendering.ready) return { notPlanned: { kind: 'incomplete', findings: rendering.findings } }
  return { request: publicationRequest(configuration, rendering, latest, pass) }
}

/** What the source says that a directory must hold. */
interface Desired {
  readonly request: PublicationRequest
  /** Objects whose published files the directory keeps: they are gone, or going. */
  readonly kept: readonly RecordedObject[]
}

/** Answers the desired content of each directory by the source, or why it is unknown; writes nothing. */
export async function desiredContents(
  configuration: AgentConfiguration,
  options: Omit<OnePassOptions, 'lockTimeout' | 'requireProven' | 'release' | 'agent'>,
): Promise<(Desired | { readonly notPlanned: PassOutcome })[]> {
  return withSource(configuration, options, async ({ states, source }) => {
    const desired: (Desired | { readonly notPlanned: PassOutcome })[] = []
    for (const { configuration } of states) {
      const rendered = await renderedRequest(configuration, source, options.signal, {})
      const findings = unreadable(configuration, source)
      if ('notPlanned' in rendered) desired.push(rendered)
      else if (findings.length > 0) desired.push({ notPlanned: { kind: 'incomplete', findings } })
      else desired.push({ ...rendered, kept: keptOf(rendered.request, source) })
    }
    return desired
  })
}

/** A directory keeps the files of an unreadable optional object; its desired content is unknown, all the same. */
function unreadable(configuration: DirectoryConfiguration, source: ObservableSource): ContentFinding[] {
  return referencesOf(expand(configuration, (reference) => source.latest(reference))).flatMap((reference) => {
    const known = source.latest(reference)
    return known?.state === 'unknown'
      ? [
          {
            reason: known.reason,
            message: known.message,
            reference,
            ...(known.permanent && { misconfigured: true as const }),
          },
        ]
      : []
  })
}

function keptOf({ objects = [] }: PublicationRequest, source: ObservableSource): RecordedObject[] {
  return objects.filter(({ kind, namespace, name }) => {
    const known = source.latest({ kind: kind as ObjectKind, namespace, name })
    return !(known?.state === 'present' || known?.state === 'unloaded') || known.object.terminating
  })
}

async function withSource<T>(
  configuration: AgentConfiguration,
  options: Pick<OnePassOptions, 'log' | 'signal' | 'timeout' | 'openSource' | 'waiting' | 'only'>,
  use: (pass: Pass) => Promise<T>,
): Promise<T> {
  const states = new DirectoryStates()
  const { only } = options
  for (const directory of withOldPaths(configuration.directories)) {
    if (only?.has(directory.follows ?? directory.path) === false) continue
    const state = states.add(directory)
    await detectDrift(state, { log: options.log, metrics: noMetrics })
  }
  let desired: readonly DesiredObject[] = []
  const follow = (source: ObservableSource): void => {
    desired = desiredObjects(states, (reference) => source.latest(reference))
    source.follow(desired)
  }
  const source: ObservableSource = await options.openSource({
    // What a selection matches is to be read, too.
    observed: ({ selector }) => {
      if (selector !== undefined) follow(source)
    },
    confirmed() {},
    watchRestarted() {},
  })
  const references = (): ObjectReference[] => desired.map(({ reference }) => reference)
  try {
    follow(source)
    options.waiting(references, source)
    await firstAnswers(source, references, { timeout: options.timeout, signal: options.signal })
    return await use({ states, source })
  } finally {
    await source.close()
  }
}
