/*
 * Whether a pid file and the way to it let holdfast signal a process: each part of the path belongs to root, to holdfast's own user or to
 * the user of the process, and no other user may write to it. Else a user could have root signal a process of the user's choice.
 */

import { othersWrite, sticky, writableByAll, writableByGroup, type PathPart } from '../writers.js'

/** A directory on the way to a pid file, or the file itself, as the descriptor showed it through which the way went on. */
export interface Step extends PathPart {
  readonly links: number
  /** f_type of statfs(2). */
  readonly fileSystem: number
}

/** The process that the file names. */
export interface SignalledProcess {
  readonly pid: number
  /** Its user: root where it has the rights of two users. */
  readonly uid: number
  /** Its effective group. */
  readonly gid: number
}

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

/** Why a part of the path is unsafe for every process; undefined: it is safe. */
export function doubtOf(step: Step, pidFile: string, expected: 'file' | 'directory'): string | undefined {
  const { kind, mode, links } = step
  const subject = subjectOf(step, pidFile)
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
export function doubtOfOwners(
  pidFile: string,
  steps: readonly Step[],
  process: SignalledProcess,
  self: number,
): string | undefined {
  for (const step of steps) {
    const { uid, gid, mode, kind } = step
    const subject = subjectOf(step, pidFile)
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
export function isOwn(steps: readonly Step[], self: number): boolean {
  return steps.every((step) => othersWrite(step, self) === undefined)
}

/** Nothing for the file itself, which the message names before. */
function subjectOf({ path }: Step, pidFile: string): string {
  return path === pidFile ? '' : `${path} `
}
