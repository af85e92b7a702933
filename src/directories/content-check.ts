import { Worker } from 'node:worker_threads'
import type { Hook } from '../config/hooks.js'
import { endsWithin } from '../deadline.js'
import type { StagedContent } from '../durable/types.js'
import type { Log } from '../log.js'
import { HookError } from './hook-error.js'

/** What the thread of a check is given. */
export interface ContentCheckJob {
  readonly hook: Pick<Hook<'exec'>, 'name' | 'command' | 'timeout'>
  readonly content: StagedContent
}

/** What it says: lines of the log, and then how the command has ended. */
export type ContentCheckMessage =
  { readonly fields: object; readonly line: string } | { readonly accepted: true } | { readonly rejected: string }

/** Milliseconds for all but the command itself: for the thread to start, and for the command to end once it is over its time. */
const margin = 5_000

const program = new URL('./content-check-thread.js', import.meta.url)

/**
 * Runs a command of `beforePublish` on staged content. It runs on a thread of its own, which may have a mount namespace of its own, and
 * which nobody waits for once a disk hangs. Rejects with HookError where the command does not end with 0 in its time, and with
 * the signal's reason when abandoned.
 */
export async function checkContent(
  { name, command, timeout }: Hook<'exec'>,
  content: StagedContent,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<void> {
  signal.throwIfAborted()
  const job: ContentCheckJob = { hook: { name, command, timeout }, content }
  const worker = new Worker(program, { workerData: job })
  const abort = () => worker.postMessage('abort')
  signal.addEventListener('abort', abort, { once: true })
  const said: { rejected: string | undefined } = { rejected: 'its thread has ended before it' }
  const ended = new Promise<void>((resolve, reject) => {
    worker.on('message', (message: ContentCheckMessage) => {
      if ('line' in message) log.debug(message.fields, message.line)
      else said.rejected = 'rejected' in message ? message.rejected : undefined
    })
    worker.once('error', reject)
    worker.once('exit', () => resolve())
  })
  try {
    if (await endsWithin(ended, timeout + margin)) await ended
    else said.rejected = `has not ended ${margin} ms after its time: the file system of the content does not answer`
  } finally {
    signal.removeEventListener('abort', abort)
    worker.unref()
    void worker.terminate()
  }
  signal.throwIfAborted()
  if (said.rejected !== undefined) throw new HookError(name, said.rejected)
}
