import { readFileSync } from 'node:fs'

/** include/uapi/linux/capability.h */
const bits = { CAP_CHOWN: 0, CAP_DAC_OVERRIDE: 1, CAP_FOWNER: 3, CAP_KILL: 5, CAP_SYS_ADMIN: 21 } as const

export type Capability = keyof typeof bits

/** What the kernel lets this process do, now (proc(5), `CapEff`). */
export function effectiveCapabilities(): (capability: Capability) => boolean {
  const status = readFileSync('/proc/self/status', 'latin1')
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`)
  return (capability) => ((effective >> BigInt(bits[capability])) & 1n) === 1n
}

/** What to do about IDs that `unmappedIds` names. */
export const mapThem =
  'map them into this user namespace (/proc/self/uid_map and gid_map; subuid(5)), or run outside of it'

/**
 * Names those of an owner's IDs that the user namespace of this process does not map: no capability reaches their files, and no file can be
 * given to them (user_namespaces(7)). undefined: it maps them.
 */
export function unmappedIds({
  uid,
  gid,
}: {
  readonly uid: number
  readonly gid?: number | undefined
}): string | undefined {
  const names = [
    ...(isMapped('uid', uid) ? [] : [`user ${uid}`]),
    ...(gid === undefined || isMapped('gid', gid) ? [] : [`group ${gid}`]),
  ]
  return names.length === 0 ? undefined : names.join(' and ')
}

/** Without /proc this process cannot tell, and takes an ID as mapped. */
function isMapped(kind: 'uid' | 'gid', id: number): boolean {
  let map: string
  try {
    map = readFileSync(`/proc/self/${kind}_map`, 'latin1')
  } catch {
    return true
  }
  return map.split('\n').some((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
    return id >= first && id < first + count
  })
}
