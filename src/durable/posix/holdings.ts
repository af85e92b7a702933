import { promises as fsp, opendirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { endsWithin } from '../../deadline.js'
import { codeOf } from '../../errors.js'
import { pathWithin } from '../path/index.js'
import { type MountDetails, mountLinesOf, parseMount, unescaped } from '../../mountinfo.js'

/*
 * What the processes of this machine have open, mapped or mounted, as procfs tells it (proc(5)). It opens and stats nothing through
 * /proc/PID/fd: that would wait for the disk behind it. The links' texts, fdinfo and mountinfo are in memory.
 *
 * Any user can have hundreds of thousands of descriptors, mappings and mounts. So the event loop has its turn after some of them, and the scan
 * has an end.
 *
 * Of a process with several threads, the first one counts. A mount namespace that no process is in has no mountinfo. A descriptor that
 * passes from a process which the scan has yet to reach, to one that it has left behind, stays unseen.
 */

export type HoldingKind = 'fd' | 'cwd' | 'root' | 'map' | 'mount'

/** A path in its file system: the same text in every mount namespace. */
export interface Location {
  /** `MAJOR:MINOR`, as mountinfo has it. */
  readonly device: string
  readonly within: string
  /** Its name, or that of a directory above it, has been removed. */
  readonly deleted: boolean
}

export interface Holding {
  readonly pid: number
  readonly what: HoldingKind
  /** As the process sees it; for people. */
  readonly path: string
  /** Where it can be: several where mounts cover one another. */
  readonly locations: readonly Location[]
  /** Where the kernel tells it. */
  readonly inode?: string
  /** Of `inode`; undefined where the mount is in no table, as after `umount --lazy`. */
  readonly device?: string
  /** Of a file that is open: its number. */
  readonly descriptor?: string
  /** The holder can change the file's content by it; default false. */
  readonly writes?: boolean
}

/** What the scan could not see. A caller that asks whether something is in use must then assume so. */
export interface Unseen {
  /** Processes that this one may not look at, by errno. */
  readonly denied: readonly { readonly pid: number; readonly code: string }[]
  /** Only the processes of a PID namespace other than the machine's first are seen. */
  readonly otherPidNamespace: boolean
  /** procfs does not show the processes of other users (`hidepid`). */
  readonly hidden: boolean
  /** A process whose mappings the kernel did not tell in time. */
  readonly silent?: number
  /** Processes have more open, mapped and mounted than one scan looks at. */
  readonly more?: true
}

/** Milliseconds for one process's mappings: their lock can be held by a thread that waits for a disk. */
const patience = 2_000

/** Looks at those that began during the one before, after which they count as not looked at: a fork bomb has no last one. */
const mostRounds = 100

/** Steps of a scan: a descriptor, a line of a table. Some microseconds each; a node with 500 pods takes about a fifth of them. */
const mostSteps = 2 ** 19

/** Steps between two turns of the event loop. */
const slice = 256

/** Mounts that a path is compared with in one step. */
const mountsInStep = 64

/** Holdings in memory. */
const mostHoldings = 2 ** 14

/** Processes whose mappings a thread of libuv still waits for: the scan asks none of them again meanwhile. */
const silentPids = new Set<number>()

const firstPidNamespace = 'pid:[4026531836]'

/** A process that ends during the scan answers so, and so does a descriptor that it closes. */
export function hasGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes(codeOf(error) ?? '')
}

const deletedSuffix = ' (deleted)'
const deletedRoot = '//deleted'

/** The process's name (comm); empty where it has ended. Not cmdline: the kernel reads it from the process's memory, and can wait there for a disk. */
export function commandOf(pid: number): string {
  return processText(pid, 'comm').trim()
}

