import { closeSync, openSync, promises, readFileSync } from 'node:fs'
import { UrgentEvents } from '../native/index.js'
import { clock } from './clock.js'

/** A line of /proc/self/mountinfo (proc(5)), as far as it matters here. */
export interface MountDetails {
  readonly id: number
  /** Which directory of the file system is mounted: `/`, a subvolume, or the source of a bind mount. */
  readonly root: string
  readonly mountPoint: string
  /** `MAJOR:MINOR`; a major of 0 is no block device's own. */
  readonly device: string
  readonly type: string
  /** `/dev/sda1`, `overlay`, … */
  readonly source: string
  /** Of the mount and of the file system. */
  readonly options: readonly string[]
  /** Mounts made elsewhere below it appear here: it is shared, or a slave (`mountPropagation: HostToContainer`). */
  readonly receives: boolean
}

/** The mount with this ID; undefined where it has gone. procfs never waits for a disk. */
export function mountDetails(id: number): MountDetails | undefined {
  const line = nonEmptyLines(textOf('self')).find((text) => text.startsWith(`${id} `))
  return line === undefined ? undefined : parseMount(line)
}

/** All mounts of this process, in the order in which they were made. */
export function mounts(): readonly MountDetails[] {
  return tableOf(ownText())
}

/** Milliseconds for which one reading serves all targets of a batch: they come to the same step at once, and the table can be long. */
const shared = 1
let own: { readonly text: string; readonly at: number } | undefined

function ownText(): string {
  const at = clock.now()
  if (own === undefined || at - own.at >= shared) own = { text: textOf('self'), at }
  return own.text
}

/** The publisher calls it after a rename or a barrier, so that the next step sees the mounts of that moment. */
export function forgetMounts(): void {
  own = undefined
}

let read: { readonly text: string; readonly table: readonly MountDetails[] } | undefined

/** A node has hundreds of mounts, each publication asks for them, and they seldom change. @internal */
export function tableOf(text: string): readonly MountDetails[] {
  if (read?.text !== text) read = { text, table: nonEmptyLines(text).map(parseMount) }
  return read.table
}

/** The mount that a path is on, by mountinfo's text alone: a stat of a file system that hangs would hang, too. Follows no link. */
export function mountAbove(path: string, table: readonly MountDetails[] = mounts()): MountDetails | undefined {
  let found: MountDetails | undefined
  for (const mount of table) {
    const { mountPoint } = mount
    const holds = mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`)
    // Of two mounts at one point, the later one covers the earlier.
    if (holds && mountPoint.length >= (found?.mountPoint.length ?? 0)) found = mount
  }
  return found
}

/** Mount points below a path, without `/` at its end. */
export function mountPointsBelow(path: string, table: readonly MountDetails[] = mounts()): string[] {
  const prefix = path === '/' ? path : `${path}/`
  return table
    .map(({ mountPoint }) => mountPoint)
    .filter((mountPoint) => mountPoint.startsWith(prefix) && mountPoint !== path)
}

export function rootMount(): MountDetails | undefined {
  return mounts().findLast(({ mountPoint }) => mountPoint === '/')
}

/** The lines of another process's mounts, as it sees them. @throws what the kernel answers, ENOENT or ESRCH where it has gone */
export async function mountLinesOf(pid: number): Promise<string[]> {
  return nonEmptyLines(await promises.readFile(`/proc/${pid}/mountinfo`, 'utf8'))
}

/** Calls back after each change of the mounts of this process, until it is closed: no timer looks. @throws what the kernel answers */
export function watchMounts(changed: () => Promise<void>): { close(): void } {
  const table = openSync('/proc/self/mountinfo', 'r')
  let events: UrgentEvents
  try {
    events = new UrgentEvents(table)
  } catch (error) {
    closeSync(table)
    throw error
  }
  const follow = async (): Promise<void> => {
    try {
      while (await events.next()) await changed()
    } finally {
      closeSync(table)
    }
  }
  void follow()
  return events
}

function textOf(process: string): string {
  return readFileSync(`/proc/${process}/mountinfo`, 'utf8')
}

function nonEmptyLines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}

export function parseMount(line: string): MountDetails {
  // The first separator: a mount's source may be called `-`, too. Before it, no field can be.
  const separator = line.indexOf(' - ')
  const [head, tail] = [line.slice(0, separator), line.slice(separator + 3)]
  const [id = '', , device = '', root = '', mountPoint = '', options = '', ...optional] = head.split(' ')
  const [type = '', source = '', superOptions = ''] = tail.split(' ')
  return {
    id: Number(id),
    root: unescaped(root),
    mountPoint: unescaped(mountPoint),
    device,
    type: unescaped(type),
    source: unescaped(source),
    options: [...options.split(','), ...superOptions.split(',')],
    receives: optional.some((field) => field.startsWith('shared:') || field.startsWith('master:')),
  }
}

/** Space, tab, newline and backslash stand there in octal (fs/proc_namespace.c). */
export function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}
