import { effectiveCapabilities, mapThem, unmappedIds, type Capability } from '../capabilities.js'
import type { AgentConfiguration } from '../config/types.js'
import type { Owner } from '../durable/types.js'
import { listed } from '../message-text.js'
import { fault, ok, type CheckResult } from './findings.js'

/** This process's user, and the rights that the kernel gives it. */
export interface ProcessCredentials {
  readonly uid: number
  /** The effective group and the supplementary ones. */
  readonly groups: readonly number[]
  readonly has: (capability: Capability) => boolean
}

/** Effective user, groups and capabilities. */
export function ownCredentials(): ProcessCredentials {
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
  /** Whose files it is for: the capability counts only for IDs that the user namespace maps. */
  readonly of?: Partial<Owner> & Pick<Owner, 'uid'>
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
  identity: ProcessCredentials,
): CheckResult[] {
  const needs = directories.flatMap(({ path, owner }) => [
    ...(owner === undefined ? [] : ownerNeeds(path, owner, identity)),
    ...foundNeeds(path, ownerships, identity),
  ])
  if (needs.length === 0) return [ok('capabilities', 'this configuration needs none')]
  const unmapped = needs.flatMap(({ path, reason, of }) => {
    const ids = of && unmappedIds(of)
    return ids === undefined ? [] : [`${path} ${reason}; the user namespace of holdfast does not map ${ids}`]
  })
  const within = needs.filter(({ of }) => of === undefined || unmappedIds(of) === undefined)
  const names = [...new Set(within.map(({ capability }) => capability))].sort()
  const results = names.map((capability) => {
    const those = within.filter((need) => need.capability === capability)
    const reasons = [...new Set(those.map(({ path, reason }) => `${path} ${reason}`))]
    const why = listed(reasons, 3)
    if (identity.has(capability)) return ok('capabilities', `${capability} is granted: ${why}`)
    return fault('capabilities', `${capability} is missing: ${why}`, addCapability(capability))
  })
  return [...[...new Set(unmapped)].map((found) => fault('capabilities', found, mapThem)), ...results]
}

export function addCapability(capability: Capability): string {
  const name = capability.slice('CAP_'.length)
  return `add it: securityContext.capabilities.add: [${name}] in a pod, AmbientCapabilities=${capability} in a systemd unit`
}

function ownerNeeds(path: string, of: Owner, identity: ProcessCredentials): Need[] {
  const { uid, gid } = of
  const needs: Need[] = []
  const reason = `must belong to ${uid}:${gid}`
  const other = uid !== identity.uid
  if (other || !identity.groups.includes(gid)) needs.push({ capability: 'CAP_CHOWN', reason, path, of })
  if (other) {
    needs.push({ capability: 'CAP_FOWNER', reason, path, of }, { capability: 'CAP_DAC_OVERRIDE', reason, path, of })
  }
  return needs
}

function foundNeeds(path: string, ownerships: readonly Ownership[], identity: ProcessCredentials): Need[] {
  const found = ownerships.find((one) => one.path === path)
  const needs: Need[] = []
  const { target } = found ?? {}
  if (target !== undefined && target.uid !== identity.uid) {
    needs.push({
      capability: 'CAP_DAC_OVERRIDE',
      reason: `currently belongs to user ${target.uid}`,
      path,
      of: { uid: target.uid },
    })
  }
  if (found?.overridesParent === true) {
    const reason = `is in a directory whose mode does not let user ${identity.uid} write`
    needs.push({ capability: 'CAP_DAC_OVERRIDE', reason, path })
  }
  return needs
}