/** A file of procfs that the kernel writes at once; empty where the process has ended. */
export function processText(pid: number, file: 'comm' | 'cgroup'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** What other processes hold on these file systems, `MAJOR:MINOR` of each, as far as the caller is interested. */
export async function holdingsOn(
  devices: ReadonlySet<string>,
  isOfInterest: (holding: Holding) => boolean = () => true,
): Promise<{ readonly holdings: Holding[]; readonly unseen: Unseen }> {
  const scan = new Scan(devices, isOfInterest)
  // This process holds nothing that counts, but where all others in its namespace have roots of their own, it shows the mounts.
  await scan.mountsOf(process.pid, false)
  const pids = new Set([process.pid])
  // A user can fork and end before its turn: so each round looks at the processes that began during the last one.
  let others = begun(pids)
  const hidden = !pids.has(1)
  for (let round = 1; others.length > 0 && round <= mostRounds; round++) {
    // A process with another root sees only the mounts below that: the others in its namespace show the rest.
    const seen: SeenNamespace[] = []
    for (const pid of others) {
      const mounts = await scan.mountsOf(pid)
      if (mounts) seen.push(mounts)
    }
    for (const one of seen) await scan.lookAt(one)
    others = begun(pids)
  }
  return {
    holdings: scan.holdings,
    unseen: {
      denied: [...scan.denied, ...others.map((pid) => ({ pid, code: 'EAGAIN' }))],
      otherPidNamespace: readlinkSync('/proc/self/ns/pid') !== firstPidNamespace,
      hidden,
      ...(scan.silent !== undefined && { silent: scan.silent }),
      ...(scan.isCut && { more: true as const }),
    },
  }
}

/** The processes that are not among these yet; they are added. */
function begun(known: Set<number>): number[] {
  const pids = readdirSync('/proc').filter((name) => /^[1-9][0-9]*$/.test(name))
  const unseen = pids.map(Number).filter((pid) => !known.has(pid))
  for (const pid of unseen) known.add(pid)
  return unseen
}

/** The mounts of one mount namespace, by ID; their mount points as seen from its top. */
type Table = Map<number, MountDetails>

interface SeenNamespace {
  readonly pid: number
  readonly root: string
  readonly table: Table
}

class Scan {
  readonly holdings: Holding[] = []
  readonly denied: { pid: number; code: string }[] = []
  silent: number | undefined
  /** It has come to its bound. */
  isCut = false
  #steps = 0
  readonly #tables = new Map<string, Table>()
  /** Namespaces and roots whose mountinfo has been read. */
  readonly #read = new Set<string>()
  /** IDs of mounts that are among the holdings, or on other file systems. */
  readonly #counted = new Set<number>()

  constructor(
    private readonly devices: ReadonlySet<string>,
    private readonly isOfInterest: (holding: Holding) => boolean,
  ) {}

  /** Whether the scan goes on behind so many steps. */
  async #goesOn(steps: number): Promise<boolean> {
    const before = Math.floor(this.#steps / slice)
    this.#steps += steps
    if (this.#steps > mostSteps) this.isCut = true
    if (Math.floor(this.#steps / slice) > before) await new Promise(setImmediate)
    return !this.isCut
  }

  /** Its mounts; none where the process has gone, or this one may not look at it. */
  mountsOf(pid: number, counts = true): Promise<SeenNamespace | undefined> {
    return this.#unlessGone(pid, async () => {
      const root = readlinkSync(`/proc/${pid}/root`)
      const namespace = readlinkSync(`/proc/${pid}/ns/mnt`)
      const table: Table = this.#tables.get(namespace) ?? new Map<number, MountDetails>()
      this.#tables.set(namespace, table)
      if (!this.#read.has(`${namespace} ${root}`)) {
        const above = root === '/' ? '' : root
        for (const line of await mountLinesOf(pid)) {
          if (!(await this.#goesOn(1))) break
          const mount = parseMount(line)
          const mountPoint = table.get(mount.id)?.mountPoint ?? `${above}${mount.mountPoint}`.replace(/(?<=.)\/$/, '')
          table.set(mount.id, { ...mount, mountPoint })
          if (!counts || this.#counted.has(mount.id)) continue
          this.#counted.add(mount.id)
          if (!this.devices.has(mount.device)) continue
          this.#add({ pid, what: 'mount', path: mountPoint, locations: [location(mount.device, mount.root)] })
        }
        if (counts) this.#read.add(`${namespace} ${root}`)
      }
      return { pid, root, table }
    })
  }

  async lookAt({ pid, root, table }: SeenNamespace): Promise<void> {
    if (!(await this.#goesOn(1 + table.size / mountsInStep))) return
    const mounts = [...table.values()].filter(({ device }) => this.devices.has(device))
    const looked = await this.#unlessGone(pid, async () => {
      for (const what of ['cwd', 'root'] as const) {
        const path = what === 'root' ? root : readlinkSync(`/proc/${pid}/${what}`)
        this.#add({ pid, what, path, locations: locationsIn(mounts, path) })
      }
      await this.#descriptors(pid, table, mounts)
      return true
    })
    if (looked) await this.#unlessGone(pid, () => this.#mappings(pid, mounts))
  }

  async #unlessGone<T>(pid: number, look: () => Promise<T>): Promise<T | undefined> {
    try {
      return await look()
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      if (!hasGone(error)) this.denied.push({ pid, code })
      return undefined
    }
  }

  async #descriptors(pid: number, table: Table, mounts: readonly MountDetails[]): Promise<void> {
    // To list them takes as long as to look at them.
    const listing = opendirSync(`/proc/${pid}/fd`, { bufferSize: slice })
    try {
      for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
        if (!(await this.#goesOn(1))) return
        const elsewhere = this.#descriptor(pid, entry.name, table, mounts)
        if (elsewhere && !(await this.#goesOn(mounts.length / mountsInStep))) return
      }
    } finally {
      listing.closeSync()
    }
  }

  /** Answers whether its path was compared with all mounts. */
  #descriptor(pid: number, name: string, table: Table, mounts: readonly MountDetails[]): boolean {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${name}`)
      // Sockets, pipes and their like have no path.
      if (!path.startsWith('/')) return false
      const information = readFileSync(`/proc/${pid}/fdinfo/${name}`, 'utf8')
      const id = Number(/^mnt_id:\s*(\d+)/m.exec(information)?.[1] ?? NaN)
      // Since Linux 5.14.
      const inode = /^ino:\s*(\d+)/m.exec(information)?.[1]
      const mount = table.get(id)
      if (mount !== undefined && !this.devices.has(mount.device)) return false
      const locations = locationsIn(mount ? [mount] : mounts, path)
      // O_WRONLY is 1, O_RDWR is 2; the number is octal.
      const writes = /^flags:\s*\d*[12]$/m.test(information)
      this.#add({ pid, what: 'fd', path, locations, inode, device: mount?.device, descriptor: name, writes })
      return mount === undefined
    } catch (error) {
      if (!hasGone(error)) throw error
      return false
    }
  }

  async #mappings(pid: number, mounts: readonly MountDetails[]): Promise<void> {
    if (this.silent !== undefined) return
    // Kernel threads, most processes of a machine, have no memory and no executable: ENOENT, as a process that has ended. To read each
    // one's mappings would take some trips to a thread.
    readlinkSync(`/proc/${pid}/exe`)
    const reading = silentPids.has(pid) ? undefined : fsp.readFile(`/proc/${pid}/maps`, 'utf8')
    if (reading === undefined || !(await endsWithin(reading, patience))) {
      this.silent = pid
      silentPids.add(pid)
      void reading?.finally(() => silentPids.delete(pid)).catch(() => undefined)
      return
    }
    let last = ''
    for (const line of (await reading).split('\n')) {
      if (!(await this.#goesOn(1))) return
      const [, rights = '', device = '', inode = '', text = ''] =
        /^\S+ (\S+) \S+ (\S+) (\d+)\s+(\/.*)$/.exec(line) ?? []
      const writes = /^.w.s/.test(rights)
      // A library has a mapping for each of its segments.
      if (text === '' || (text === last && !writes)) continue
      last = text
      const on = decimal(device)
      if (!this.devices.has(on)) continue
      const path = unescaped(text)
      if (!(await this.#goesOn(mounts.length / mountsInStep))) return
      const locations = locationsIn(
        mounts.filter((mount) => mount.device === on),
        path,
      )
      this.#add({ pid, what: 'map', path, locations, inode, device: on, writes })
    }
  }

  #add({
    inode,
    device,
    ...holding
  }: Omit<Holding, 'inode' | 'device'> & { inode?: string | undefined; device?: string | undefined }): void {
    if (holding.locations.length === 0 && inode === undefined) return
    const whole = { ...holding, ...(inode !== undefined && { inode }), ...(device !== undefined && { device }) }
    if (!this.isOfInterest(whole)) return
    if (this.holdings.length < mostHoldings) this.holdings.push(whole)
    else this.isCut = true
  }
}

/** Where a path can lead, by each of these mounts that it can be on. A name can end as the kernel marks removed ones. */
function locationsIn(mounts: readonly MountDetails[], text: string): Location[] {
  const plain = locationsOf(mounts, text, false)
  if (!text.endsWith(deletedSuffix)) return plain
  return [...plain, ...locationsOf(mounts, text.slice(0, -deletedSuffix.length), true)]
}

function locationsOf(mounts: readonly MountDetails[], path: string, deleted: boolean): Location[] {
  return mounts.flatMap(({ device, root, mountPoint }) => {
    const holds = mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`)
    if (!holds) return []
    const at = location(device, root)
    return [{ device, within: pathWithin({ root: at.within, mountPoint }, path), deleted: deleted || at.deleted }]
  })
}

function location(device: string, root: string): Location {
  const deleted = root.endsWith(deletedRoot)
  return { device, within: deleted ? root.slice(0, -deletedRoot.length) : root, deleted }
}

/** `08:02` of maps is `8:2` of mountinfo. */
function decimal(device: string): string {
  return device
    .split(':')
    .map((part) => Number.parseInt(part, 16))
    .join(':')
}
