import { closeSync, constants } from 'node:fs'
import { open, readFile, statfs, type FileHandle } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { Disk, nodeFiles } from '../durable/index.js'
import { DurableWriteError } from '../durable/errors.js'
import { openProcess, signalProcess } from '../../native/index.js'
import { codeOf, describeCode } from '../errors.js'
import { failureCode } from './hook-error.js'
import { doubtOf, doubtOfOwners, isOwn, type SignalledProcess, type Step } from './pid-file-trust.js'

/*
 * The process that a pid file names. The hook signals by it, and `check` tells by it what the hook will do. A pidfd holds it before
 * the look at it: a number may name another process a moment later.
 */

/** Bytes that holdfast reads of a pid file; some daemons write more lines than the first. */
const looked = 64
/** Source: Linux, include/linux/threads.h, PID_MAX_LIMIT. */
const highestPid = 4_194_304
/** Opens a name and not the file behind it: some devices begin to work when they are opened (open(2)). */
const O_PATH = 0o10000000
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants

/** Why a pid file leads to no process that holdfast signals. The message holds nothing of the file but a number. */
export class PidFileError extends Error {
  override readonly name = 'PidFileError'

  constructor(
    message: string,
    /** `missing`: there is no file; `stale`: there is no process; `refused`: holdfast could not read it, or does not trust it. */
    readonly kind: 'missing' | 'stale' | 'refused' = 'refused',
  ) {
    super(message)
  }
}

/** A process that stays the same one until it is released, even if its number goes to another. */
export interface HeldProcess extends SignalledProcess {
  /** As ps(1) shows it. */
  readonly command: string
  /** @throws the error of the system call */
  readonly signal: (name: NodeJS.Signals) => void
  readonly release: () => void
}

/** @throws PidFileError */
export async function holdProcess(pidFile: string): Promise<HeldProcess> {
  const { steps, pid } = await readPid(pidFile)
  const self = process.geteuid?.() ?? 0
  const held = hold(pidFile, pid)
  try {
    const { leader, ...found } = await lookAt(pidFile, pid)
    // Without pidfd_open, the kernel has not looked.
    if (leader !== pid) throw noLeader(pidFile, pid)
    const doubt = doubtOfOwners(pidFile, steps, found, self)
    if (doubt !== undefined) throw new PidFileError(`${pidFile}: ${doubt}`)
    if (held === undefined && !isOwn(steps, self)) {
      const why = `this kernel cannot hold process ${pid} (pidfd_open, Linux 5.3, refused by its seccomp profile or missing)`
      throw new PidFileError(`${pidFile}: ${why}, and the file or a directory above it does not belong to root alone`)
    }
    return {
      ...found,
      signal: (name) => {
        if (held === undefined) process.kill(pid, name)
        else signalProcess(held, system.signals[name])
      },
      release: () => release(held),
    }
  } catch (error) {
    release(held)
    throw error
  }
}

function release(held: number | undefined): void {
  if (held !== undefined) closeSync(held)
}

/** The number in a pid file, and the way to it. No link is followed that others could have made. */
async function readPid(pidFile: string): Promise<{ steps: Step[]; pid: number }> {
  const steps: Step[] = []
  try {
    const linksIn: string[] = []
    const path = await nodeFiles.followTrusted(new Disk().fs, pidFile, pidFile, linksIn)
    for (const holder of linksIn) await (await walk(holder, steps)).close()
    const file = await walk(path, steps)
    try {
      const doubts = steps.map((step) => doubtOf(step, pidFile, step === steps.at(-1) ? 'file' : 'directory'))
      const doubt = doubts.find((text) => text !== undefined)
      if (doubt !== undefined) throw new PidFileError(`${pidFile}: ${doubt}`)
      return { steps, pid: checkPid(pidFile, await firstBytes(file)) }
    } finally {
      await file.close()
    }
  } catch (error) {
    throw unreadable(pidFile, error)
  }
}

function unreadable(pidFile: string, error: unknown): Error {
  if (error instanceof PidFileError) return error
  // Its advice speaks of the state of a target, which a pid file is not: only its problem counts.
  if (error instanceof DurableWriteError) return new PidFileError(`${pidFile}: ${error.problem}`)
  const code = failureCode(error)
  if (code === 'ENOENT') return new PidFileError(`${pidFile}: no such file: is the process running?`, 'missing')
  return new PidFileError(`${pidFile}: could not be opened: ${describeCode(code)}`)
}

