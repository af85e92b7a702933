import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import type { Hook } from '../config/hooks.js'
import { describeCode } from '../errors.js'
import { failureCode, HookError } from './hook-error.js'

/** Bytes of a pid file that are looked at; some daemons write more lines than the first. */
const looked = 64
/** Source: Linux, include/linux/threads.h, PID_MAX_LIMIT. */
const highestPid = 4_194_304

/** Sends the signal to the process that the pid file names. Whether it did anything with it cannot be known. */
export async function runSignal(hook: Hook<'signal'>): Promise<void> {
  const { pid, owner } = await readPid(hook)
  await checkOwner(hook, pid, owner)
  try {
    process.kill(pid, hook.signal)
  } catch (error) {
    throw notSent(hook, pid, failureCode(error))
  }
}

async function readPid({ name, pidFile }: Hook<'signal'>): Promise<{ pid: number; owner: number }> {
  const problem = (message: string) => new HookError(name, `${pidFile}: ${message}`)
  let handle
  try {
    // Without O_NONBLOCK, a FIFO by that name would hold the hook for ever.
    handle = await open(pidFile, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch (error) {
    const code = failureCode(error)
    throw problem(
      code === 'ENOENT' ? 'no such file: is the process running?' : `could not be opened: ${describeCode(code)}`,
    )
  }
  try {
    const status = await handle.stat()
    if (!status.isFile()) throw problem('is not a regular file')
    if ((status.mode & 0o002) !== 0) throw problem('is writable by everybody: holdfast does not trust it')
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(looked), 0, looked, 0)
    const digits = /^[ \t]*([0-9]{1,10})[ \t]*(?:\r?\n|$)/.exec(buffer.toString('latin1', 0, bytesRead))?.[1]
    if (digits === undefined) throw problem('does not start with a process ID')
    const pid = Number(digits)
    if (pid <= 1 || pid > highestPid) throw problem(`names process ${pid}, which holdfast never signals`)
    if (pid === process.pid) throw problem('names holdfast itself')
    return { pid, owner: status.uid }
  } catch (error) {
    if (error instanceof HookError) throw error
    throw problem(`could not be read: ${failureCode(error)}`)
  } finally {
    await handle.close()
  }
}

/**
 * A pid file of an ordinary user may send signals to that user's processes only: else its owner could have root signal any
 * process. Source: the same rule of systemd for PIDFile= (systemd.service(5)).
 */
async function checkOwner(hook: Hook<'signal'>, pid: number, owner: number): Promise<void> {
  if (owner === 0 || owner === process.geteuid?.()) return
  let processOwner
  try {
    processOwner = (await stat(`/proc/${pid}`)).uid
  } catch (error) {
    throw notSent(hook, pid, failureCode(error) === 'ENOENT' ? 'ESRCH' : failureCode(error))
  }
  if (processOwner === owner) return
  const message = `${hook.pidFile} belongs to user ${owner}, but process ${pid} to user ${processOwner}: holdfast did not signal it`
  throw new HookError(hook.name, message)
}

function notSent({ name, pidFile }: Hook<'signal'>, pid: number, code: string): HookError {
  const advice =
    code === 'ESRCH'
      ? 'no such process: the pid file is stale, or holdfast runs in a PID namespace of its own (in a pod, set hostPID: true)'
      : code === 'EPERM'
        ? 'this user may not signal it: grant CAP_KILL'
        : code
  return new HookError(name, `could not signal process ${pid} of ${pidFile}: ${advice}`)
}
