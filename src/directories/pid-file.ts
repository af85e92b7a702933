import { closeSync, constants } from 'node:fs'
import { open, readFile, statfs, type FileHandle } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { DurableCalls, nodeFiles } from '../durable/index.js'
import { DurableWriteError } from '../durable/errors.js'
import { openProcess, signalProcess } from '../../native/index.js'
import { codeOf, describeCode } from '../errors.js'
import { failureCode } from './hook-error.js'
import { othersWrite, sticky, writableByAll, writableByGroup, type PathPart } from '../writers.js'

/*
 * Whether a pid file and the way to it let holdfast signal a process: each part of the path belongs to root, to holdfast's own user or to
 * the user of the process, and no other user may write to it. Else a user could have root signal a process of the user's choice.
 */

/**
 * File systems whose content the kernel makes: any process may fill a file of root's there, as it may fill /proc/PID/comm with any name.
 * Source: Linux, include/uapi/linux/magic.h.
 */
const made = new Map([
  [0x9fa0, 'procfs'],
  [0x62656572, 'sysfs'],
  [0x27e0eb, 'a control group'],
  [0x63677270, 'a control group'],
  [0x64626720, 'debugfs'],
  [0x74726163, 'tracefs'],
  [0x73636673, 'securityfs'],
  [0x62656570, 'configfs'],
  [0xcafe4a11, 'bpffs'],
  [0x6165676c, 'pstore'],
  [0x1cd1, 'devpts'],
  [0x19800202, 'mqueue'],
  [0x6e736673, 'nsfs'],
  [0xf97cff8c, 'selinuxfs'],
  [0x43415d53, 'smackfs'],
  [0x5a3c69f0, 'apparmorfs'],
  [0xde5e81e4, 'efivarfs'],
  [0x42494e4d, 'binfmt_misc'],
  [0x7655821, 'resctrl'],
])

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
    if (held === undefined && !isOwnPath(steps, self)) {
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
    const path = await nodeFiles.followTrusted(new DurableCalls().fs, pidFile, pidFile, linksIn)
    for (const holder of linksIn) await (await openSteps(holder, steps)).close()
    const file = await openSteps(path, steps)
    try {
      const doubts = steps.map((step) => stepDoubt(step, pidFile, step === steps.at(-1) ? 'file' : 'directory'))
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
async function openSteps(path: string, steps: Step[]): Promise<FileHandle> {
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

/** A directory on the way to a pid file, or the file itself, as the descriptor showed it through which the way went on. */
interface Step extends PathPart {
  readonly links: number
  /** f_type of statfs(2). */
  readonly fileSystem: number
}

/** The process that the file names. */
interface SignalledProcess {
  readonly pid: number
  /** Its user: root where it has the rights of two users. */
  readonly uid: number
  /** Its effective group. */
  readonly gid: number
}

/** Why a part of the path is unsafe for every process; undefined: it is safe. */
function stepDoubt(step: Step, pidFile: string, expected: 'file' | 'directory'): string | undefined {
  const { kind, mode, links } = step
  const subject = stepName(step, pidFile)
  const fileSystem = made.get(step.fileSystem)
  if (fileSystem !== undefined) return `${subject}lies on ${fileSystem}, where other users choose what files hold`
  if (kind !== expected) return `${subject}is ${expected === 'file' ? 'not a regular file' : 'no directory'}`
  if (kind === 'directory') {
    const open = (mode & (writableByAll | sticky)) === writableByAll
    return open ? `everybody may write to ${step.path}, which is not sticky` : undefined
  }
  if ((mode & writableByAll) !== 0) return `${subject}is writable by everybody: holdfast does not trust it`
  // A user without the right to write to a file may still give it another name (link(2), where fs.protected_hardlinks is 0).
  return links > 1 ? `${subject}has ${links} names (hard links): holdfast does not trust it` : undefined
}

/** Why holdfast does not signal this process by this way; undefined: it may. */
function doubtOfOwners(
  pidFile: string,
  steps: readonly Step[],
  process: SignalledProcess,
  self: number,
): string | undefined {
  for (const step of steps) {
    const { uid, gid, mode, kind } = step
    const subject = stepName(step, pidFile)
    if (uid !== 0 && uid !== self && uid !== process.uid) {
      return `${subject}belongs to user ${uid}, but process ${process.pid} to user ${process.uid}: holdfast does not signal it`
    }
    // The group of a user's process is the user's own choice: Debian's /run/postgresql has mode 2775. Root chooses no group.
    const own = process.uid !== 0 && gid === process.gid
    const safe = kind === 'directory' && (mode & sticky) !== 0
    if ((mode & writableByGroup) !== 0 && !safe && !own) {
      return `${subject}is writable by its group ${gid}, which is not that of process ${process.pid}: holdfast does not signal it`
    }
  }
  return undefined
}

/** Whether the whole way belongs to root and to holdfast's own user, and to them alone. */
function isOwnPath(steps: readonly Step[], self: number): boolean {
  return steps.every((step) => othersWrite(step, self) === undefined)
}

/** Nothing for the file itself, which the message names before. */
function stepName({ path }: Step, pidFile: string): string {
  return path === pidFile ? '' : `${path} `
}