/**
 * Opens each part of an absolute path from the descriptor of the one before it, and notes its status: none can be exchanged for another
 * in between. Answers the last one, opened by O_PATH.
 */
async function walk(path: string, steps: Step[]): Promise<FileHandle> {
  let current = await open('/', O_PATH)
  let at = ''
  try {
    steps.push(await stepAt('/', current))
    for (const part of path.split('/').filter((text) => text !== '')) {
      at += `/${part}`
      const next = await open(`/proc/self/fd/${current.fd}/${part}`, O_PATH | O_NOFOLLOW)
      await current.close()
      current = next
      steps.push(await stepAt(at, current))
    }
    return current
  } catch (error) {
    await current.close()
    throw error
  }
}

async function stepAt(path: string, handle: FileHandle): Promise<Step> {
  const [status, { type }] = await Promise.all([handle.stat(), statfs(`/proc/self/fd/${handle.fd}`)])
  const kind = status.isFile() ? 'file' : status.isDirectory() ? 'directory' : 'other'
  const { uid, gid, nlink: links } = status
  return { path, kind, uid, gid, mode: status.mode & 0o7777, links, fileSystem: type }
}

/** The beginning of a file that O_PATH has opened. */
async function firstBytes({ fd }: FileHandle): Promise<string> {
  const handle = await open(`/proc/self/fd/${fd}`, O_RDONLY | O_NONBLOCK | O_NOCTTY)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(looked), 0, looked, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

function checkPid(pidFile: string, text: string): number {
  const problem = (message: string) => new PidFileError(`${pidFile}: ${message}`)
  const digits = /^[ \t]*([0-9]{1,10})[ \t]*(?:\r?\n|$)/.exec(text)?.[1]
  if (digits === undefined) throw problem('does not start with a process ID')
  const pid = Number(digits)
  if (pid <= 1 || pid > highestPid) throw problem(`names process ${pid}, which holdfast never signals`)
  if (pid === process.pid) throw problem('names holdfast itself')
  return pid
}

/** undefined: the kernel, or a seccomp profile, has no descriptors of processes. */
function hold(pidFile: string, pid: number): number | undefined {
  try {
    return openProcess(pid)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOSYS' || code === 'EPERM') return undefined
    if (code === 'ESRCH') throw stale(pidFile, pid)
    if (code === 'EINVAL' || code === 'ENOENT') throw noLeader(pidFile, pid)
    throw new PidFileError(`${pidFile}: could not hold process ${pid}: ${describeCode(failureCode(error))}`)
  }
}

function stale(pidFile: string, pid: number): PidFileError {
  const advice =
    'the pid file is stale, or holdfast runs in a PID namespace of its own (in a pod, set hostPID: true), or may not see it (hidepid)'
  return new PidFileError(`${pidFile}: no such process ${pid}: ${advice}`, 'stale')
}

function noLeader(pidFile: string, pid: number): PidFileError {
  return new PidFileError(`${pidFile}: names thread ${pid}, which leads no process: holdfast does not signal it`)
}

/** The owner of a process (proc_pid_status(5)): /proc/PID itself belongs to root where the process cannot be dumped. */
async function lookAt(pidFile: string, pid: number): Promise<SignalledProcess & { leader: number; command: string }> {
  let text: string
  try {
    text = await readFile(`/proc/${pid}/status`, 'latin1')
  } catch (error) {
    const code = failureCode(error)
    if (code === 'ENOENT' || code === 'ESRCH') throw stale(pidFile, pid)
    throw new PidFileError(`${pidFile}: could not look at process ${pid}: ${describeCode(code)}`)
  }
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(text)?.[1] ?? ''
  const numbers = (name: string) => field(name).split(/\s+/).map(Number)
  const [real = 0, effective = 0, saved = 0] = numbers('Uid')
  const [, gid = 0] = numbers('Gid')
  const uid = real === effective && effective === saved ? effective : 0
  return { pid, uid, gid, leader: Number(field('Tgid')), command: field('Name') }
}
