import { ok, warn, type Verdict } from './findings.js'

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

/** What the kernel's release says, for targets on btrfs. Distributions carry fixes into older releases, so it only warns. */
export function kernelVerdict(release: string, btrfsTargets: readonly string[]): Verdict {
  if (btrfsTargets.length === 0) return ok('kernel', `Linux ${release}`)
  const [, major, minor, patch] = (/^(\d+)\.(\d+)(?:\.(\d+))?/.exec(release) ?? []).map(Number)
  const about = 'CVE-2025-71183: after a power cut, btrfs may have deleted a directory that was exchanged'
  if (major === undefined || minor === undefined) {
    return warn('kernel', `the release "${release}" cannot be read: ${about}`, 'see whether it has the fix')
  }
  if (isFixed(major, minor, patch || 0)) return ok('kernel', `Linux ${release} has the fix of CVE-2025-71183`)
  return warn(
    'kernel',
    `Linux ${release} is of a release without the fix of ${about}`,
    `use 6.1.161, 6.6.121, 6.12.66, 6.18.6, 6.19 or later, or make sure that the distribution has the fix; or put the targets on ext4 or xfs`,
  )
}

function isFixed(major: number, minor: number, patch: number): boolean {
  if (major !== fixedSince[0] || minor >= fixedSince[1]) return major >= fixedSince[0]
  return fixedIn.some(([, branch, first]) => branch === minor && patch >= first)
}
