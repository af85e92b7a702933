import { dirname } from 'node:path'
import type { Attributes, FileSystem } from '../durable/file-system.js'
import type { Identity } from './capabilities.js'
import { listed } from '../listed.js'
import { fault, ok, warn, type CheckResult } from './findings.js'

/** What holds the target, and what holds that: whoever may write there can put something else in its place. */
export async function checkParent(
  fs: FileSystem,
  place: { readonly realParent: string; readonly anchor: string; readonly missing: readonly string[] },
  attributes: Attributes,
  { uid }: Identity,
): Promise<CheckResult> {
  const { anchor, missing, realParent } = place
  const shown = describe(attributes)
  const found =
    missing.length === 0
      ? `${anchor} has ${shown}`
      : `${realParent} does not exist: holdfast will create it in ${anchor}, which has ${shown}`
  const sticky = (attributes.mode & 0o1000) !== 0
  if (writableByWorld(attributes) && !sticky) {
    return fault('parent', `${found}: everybody may write to it, and could replace the target`, `chmod o-w ${anchor}`)
  }
  const open = await openAncestors(fs, anchor)
  if (open.length > 0) {
    return warn(
      'parent',
      `${found}; everybody may write to ${listed(open)} above it, and could move it away`,
      `chmod o-w ${open[0] ?? ''}`,
    )
  }
  if (writableByWorld(attributes)) {
    return warn(
      'parent',
      `${found}: everybody may create files beside the target, such as its lock, and so block publications`,
      'choose a parent that only root may write to',
    )
  }
  if (attributes.uid !== 0 && attributes.uid !== uid) {
    return warn('parent', `${found}: user ${attributes.uid} may replace the target`, `chown ${uid} ${anchor}`)
  }
  if ((attributes.mode & 0o020) !== 0 && attributes.gid !== 0 && !sticky) {
    return warn('parent', `${found}: group ${attributes.gid} may replace the target`, `chmod g-w ${anchor}`)
  }
  return ok('parent', found)
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

function writableByWorld({ mode }: Attributes): boolean {
  return (mode & 0o002) !== 0
}

function describe({ uid, gid, mode }: Attributes): string {
  return `mode 0${mode.toString(8)}, owner ${uid}:${gid}`
}
