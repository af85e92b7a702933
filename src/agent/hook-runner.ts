import { runHook } from '../directories/hooks.js'
import { completeHook } from '../durable/index.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { DirectoryState } from './directory-state.js'
import { beside } from './file-systems.js'
import type { AgentEvents } from './agent-events.js'
import type { Metrics } from './report-metrics.js'
import type { Batch, QueueResult } from './workqueue.js'

interface HookRunnerOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly events: Pick<AgentEvents, 'hookFailed'>
  /** Ends a hook that runs; it stays recorded as pending. */
  readonly signal: AbortSignal
  /** A hook has been recorded as done. */
  readonly changed: () => void
}

/** Runs the hooks of each directory whose operation is due. */
export async function runHookBatch(
  batch: Batch,
  states: Iterable<DirectoryState>,
  options: HookRunnerOptions,
): Promise<Map<string, QueueResult>> {
  const results = new Map<string, QueueResult>()
  for (const state of states) {
    const operation = state.hooksOperation
    if (batch.has(operation)) results.set(operation, await beside(state.path, () => runPendingHooks(state, options)))
  }
  return results
}

/**
 * Runs the hooks of a directory that its record names as pending, in the order of the configuration, and records each success. One
 * that fails does not hold the others up; it is `retry`. A publication that is made meanwhile has hooks of its own, so the rest of
 * these are left to the next run. A comparison that falls into a run changes nothing about it.
 */
export async function runPendingHooks(state: DirectoryState, options: HookRunnerOptions): Promise<QueueResult> {
  const { log, metrics, signal, events } = options
  const { digest, path, generation, hooksOperation: operation } = state
  if (digest === undefined) return 'done'
  let result: QueueResult = 'done'
  for (const key of inOrder(state)) {
    if (signal.aborted) return 'wait'
    // Another process that publishes here may have run it.
    if (!state.pendingHooks.includes(key)) continue
    const hook = state.configuration.afterPublish.find((configured) => configured.key === key)
    const fields = { operation, directory: path, digest }
    if (hook === undefined) {
      log.info(fields, `${path}: a pending hook is no longer configured: the agent drops it`)
    } else {
      const { name, place } = hook
      const startedAt = performance.now()
      try {
        await runHook(hook, { signal, log })
      } catch (error) {
        if (options.signal.aborted) return 'wait'
        metrics.hook(path, name, 'failure')
        const details = { reason: 'HookFailed', ...fields, hook: name, place }
        const message = `${path}: a hook (${place}) failed, and the agent retries it: ${messageOf(error)}`
        log.warn(details, message)
        events.hookFailed(message)
        result = 'retry'
        continue
      }
      metrics.hook(path, name, 'success')
      const milliseconds = Math.round(performance.now() - startedAt)
      log.info({ ...fields, hook: name, place, milliseconds }, `${path}: the hook "${name}" has run`)
    }
    if (state.digest !== digest || state.generation !== generation) return 'retry'
    await complete(state, digest, key, log)
    options.changed()
  }
  return state.pendingHooks.length > 0 ? 'retry' : result
}

/** Where it cannot be recorded that a hook has run, it runs again after a restart: at least once is what was promised. */
async function complete(state: DirectoryState, digest: string, key: string, log: Log): Promise<void> {
  const { path } = state
  try {
    await completeHook(path, digest, key)
  } catch (error) {
    const message = `${path}: could not record that a hook has run, so it runs again after a restart: ${messageOf(error)}`
    log.warn({ directory: path, digest }, message)
  }
  state.pendingHooks = state.pendingHooks.filter((pending) => pending !== key)
}

/** Pending hooks as the configuration orders them; those that it does not know come last. */
function inOrder({ pendingHooks, configuration }: DirectoryState): string[] {
  const order = configuration.afterPublish.map(({ key }) => key)
  const place = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length)
  return [...pendingHooks].sort((a, b) => place(a) - place(b))
}
