import { closeSync, openSync, promises as fsp, readFileSync } from 'node:fs'
import { AioContext, AioRefused, disableCoreDumps } from '../../native/index.js'
import { type CheckResult, codeOrMessage, ok, warn } from './findings.js'

/** A barrier of many files works with fewer descriptors, in more pieces. */
const enoughFiles = 256

/** The limits that the kernel and the container set for this process. */
export async function checkProcess(): Promise<CheckResult[]> {
  return [await checkAio(), checkOpenFiles()]
}

/** One fsync of the root directory by AIO, the way of a barrier: a seccomp profile may refuse any of its calls. */
async function checkAio(): Promise<CheckResult> {
  const threads = 'barriers run on threads instead, slower but as durable'
  if (process.env['HOLDFAST_AIO'] === 'off') return ok('AIO', `turned off by HOLDFAST_AIO: ${threads}`)
  const root = openSync('/', 'r')
  try {
    const [outcome] = await AioContext.create().sync([root])
    if (outcome?.syscall === 'io_submit') return refusedResult(outcome.message, threads, 'use Linux 4.18 or later')
    return ok('AIO', 'the kernel runs the fsyncs of a barrier in parallel')
  } catch (error) {
    if (!(error instanceof AioRefused)) return refusedResult(codeOrMessage(error), threads, 'check the kernel log')
    const { message, code } = error.reason
    const advice =
      code === 'EAGAIN'
        ? 'raise fs.aio-max-nr (sysctl)'
        : 'allow io_setup, io_submit and io_getevents in the seccomp profile, as RuntimeDefault does'
    return refusedResult(message, threads, advice)
  } finally {
    closeSync(root)
  }
}

function refusedResult(message: string, threads: string, advice: string): CheckResult {
  return warn('AIO', `refused (${message}): ${threads}`, advice)
}

/** Turns core dumps off, as every command does before it holds private keys: the later checks then see what the agent would see. */
export function checkCoreDump(): CheckResult {
  try {
    disableCoreDumps()
  } catch (error) {
    return warn('core dumps', `could not turn them off: ${codeOrMessage(error)}`, 'set LimitCORE=0 or ulimit -c 0')
  }
  const limit = softLimit('Max core file size')
  // One byte: see native/process.ts.
  if (limit !== undefined && limit <= 1) return ok('core dumps', 'off: no private key can end up in a core file')
  return warn(
    'core dumps',
    `on (limit: ${limit ?? 'unlimited'} bytes): a core file may hold private keys`,
    'set LimitCORE=0 or ulimit -c 0',
  )
}

function checkOpenFiles(): CheckResult {
  const limit = softLimit('Max open files') ?? Infinity
  if (limit >= enoughFiles) return ok('open files', `up to ${limit}`)
  return warn(
    'open files',
    `only up to ${limit}: a directory with more files needs several barriers`,
    `raise the limit to at least ${enoughFiles} (LimitNOFILE=, ulimit -n)`,
  )
}

/** undefined: unlimited, or unknown. */
function softLimit(name: string): number | undefined {
  const text = readFileSync('/proc/self/limits', 'latin1')
  const value = new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(text)?.[1]
  return value === undefined || value === 'unlimited' ? undefined : Number(value)
}

/**
 * First releases with the fix of CVE-2025-71183, by branch: on btrfs, an exchange of directories, then fsync, then the replay of
 * the log after a power cut could delete one of them (fs/btrfs/tree-log.c).
 */
const fixedIn: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [6, 1, 161],
  [6, 6, 121],
  [6, 12, 66],
  [6, 18, 6],
]

const fixedSince = [6, 19] as const

/** Judges the kernel's release for targets on btrfs. Distributions carry fixes into older releases, so it only warns. */
export function checkKernel(release: string, btrfsTargets: readonly string[]): CheckResult {
  if (btrfsTargets.length === 0) return ok('kernel', `Linux ${release}`)
  const [, major, minor, patch] = (/^(\d+)\.(\d+)(?:\.(\d+))?/.exec(release) ?? []).map(Number)
  const about = 'CVE-2025-71183: a power cut may make btrfs delete an exchanged directory'
  if (major === undefined || minor === undefined) {
    return warn(
      'kernel',
      `cannot tell whether the release "${release}" has the fix for ${about}`,
      'ask the vendor of the kernel',
    )
  }
  if (isFixed(major, minor, patch || 0)) return ok('kernel', `Linux ${release} has the fix for CVE-2025-71183`)
  return warn(
    'kernel',
    `Linux ${release} was released without the fix for ${about}`,
    `use Linux 6.1.161, 6.6.121, 6.12.66, 6.18.6, 6.19 or later of these branches, check that your distribution backported the fix, or put the targets on ext4 or xfs`,
  )
}

function isFixed(major: number, minor: number, patch: number): boolean {
  if (major !== fixedSince[0] || minor >= fixedSince[1]) return major >= fixedSince[0]
  return fixedIn.some(([, branch, first]) => branch === minor && patch >= first)
}

/**
 * Whether this is certainly a container's own PID namespace: process 1 is this program, or another one of the same executable, or
 * the pod's pause process. Otherwise it stays uncertain.
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
