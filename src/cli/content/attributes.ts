import { lstatSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
import { formatMode } from '../../config/mode.js'
import type { Owner, ReplaceResult } from '../../durable/types.js'
import type { Log } from '../../log.js'
import { directoriesAbove } from '../../relative-path.js'

/* Mode and owner of the replaced target: a command reports their change. */

interface ModeAndOwner {
  readonly kind: 'file' | 'directory'
  readonly mode: number
  readonly owner: Owner
}

/** The present attributes, by the path in the target; `''` is the target itself. */
type FoundAttributes = ReadonlyMap<string, ModeAndOwner>

function fileStatus(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}

async function modeAndOwnerAt(path: string): Promise<ModeAndOwner | undefined> {
  // The publication refuses a path that this process cannot look at.
  const status = fileStatus(path)
  const kind = status?.isFile() ? 'file' : status?.isDirectory() ? 'directory' : undefined
  if (status === undefined || kind === undefined) return undefined
  const { modeAt } = await import('../../durable/publishing.js')
  // The publication refuses an unreadable form, here, too.
  const mode = await modeAt(path, status.mode & 0o7777).catch(() => status.mode & 0o7777)
  return { kind, mode, owner: { uid: status.uid, gid: status.gid } }
}

/** Looks at the target and at those of `paths`, relative to it, that it has already. */
export async function findAttributes(target: string, paths: readonly string[] = []): Promise<FoundAttributes> {
  const found = new Map<string, ModeAndOwner>()
  const look = async (path: string): Promise<void> => {
    const attributes = await modeAndOwnerAt(join(target, path))
    if (attributes !== undefined) found.set(path, attributes)
  }
  await look('')
  const directories = new Set(paths.flatMap(directoriesAbove))
  // Parents first, so that no look goes through a symbolic link.
  const all = [...directories, ...paths.filter((path) => !directories.has(path))]
  for (const path of all) if (found.get(parentPath(path))?.kind === 'directory') await look(path)
  return found
}

function parentPath(path: string): string {
  const parent = dirname(path)
  return parent === '.' ? '' : parent
}

/** The attributes of the publication; undefined: the user named them, and knows. */
interface MadeAttributes {
  readonly mode: number | undefined
  /** Of a file in a directory. */
  readonly fileMode: (path: string) => number | undefined
  readonly owner: Owner | undefined
}

/** Warns of each mode and owner that changed, or in a dry run would, without the user's word, where a publication replaces something. */
export function warnOfChanges(
  log: Log,
  { outcome, path, ...result }: Pick<ReplaceResult, 'outcome' | 'path'>,
  found: FoundAttributes,
  made: MadeAttributes,
): void {
  const verb = 'changes' in result ? 'would change' : 'changed'
  const changes = outcome === 'replaced' ? describeChanges(path, found, made, verb) : undefined
  if (changes !== undefined) log.warn({ path }, changes)
}

/** One sentence that names old and new, of each mode and owner that changed without the user's word; undefined where none has changed. */
function describeChanges(
  target: string,
  found: FoundAttributes,
  made: MadeAttributes,
  verb: 'changed' | 'would change',
): string | undefined {
  const changes = [...found].flatMap(([path, { kind, mode, owner }]) => {
    const newMode = path !== '' && kind === 'file' ? made.fileMode(path) : made.mode
    const parts = []
    if (newMode !== undefined && newMode !== mode)
      parts.push(`mode ${verb} from ${formatMode(mode)} to ${formatMode(newMode)}`)
    if (made.owner !== undefined && (made.owner.uid !== owner.uid || made.owner.gid !== owner.gid))
      parts.push(`owner ${verb} from ${show(owner)} to ${show(made.owner)}`)
    return parts.length === 0 ? [] : [{ path, text: parts.join(', ') }]
  })
  const own = changes.find(({ path }) => path === '')
  const inside = changes.filter((change) => change !== own)
  const [first] = inside
  if (own === undefined && first === undefined) return undefined
  const count = inside.length === 1 ? '1 path' : `${inside.length} paths`
  const sentences = [own?.text, first && `${count} in it ${verb}, the first is ${first.path}: ${first.text}`]
  return `${target}: ${sentences.filter((sentence) => sentence !== undefined).join('; ')} (--keep-attributes keeps mode and owner)`
}

function show({ uid, gid }: Owner): string {
  return `${uid}:${gid}`
}

/** The owner of a publication that names none: this process's effective user and group. */
export function ownOwner(): Owner {
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
}
