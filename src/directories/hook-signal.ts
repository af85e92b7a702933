import type { Hook } from '../config/hooks.js'
import { failureCode, HookError } from './hook-error.js'
import { holdProcess, PidFileError, type HeldProcess } from './pid-file.js'

/** Sends the signal to the process that the pid file names. Whether it did anything with it cannot be known. */
export async function runSignal(hook: Hook<'signal'>): Promise<void> {
  const held = await holdFor(hook)
  try {
    held.signal(hook.signal)
  } catch (error) {
    throw notSent(hook, held.pid, failureCode(error))
  } finally {
    held.release()
  }
}

async function holdFor({ name, pidFile }: Hook<'signal'>): Promise<HeldProcess> {
  try {
    return await holdProcess(pidFile)
  } catch (error) {
    throw error instanceof PidFileError ? new HookError(name, error.message) : error
  }
}

function notSent({ name, pidFile }: Hook<'signal'>, pid: number, code: string): HookError {
  const advice =
    code === 'ESRCH' ? 'it has just ended' : code === 'EPERM' ? 'this user may not signal it: grant CAP_KILL' : code
  return new HookError(name, `could not signal process ${pid} of ${pidFile}: ${advice}`)
}
