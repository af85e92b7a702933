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
