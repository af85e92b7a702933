import { runHook } from '../directories/hooks.js'
import { completeHook } from '../durable/index.js'
import type { Log } from '../log.js'
import type { DirectoryState } from './directory-state.js'
import type { AgentEvents } from './events.js'
import type { Metrics } from './metrics.js'
import { hooksOperation } from './operations.js'
import type { Batch, Verdict } from './queue.js'

export interface HookRunnerOptions {
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
): Promise<Map<string, Verdict>> {
  const verdicts = new Map<string, Verdict>()
  for (const state of states) {
    const operation = hooksOperation(state.path)
    if (batch.has(operation)) verdicts.set(operation, await runPendingHooks(state, options))
  }
  return verdicts
}

/**
 * Runs the hooks of a directory that its record names as pending, in the order of the configuration, and records each success. One
 * that fails does not hold the others up; it is `retry`. A publication that is made meanwhile has hooks of its own, so the rest of
 * these are left to the next run. A comparison that falls into a run changes nothing about it.
 */
export async function runPendingHooks(state: DirectoryState, options: HookRunnerOptions): Promise<Verdict> {
  const { log, metrics, signal, events } = options
  const { digest, path, generation } = state
  if (digest === undefined) return 'done'
  const operation = hooksOperation(path)
  let verdict: Verdict = 'done'
  for (const key of inOrder(state)) {
    if (signal.aborted) return 'wait'
    // Another process that publishes here may have run it.
    if (!state.pendingHooks.includes(key)) continue
    const hook = state.configuration.afterPublish.find((configured) => configured.key === key)
    const fields = { operation, directory: path, digest }
    if (hook === undefined) {
      log.info(fields, `${path}: a pending hook is not configured any more, and is dropped`)
    } else {
      const { name, place } = hook
      const began = performance.now()
      try {
        await runHook(hook, { signal, log })
      } catch (error) {
        if (options.signal.aborted) return 'wait'
        metrics.hook(path, name, 'failure')
        const message = error instanceof Error ? error.message : String(error)
        const details = { reason: 'HookFailed', ...fields, hook: name, place }
        const sentence = `${path}: a hook (${place}) failed and is tried again: ${message}`
        log.warn(details, sentence)
        events.hookFailed(sentence)
        verdict = 'retry'
        continue
      }
      metrics.hook(path, name, 'success')
      const milliseconds = Math.round(performance.now() - began)
      log.info({ ...fields, hook: name, place, milliseconds }, `${path}: the hook "${name}" has run`)
    }
    if (state.digest !== digest || state.generation !== generation) return 'retry'
    await complete(state, digest, key, log)
    options.changed()
  }
  return state.pendingHooks.length > 0 ? 'retry' : verdict
}

/** Where it cannot be recorded that a hook has run, it runs again after a restart: at least once is what was promised. */
async function complete(state: DirectoryState, digest: string, key: string, log: Log): Promise<void> {
  const { path } = state
  try {
    await completeHook(path, digest, key)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    log.warn(
      { directory: path, digest },
      `${path}: that a hook has run could not be recorded, so it will run again after a restart: ${message}`,
    )
  }
  state.pendingHooks = state.pendingHooks.filter((pending) => pending !== key)
}

/** Pending hooks as the configuration orders them; those that it does not know come last. */
function inOrder({ pendingHooks, configuration }: DirectoryState): string[] {
  const order = configuration.afterPublish.map(({ key }) => key)
  const place = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length)
  return [...pendingHooks].sort((a, b) => place(a) - place(b))
}
