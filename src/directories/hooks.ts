/**
 * Runs what the operator has configured for after a publication. Each try is bounded in time, and leaves nothing running when it is
 * over its time or abandoned.
 */
import { sleep } from '../deadline.js'
import type { Hook, HookType } from '../config/hooks.js'
import type { Log } from '../log.js'
import { HookError } from './hook-error.js'

type PublishedDirectories = readonly { readonly directory: string; readonly digest: string }[]

export interface HookOptions {
  /** Abandons the try that is running, and those to come. */
  readonly signal: AbortSignal
  readonly log: Log
  /** The publication that the hook runs for: directories, with the digests of their content. */
  readonly published?: PublishedDirectories
  /** Milliseconds before the second try; doubles from try to try, up to a minute. Default 500. */
  readonly pause?: number
}

const longestPause = 60_000

/**
 * Resolves once a try succeeded. Rejects with HookError after the last one, and with the signal's reason when abandoned.
 */
export async function runHook(hook: Hook, { signal, log, published = [], pause = 500 }: HookOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    const started = performance.now()
    try {
      await runOnce(hook, signal, log, published)
      log.debug({ hook: hook.name, attempt, milliseconds: since(started) }, 'hook done')
      return
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof HookError)) throw error
      if (attempt > hook.retries) {
        throw new HookError(
          hook.name,
          `${error.detail}${attempt > 1 ? ` (try ${attempt} of ${hook.retries + 1})` : ''}`,
        )
      }
      log.warn({ hook: hook.name, attempt, milliseconds: since(started) }, `${error.message}; the agent retries it`)
    }
    await sleep(jittered(Math.min(pause * 2 ** (attempt - 1), longestPause)), { signal })
  }
}

type Runner<Type extends HookType> = (
  hook: Hook<Type>,
  signal: AbortSignal,
  log: Log,
  published: PublishedDirectories,
) => Promise<void>

/** How each type of hook is run: once. */
const runners: { readonly [Type in HookType]: () => Promise<Runner<Type>> } = {
  signal: async () => (await import('./hook-signal.js')).runSignal,
  exec: async () => (await import('./hook-exec.js')).runExec,
  http: async () => (await import('./hook-http.js')).runHttp,
  systemd: async () => (await import('./hook-systemd.js')).runSystemd,
  staticPod: async () => (await import('./hook-static-pod.js')).runStaticPod,
}

/** A daemon loads the types that it has been configured with before it needs them: see needed-modules.ts of the agent. */
export async function loadHookType(type: HookType): Promise<void> {
  await runners[type]()
}

async function runOnce<Type extends HookType>(
  hook: Hook<Type>,
  ...more: [AbortSignal, Log, PublishedDirectories]
): Promise<void> {
  const run = await runners[hook.type]()
  await run(hook, ...more)
}

/** Many nodes that publish at once do not come back at once. */
function jittered(milliseconds: number): number {
  return milliseconds * (0.5 + Math.random() / 2)
}

function since(started: number): number {
  return Math.round(performance.now() - started)
}
