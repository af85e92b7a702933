import { sleep } from '../deadline.js'
import { createHash } from 'node:crypto'
import type { Hook } from '../config/hooks.js'
import { runHook } from '../directories/hooks.js'
import { completeHook } from '../durable/index.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { DirectoryFacts, DirectoryState } from './directory-state.js'
import { beside } from './file-systems.js'
import type { AgentEvents } from './report/agent-events.js'
import type { Metrics } from './report/report-metrics.js'
import type { QueueResult } from './workqueue.js'

interface HookRunnerOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly events: Pick<AgentEvents, 'hookFailed'>
  /** Ends a hook that runs; it stays recorded as pending. */
  readonly signal: AbortSignal
  /** A hook has been recorded as done. */
  readonly changed: () => void
  /** The name of this node, which decides where in its `jitter` a hook runs; undefined: at once. */
  readonly node?: string | undefined
}

/** Runs the hooks of directories of one file system, on its lane. */
export async function runHooksTogether(
  states: readonly DirectoryState[],
  options: HookRunnerOptions,
): Promise<Map<string, QueueResult>> {
  const [first] = states
  return first === undefined ? new Map() : beside(first.path, () => runPendingHooks(states, options))
}

/** The remaining hooks of one directory. */
class DirectoryRun {
  result: QueueResult = 'done'
  /** Keys, in the order of the configuration. */
  left: string[] = []
  #record: DirectoryFacts['record']

  constructor(readonly state: DirectoryState) {
    this.start()
  }

  /** From the beginning, for the present publication. */
  start(): void {
    this.#record = this.state.facts.record
    this.left = pendingInOrder(this.state.facts)
  }

  /** Something else has been published since. */
  get outdated(): boolean {
    const { record } = this.state.facts
    // A lost record begins to count anew, at another time.
    return record?.sequence !== this.#record?.sequence || record?.publishedAt !== this.#record?.publishedAt
  }

  get digest(): string {
    return this.#record?.digest ?? ''
  }

