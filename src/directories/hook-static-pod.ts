import type { Hook } from '../config/hooks.js'
import { Deadline } from '../deadline.js'
import { DurableCalls } from '../durable/index.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { renewStaticPod } from '../static-pods/renew.js'
import { HookError } from './hook-error.js'

/** Has kubelet restart a static pod, once for the published content. `timeout` bounds the wait for locks. */
export async function runStaticPod(
  { name, pod, manifestDirectory, lockFile, timeout }: Hook<'staticPod'>,
  signal: AbortSignal,
  log: Log,
  published: readonly { readonly directory: string; readonly digest: string }[],
): Promise<void> {
  const deadline = new Deadline(timeout, signal)
  try {
    const renewal = { pod, manifestDirectory, lockFile, published, lockTimeout: timeout, signal: deadline.signal, log }
    log.debug({ hook: name, outcome: await renewStaticPod(new DurableCalls(), renewal) }, 'static pod hook ended')
  } catch (error) {
    throw new HookError(name, deadline.expired ? `not done after ${timeout} ms` : messageOf(error))
  } finally {
    deadline.dispose()
  }
}
