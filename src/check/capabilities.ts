import { effectiveCapabilities, type Capability } from '../capabilities.js'
import type { AgentConfiguration, Owner } from '../config/types.js'
import { listed } from '../listed.js'
import { fault, ok, type CheckResult } from './findings.js'

/** This process's user, and the rights that the kernel gives it. */
export interface Identity {
  readonly uid: number
  /** The effective group and the supplementary ones. */
  readonly groups: readonly number[]
  readonly has: (capability: Capability) => boolean
}

/** Effective user, groups and capabilities. */
export function ownIdentity(): Identity {
  return {
    uid: process.geteuid?.() ?? 0,
    groups: [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])],
    has: effectiveCapabilities(),
  }
}

/** A capability that this configuration needs, and why. */
interface Need {
  readonly capability: Capability
  readonly reason: string
  readonly path: string
}

/** The owners that the check found at a target. */
export interface Ownership {
  readonly path: string
  /** Of the target as it is; undefined where there is none. */
  readonly target: { readonly uid: number } | undefined
  /** The parent can be written to only past its permission bits. */
  readonly overridesParent: boolean
}

/**
 * One result for each capability that the configuration needs: files for another owner are given away (CHOWN), then get their
 * mode (FOWNER), and the next publication reads and removes them (DAC_OVERRIDE). The hooks' results name what signals need.
 */
export function checkCapabilities(
  directories: AgentConfiguration['directories'],
  ownerships: readonly Ownership[],
  identity: Identity,
): CheckResult[] {
  const needs = directories.flatMap(({ path, owner }) => [
    ...(owner === undefined ? [] : ownerNeeds(path, owner, identity)),
    ...foundNeeds(path, ownerships, identity),
  ])
  const names = [...new Set(needs.map(({ capability }) => capability))].sort()
  if (names.length === 0) return [ok('capabilities', 'this configuration needs none')]
  return names.map((capability) => {
    const those = needs.filter((need) => need.capability === capability)
    const reasons = [...new Set(those.map(({ path, reason }) => `${path} ${reason}`))]
    const why = listed(reasons, 3)
    if (identity.has(capability)) return ok('capabilities', `${capability} is granted: ${why}`)
    return fault('capabilities', `${capability} is missing: ${why}`, addCapability(capability))
  })
}

export function addCapability(capability: Capability): string {
  const name = capability.slice('CAP_'.length)
  return `add it: securityContext.capabilities.add: [${name}] in a pod, AmbientCapabilities=${capability} in a systemd unit`
}

function ownerNeeds(path: string, { uid, gid }: Owner, identity: Identity): Need[] {
  const needs: Need[] = []
  const reason = `must belong to ${uid}:${gid}`
  const other = uid !== identity.uid
  if (other || !identity.groups.includes(gid)) needs.push({ capability: 'CAP_CHOWN', reason, path })
  if (other) {
    needs.push({ capability: 'CAP_FOWNER', reason, path }, { capability: 'CAP_DAC_OVERRIDE', reason, path })
  }
  return needs
}

function foundNeeds(path: string, ownerships: readonly Ownership[], identity: Identity): Need[] {
  const found = ownerships.find((one) => one.path === path)
  const needs: Need[] = []
  const { target } = found ?? {}
  if (target !== undefined && target.uid !== identity.uid) {
    needs.push({ capability: 'CAP_DAC_OVERRIDE', reason: `currently belongs to user ${target.uid}`, path })
  }
  if (found?.overridesParent === true) {
    const reason = `is in a directory whose mode does not let user ${identity.uid} write`
    needs.push({ capability: 'CAP_DAC_OVERRIDE', reason, path })
  }
  return needs
}
