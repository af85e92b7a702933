import * as native from '../../../native/index.js'
import type { Descriptor, ExtendedAttributes } from '../file-system.js'
import { accessAttribute, isKept, modeOf } from '../path/index.js'
import { atPath } from './calls.js'
import { pathOf } from './open-path.js'

/* Extended attributes of an open file or directory. */

const labelAttribute = 'security.selinux'

export function label(descriptor: Descriptor): Promise<Uint8Array | undefined> {
  return atPath(() => pathOf(descriptor), native.getAttribute(descriptor, labelAttribute))
}

export function setLabel(descriptor: Descriptor, value: Uint8Array): Promise<void> {
  return atPath(() => pathOf(descriptor), native.setAttribute(descriptor, labelAttribute, value))
}

/** The mode of the entry at this path, whose st_mode the caller has: its group bits are an ACL's mask, where there is one. */
export async function modeAt(path: string, mode: number): Promise<number> {
  const list = await atPath(() => path, native.getAttributeAt(path, accessAttribute))
  return list === undefined ? mode : modeOf(mode, new Map([[accessAttribute, list]]))
}

export function extendedAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined> {
  return atPath(() => pathOf(descriptor), keptAttributes(descriptor))
}

/** undefined: takes it away. */
export function setExtendedAttribute(
  descriptor: Descriptor,
  name: string,
  value: Uint8Array | undefined,
): Promise<void> {
  const setting =
    value === undefined ? native.removeAttribute(descriptor, name) : native.setAttribute(descriptor, name, value)
  return atPath(() => pathOf(descriptor), setting)
}

/** Mostly there are none: one call finds that out. */
async function keptAttributes(descriptor: Descriptor): Promise<ExtendedAttributes | undefined> {
  const names = (await native.listAttributes(descriptor)).filter(isKept)
  if (names.length === 0) return undefined
  const found = new Map<string, Uint8Array>()
  for (const name of names) {
    const value = await native.getAttribute(descriptor, name)
    if (value) found.set(name, value)
  }
  return found
}
