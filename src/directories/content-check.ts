import { Worker } from 'node:worker_threads'
import type { Hook } from '../config/hooks.js'
import { endsWithin, unlessAborted } from '../deadline.js'
import type { StagedContent } from '../durable/types.js'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { HookError } from './hook-error.js'

/** The thread's input. */
export interface ContentCheckJob {
  readonly hook: Pick<Hook<'exec'>, 'name' | 'command' | 'timeout'>
  readonly content: StagedContent
}

interface Rejected {
  readonly rejected: string
  readonly inconclusive: boolean
}

/** A message of the thread: a line of the log, or at last how the command has ended. */
export type ContentCheckMessage =
  { readonly fields: object; readonly line: string } | { readonly accepted: true } | Rejected

/** Milliseconds for all but the command itself: for the thread to start, and for the command to end once it is over its time. */
const margin = 5_000

/** Commands that run side by side, of all directories: each has a thread, and no limit on its program's resources. */
const together = 2

const turns = { running: 0, waiting: new Set<() => void>() }

/** Waits for its turn. @throws the signal's reason */
async function takeTurn(signal: AbortSignal): Promise<void> {
  while (turns.running >= together) {
    let awake: (() => void) | undefined
    const free = new Promise<void>((resolve) => turns.waiting.add((awake = resolve)))
    try {
      await unlessAborted(free, signal)
    } finally {
      if (awake) turns.waiting.delete(awake)
    }
  }
  turns.running += 1
}

function endTurn(): void {
  turns.running -= 1
  for (const wake of turns.waiting) wake()
}

const program = new URL('./content-check-thread.js', import.meta.url)

/**
 * Runs a command of `beforePublish` on staged content. It runs on a separate thread, which may have a separate mount namespace, and
 * which holds up no caller once a disk hangs. Rejects with HookError where the command does not end with 0 in its time, and with
 * the signal's reason when abandoned. It waits until few enough others run.
 */
export async function checkContent(
  hook: Hook<'exec'>,
  content: StagedContent,
  options: ContentCheckOptions,
): Promise<void> {
  options.signal.throwIfAborted()
  await takeTurn(options.signal)
  try {
    await runCheck(hook, content, options)
  } finally {
    endTurn()
  }
}

interface ContentCheckOptions {
  readonly signal: AbortSignal
  readonly log: Log
}

async function runCheck(
  { name, command, timeout }: Hook<'exec'>,
  content: StagedContent,
  { signal, log }: ContentCheckOptions,
): Promise<void> {
  signal.throwIfAborted()
  const job: ContentCheckJob = { hook: { name, command, timeout }, content }
  const worker = new Worker(program, { workerData: job })
  const abort = () => worker.postMessage('abort')
  signal.addEventListener('abort', abort, { once: true })
  const said: { rejection: Rejected | undefined } = {
    rejection: { rejected: 'its thread has ended before it', inconclusive: true },
  }
  const ended = new Promise<void>((resolve) => {
    worker.on('message', (message: ContentCheckMessage) => {
      if ('line' in message) log.debug(message.fields, message.line)
      else said.rejection = 'rejected' in message ? message : undefined
    })
    // A thread that could not be started, for instance without a file descriptor, says nothing of the content.
    worker.once('error', (error) => {
      said.rejection = { rejected: `its thread has failed: ${messageOf(error)}`, inconclusive: true }
    })
    worker.once('exit', () => resolve())
  })
  try {
    if (!(await endsWithin(ended, timeout + margin))) {
      const rejected = `has not ended ${margin} ms after its time: the file system of the content does not answer`
      said.rejection = { rejected, inconclusive: true }
    }
  } finally {
    signal.removeEventListener('abort', abort)
    worker.unref()
    void worker.terminate()
  }
  signal.throwIfAborted()
  const { rejection } = said
  if (rejection !== undefined) throw new HookError(name, rejection.rejected, rejection.inconclusive)
}
