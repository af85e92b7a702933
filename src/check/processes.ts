import { constants, promises as fsp } from 'node:fs'
import { codeOrMessage } from './findings.js'

/** Bytes of a pid file that are looked at. */
const looked = 64

export type PidFile =
  | { readonly problem: string; readonly missing: boolean }
  | {
      readonly pid: number
      /** undefined: no such process can be seen from here. */
      readonly process: { readonly uid: number; readonly command: string } | undefined
    }

/** What a pid file says, by the rules of the hook that reads it. */
export async function readPidFile(path: string): Promise<PidFile> {
  let handle
  try {
    handle = await fsp.open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    const status = await handle.stat()
    if (!status.isFile()) return wrong(`${path} is not a regular file`)
    if ((status.mode & 0o002) !== 0) return wrong(`everybody may write to ${path}: holdfast does not trust it`)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(looked), 0, looked, 0)
    const digits = /^[ \t]*([0-9]{1,10})[ \t]*(?:\r?\n|$)/.exec(buffer.toString('latin1', 0, bytesRead))?.[1]
    if (digits === undefined) return wrong(`${path} does not start with a process ID`)
    const pid = Number(digits)
    if (pid <= 1) return wrong(`${path} names process ${pid}, which holdfast never signals`)
    const process = await seenProcess(pid)
    if (process !== undefined && status.uid !== 0 && status.uid !== process.uid && status.uid !== ownUser()) {
      return wrong(
        `${path} belongs to user ${status.uid}, but process ${pid} to user ${process.uid}: holdfast will not signal it`,
      )
    }
    return { pid, process }
  } catch (error) {
    const code = codeOrMessage(error)
    return {
      problem: code === 'ENOENT' ? `${path}: no such file` : `${path}: ${code}`,
      missing: code === 'ENOENT',
    }
  } finally {
    await handle?.close()
  }
}

function wrong(problem: string): PidFile {
  return { problem, missing: false }
}

function ownUser(): number | undefined {
  return process.geteuid?.()
}

async function seenProcess(pid: number): Promise<{ uid: number; command: string } | undefined> {
  try {
    const [{ uid }, name] = await Promise.all([fsp.stat(`/proc/${pid}`), fsp.readFile(`/proc/${pid}/comm`, 'latin1')])
    return { uid, command: name.trim() }
  } catch {
    return undefined
  }
}

/**
 * Whether this is certainly a container's own PID namespace: process 1 is this program, or another one of the same executable, or
 * the pod's pause process. Where none of that holds, nothing is known.
 */
export async function pidNamespaceIsOwn(): Promise<boolean> {
  if (process.pid === 1) return true
  const first = await fsp.readFile('/proc/1/comm', 'latin1').catch(() => '')
  if (first.trim() === 'pause') return true
  try {
    return (await fsp.readlink('/proc/1/exe')) === (await fsp.readlink('/proc/self/exe'))
  } catch {
    return false
  }
}
