/**
 * What a name beside a target is. Judges and tests ask here, and not src/durable/path/names.ts: a test that asks the code under test proves
 * nothing.
 */
import { createHash } from 'node:crypto'
import { posix } from 'node:path'

/** `foreign`: another program's files that stood under a staging name. `other`: it only begins like a name of holdfast. */
export type Kind = 'lock' | 'record' | 'staging' | 'generation' | 'foreign' | 'other'

export interface NameBeside {
  readonly name: string
  readonly kind: Kind
  /** What all names of its target begin with. */
  readonly prefix: string | undefined
  /** Of a record or an earlier content. */
  readonly sequence: number | undefined
}

const form =
  /^(\.holdfast-[0-9a-f]{16})(?:(\.lock)|\.([1-9][0-9]{0,14})|\.(0|[1-9][0-9]{0,14})-[0-9a-f]{16}|(-[0-9a-f]{16})|(-[0-9a-f]{16}\.foreign)|[-.].*)$/

export function nameBeside(name: string): NameBeside {
  const [, prefix, ...parts]: (string | undefined)[] = form.exec(name) ?? []
  const kinds = ['lock', 'record', 'generation', 'staging', 'foreign'] as const
  const at = parts.findIndex((part) => part !== undefined)
  const kind = kinds[at] ?? 'other'
  return { name, kind, prefix, sequence: kind === 'record' || kind === 'generation' ? Number(parts[at]) : undefined }
}

/** For a filter. */
export function isKind(...kinds: readonly Kind[]): (name: string) => boolean {
  return (name) => kinds.includes(nameBeside(name).kind)
}

/** What every name that holdfast keeps beside this target begins with, in the target's own parent. */
export function ownPrefix(target: string): string {
  const id = createHash('sha256').update(posix.basename(target)).digest('hex').slice(0, 16)
  return posix.join(posix.dirname(target), `.holdfast-${id}`)
}

/** The names of a directory that belong to this target, or begin as if they did. */
export function namesOf(target: string, names: Iterable<string>): NameBeside[] {
  const prefix = ownPrefix(posix.basename(target))
  return [...names].filter((name) => name.startsWith(prefix)).map(nameBeside)
}
