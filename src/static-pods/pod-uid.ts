import { randomUUID } from 'node:crypto'

/**
 * Whether this kubelet needs a new metadata.uid for each installation, to tell a changed static pod from the old one:
 * those before 1.23.0 do; later ones make it from the content themselves, and a version that nobody can read is taken for
 * a later one. Pre-releases of 1.23.0 come before it (semver.org, 11).
 */
export function needsOwnUid(kubeletVersion: string | undefined): boolean {
  const [, major, minor, patch, rest = ''] = /^v?(\d+)\.(\d+)\.(\d+)([-+].*)?$/.exec(kubeletVersion ?? '') ?? []
  if (major === undefined || minor === undefined) return false
  if (Number(major) !== 1) return Number(major) < 1
  if (Number(minor) !== 23) return Number(minor) < 23
  return patch === '0' && rest.startsWith('-')
}

export function newUid(): string {
  return randomUUID()
}