  /** Of each line of the log about this run. */
  get fields(): { operation: string; directory: string; sequence: number } {
    const { hooksOperation: operation, path: directory } = this.state
    return { operation, directory, sequence: this.#record?.sequence ?? 0 }
  }

  hook(key: string): Hook | undefined {
    return this.state.configuration.afterPublish.find((configured) => configured.key === key)
  }

  /** Tried: what follows it need not wait for its success. */
  passed(key: string): void {
    this.left = this.left.filter((each) => each !== key)
  }

  end(result: QueueResult): void {
    this.left = []
    this.result = result
  }
}

/**
 * Runs the hooks of directories that their records name as pending, in the order of the configuration, and records each success. A hook
 * that several of them share, by its action, runs once, when its turn has come in all of them. A failed hook does not hold the others up;
 * it is `retry` for all of its directories. A publication meanwhile has new hooks, so the rest of these wait for the next run. A comparison
 * that falls into a run changes nothing about it.
 */
export async function runPendingHooks(
  states: readonly DirectoryState[],
  options: HookRunnerOptions,
): Promise<Map<string, QueueResult>> {
  const runs = states.map((state) => new DirectoryRun(state))
  /** Hooks whose jitter is over. */
  const waited = new Set<string>()
  for (let key = nextKey(runs); key !== undefined; key = nextKey(runs)) {
    if (options.signal.aborted) break
    const having = runs.filter(({ left }) => left.includes(key))
    const delay = waited.has(key) ? 0 : delayOf(having, key, options.node)
    waited.add(key)
    if (delay > 0) {
      await sleep(delay, { signal: options.signal }).catch(() => undefined)
      // Earlier hooks are due again for the publication meanwhile.
      for (const run of runs) if (run.outdated) run.start()
      continue
    }
    await runOne(key, having, options)
  }
  return new Map(
    runs.map((run) => {
      const { hooksOperation, facts } = run.state
      if (options.signal.aborted && facts.record) return [hooksOperation, 'wait']
      // The newer publication has made its hooks due.
      if (run.outdated) return [hooksOperation, 'wait']
      return [hooksOperation, (facts.record?.pendingHooks ?? []).length > 0 ? 'retry' : run.result]
    }),
  )
}

/** The first hook whose turn has come in all directories that have it; where their orders contradict each other, the first of one. */
function nextKey(runs: readonly DirectoryRun[]): string | undefined {
  const first = runs.flatMap(({ left }) => left.slice(0, 1))
  return first.find((key) => runs.every(({ left }) => left.indexOf(key) <= 0)) ?? first[0]
}

async function runOne(key: string, having: readonly DirectoryRun[], options: HookRunnerOptions): Promise<void> {
  const { log, signal } = options
  for (const run of having) run.passed(key)
  // Another process that publishes here may have run it.
  const pending = having.filter(({ state }) => state.facts.record?.pendingHooks.includes(key))
  const hooks = pending.map((run) => run.hook(key)).filter((hook) => hook !== undefined)
  const startedAt = performance.now()
  const hook = mostPatient(hooks)
  try {
    const published = pending.map(({ state, digest }) => ({ directory: state.path, digest }))
    if (hook !== undefined) await runHook(hook, { signal, log, published })
  } catch (error) {
    if (!signal.aborted) for (const run of pending) hookFailed(run, key, error, options)
    return
  }
  const milliseconds = Math.round(performance.now() - startedAt)
  for (const run of pending) {
    reportRun(run, key, milliseconds, options)
    if (run.outdated) {
      run.end('wait')
      continue
    }
    await complete(run, key, log)
    options.changed()
  }
}

function hookFailed(run: DirectoryRun, key: string, error: unknown, { log, metrics, events }: HookRunnerOptions): void {
  run.result = 'retry'
  const { path } = run.state
  const { name, place } = run.hook(key) ?? {}
  if (name === undefined || place === undefined) return
  metrics.hook(path, name, 'failure')
  const message = `${path}: a hook (${place}) failed, and the agent retries it: ${messageOf(error)}`
  log.warn({ reason: 'HookFailed', ...run.fields, hook: name, place }, message)
  events.hookFailed(message)
}

function reportRun(run: DirectoryRun, key: string, milliseconds: number, { log, metrics }: HookRunnerOptions): void {
  const { path } = run.state
  const { name, place } = run.hook(key) ?? {}
  if (name === undefined) {
    log.info(run.fields, `${path}: a pending hook is no longer configured: the agent drops it`)
    return
  }
  metrics.hook(path, name, 'success')
  log.info({ ...run.fields, hook: name, place, milliseconds }, `${path}: the hook "${name}" has run`)
}

/** Directories may differ in how long they wait for the same hook, and how often they try. */
function mostPatient(hooks: readonly Hook[]): Hook | undefined {
  const [hook] = hooks
  if (hook === undefined) return undefined
  const most = (field: 'timeout' | 'retries') => Math.max(...hooks.map((each) => each[field]))
  return { ...hook, timeout: most('timeout'), retries: most('retries') }
}

function delayOf(having: readonly DirectoryRun[], key: string, node: string | undefined): number {
  if (node === undefined) return 0
  return jitterOf(Math.max(...having.map((run) => run.hook(key)?.jitter ?? 0)), node)
}

/**
 * Milliseconds of so many: the same for a node each time.
 * @internal
 */
export function jitterOf(milliseconds: number, node: string): number {
  return milliseconds * (createHash('sha256').update(node).digest().readUInt32BE() / 2 ** 32)
}

/** A hook whose run could not be recorded runs again after a restart: the promise is at least once. */
async function complete({ state, digest, fields }: DirectoryRun, key: string, log: Log): Promise<void> {
  const { path } = state
  try {
    await completeHook(path, digest, key)
  } catch (error) {
    const message = `${path}: could not record that a hook has run, so it runs again after a restart: ${messageOf(error)}`
    log.warn(fields, message)
  }
  state.happened({ kind: 'hook ran', key })
}

/** Pending hooks as the configuration orders them; those that it does not know come last. */
function pendingInOrder({ record, configuration }: DirectoryFacts): string[] {
  const order = configuration.afterPublish.map(({ key }) => key)
  const place = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length)
  return [...(record?.pendingHooks ?? [])].sort((a, b) => place(a) - place(b))
}

/**
 * Which directories run their hooks together: those of one file system that share a hook, by its action, so that it runs once for all of
 * them. Answers the group of each directory's operation; directories of several file systems never wait for one another.
 */
export function hookGroups(
  states: Iterable<DirectoryState>,
  fileSystemOf: (path: string) => string,
): (operation: string) => string {
  const groups = new Map<string, Set<DirectoryState>>()
  const ofState = new Map<DirectoryState, Set<DirectoryState>>()
  for (const state of states) {
    let group = new Set([state])
    for (const { key } of state.configuration.afterPublish) {
      const hook = `${fileSystemOf(state.path)} ${key}`
      const other = groups.get(hook)
      if (other !== undefined && other !== group) group = mergedGroups(group, other, groups)
      groups.set(hook, group)
    }
    for (const member of group) ofState.set(member, group)
  }
  const names = new Map<string, string>()
  for (const [state, group] of ofState) {
    const operations = [...group].map(({ hooksOperation }) => hooksOperation).sort()
    names.set(state.hooksOperation, operations[0] ?? '')
  }
  return (operation) => names.get(operation) ?? operation
}

function mergedGroups<T>(a: Set<T>, b: Set<T>, groups: Map<string, Set<T>>): Set<T> {
  const both = new Set([...a, ...b])
  for (const [hook, group] of groups) if (group === a || group === b) groups.set(hook, both)
  return both
}
