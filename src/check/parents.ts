import { dirname } from 'node:path'
import { fitness } from '../durable/index.js'
import type { Attributes, FileSystem } from '../durable/file-system.js'
import type { Place } from '../durable/path/index.js'
import type { Owner } from '../durable/types.js'
import type { Identity } from './capabilities.js'
import { listed } from '../listed.js'
import { fault, ok, warn, type CheckResult } from './findings.js'

/** The directories that hold the target, up to the root: a user who may write to one can put something else in its place. */
export async function checkParent(
  fs: FileSystem,
  place: Pick<Place, 'realParent' | 'missing'> & {
    readonly anchor: string
    readonly entry: Awaited<ReturnType<typeof fitness.parentEntry>>
  },
  { uid, groups: [gid = 0] }: Identity,
  owner: Owner | undefined,
): Promise<CheckResult> {
  const { anchor, missing, realParent, entry } = place
  const shown = describe(entry)
  const found =
    missing.length === 0
      ? `${anchor} has ${shown}`
      : `${realParent} does not exist: holdfast will create it in ${anchor}, which has ${shown}`
  const writer = fitness.writerOf(anchor, entry, { self: { uid, gid }, owner, holds: true })
  const by = writer && `${found}: ${writer.problem}, and so replace the target`
  if (by !== undefined && writer?.isEverybody) return fault('parent', by, writer.advice)
  const open = await openAncestors(fs, anchor)
  if (open.length > 0) {
    return warn(
      'parent',
      `${found}; everybody may write to ${listed(open)} above it, and could move it away`,
      `chmod o-w ${open[0] ?? ''}`,
    )
  }
  if (writableByWorld(entry)) {
    return warn(
      'parent',
      `${found}: everybody may create files beside the target, such as its lock, and so block publications`,
      'choose a parent that only root may write to',
    )
  }
  return by === undefined ? ok('parent', found) : warn('parent', by, writer?.advice ?? '')
}

/** Whether it can be written to only past its permission bits: with CAP_DAC_OVERRIDE. */
export function isPastItsMode(
  { uid, gid, mode }: Pick<Attributes, 'uid' | 'gid' | 'mode'>,
  identity: Identity,
): boolean {
  const shift = uid === identity.uid ? 6 : identity.groups.includes(gid) ? 3 : 0
  return ((mode >> shift) & 0o3) !== 0o3
}

async function openAncestors(fs: FileSystem, path: string): Promise<string[]> {
  const open: string[] = []
  for (let above = path; above !== '/';) {
    above = dirname(above)
    const entry = await fs.lookPath(above)
    if (entry !== undefined && writableByWorld(entry) && (entry.mode & 0o1000) === 0) open.push(above)
  }
  return open
}

function writableByWorld({ mode }: Pick<Attributes, 'mode'>): boolean {
  return (mode & 0o002) !== 0
}

function describe({ uid, gid, mode }: Pick<Attributes, 'uid' | 'gid' | 'mode'>): string {
  return `mode 0${mode.toString(8)}, owner ${uid}:${gid}`
}
