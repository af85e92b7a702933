import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { DirectoryConfiguration } from '../../config/types.js'
import { NodeFileSystem, readKeeper, replaceFile } from '../../durable/index.js'
import { codeOf, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Reason } from '../../reasons.js'
import type { AgentEvents } from '../report/agent-events.js'
import { beside } from '../file-systems.js'
import { removeDropped, Stays } from './remove-dropped.js'
import type { Metrics } from '../report/report-metrics.js'
import type { DirectoryStatus } from '../report/status-file.js'
import { parsePaths } from '../state-paths.js'

/*
 * `onDrop: remove`: a directory that leaves the configuration goes, once no process uses it. STATE/drops.json names the directories that
 * this state directory had configured so, and since when each is absent; the record beside the directory says the same, or it stays. Only
 * an absence of ten minutes counts as a wish: a shorter one was a typo.
 *
 * The minutes are those of the machine since its start, which no clock that is set makes shorter or longer. After a reboot they begin
 * again, but a removal that was due is.
 */

/** Milliseconds of absence. */
const absenceBeforeRemoval = 10 * 60_000

/** Milliseconds until a removal that was refused is tried again. */
const retryInterval = 60_000

/** Since when a directory is not configured. */
interface Absence {
  /** RFC 3339, for people. */
  readonly since: string
  readonly boot: string
  /** Milliseconds from the machine's start until then. */
  readonly uptime: number
  /** The time is over: the removal may have begun. */
  readonly due: boolean
}

/** By path; null: it is configured. */
type Known = Map<string, Absence | null>

/** How long the machine has been running, and since which start. */
export interface Uptime {
  readonly boot: string
  readonly milliseconds: number
}

interface DropsOptions {
  readonly log: Log
  readonly stateDirectory: () => string
  readonly metrics: Pick<Metrics, 'dropPending'>
  readonly events: () => Pick<AgentEvents, 'pass'>
  /** The agent's identity: it removes only its own publications. Default: unknown, and it removes nothing. */
  readonly identity?: () => string | undefined
  /** Something that the status shows has changed. */
  readonly changed: () => void
  /** Default: the machine's. */
  readonly uptime?: () => Promise<Uptime>
  /** Removes a directory. Default: the core does. */
  readonly remove?: (path: string, signal: AbortSignal) => Promise<void>
}

export class Drops {
  readonly #options: DropsOptions
  readonly #uptime: () => Promise<Uptime>
  readonly #remove: (path: string, signal: AbortSignal) => Promise<void>
  #known: Known | undefined
  #configured: readonly DirectoryConfiguration[] = []
  /** Old paths among them that are done. */
  readonly #moved = new Set<string>()
  /** As the file has it. */
  #saved = '{}'
  /** The message for each absent directory, and since when. */
  readonly #messages = new Map<string, { readonly message: string; readonly at: string }>()
  readonly #removing = new Map<string, AbortController>()
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: DropsOptions) {
    this.#options = options
    this.#uptime = options.uptime ?? machineUptime
    this.#remove =
      options.remove ??
      ((path, signal) => removeDropped(path, signal, options.log, () => this.#configured, options.identity?.()))
  }

  /** These are configured from now on. Resolves when that is on the disk; never rejects. */
  configure(directories: readonly DirectoryConfiguration[]): Promise<void> {
    this.#configured = directories
    const oldPaths = new Set(directories.flatMap(({ path, follows }) => (follows === undefined ? [] : path)))
    for (const path of this.#moved) if (!oldPaths.has(path)) this.#moved.delete(path)
    // The same name may be the same directory, by another way: the next pass finds that out.
    const names = new Set(directories.map(({ path }) => basename(path)))
    for (const [path, controller] of this.#removing) if (names.has(basename(path))) controller.abort()
    return this.#next()
  }

  /** The move has removed this old path: it needs no other removal. Never rejects. */
  moved(path: string): Promise<void> {
    this.#moved.add(path)
    return this.#next()
  }

  /** What there is to say of directories that are not configured any more. */
  status(): DirectoryStatus[] {
    return [...this.#messages].map(([path, { message, at: lastTransitionTime }]) => {
      const condition = {
        type: 'Published',
        status: 'Unknown',
        reason: 'DropPending',
        message,
        lastTransitionTime,
      } as const
      const nothing = { objects: [], digest: null, publishedAt: null, confirmedAt: null, pendingHooks: [] }
      return { path, conditions: [condition], ...nothing }
    })
  }

  /** Begins nothing any more; resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const controller of this.#removing.values()) controller.abort()
    await this.#work
  }

  /** One pass after the other. */
  #next(): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#closed) return
      try {
        await this.#pass()
      } catch (error) {
        this.#options.log.warn(
          {},
          `could not look after directories that are not configured any more: ${messageOf(error)}`,
        )
        this.#again(retryInterval)
      }
    })
    return this.#work
  }

  #again(milliseconds: number): void {
    clearTimeout(this.#timer)
    if (!this.#closed) this.#timer = setTimeout(() => void this.#next(), milliseconds).unref()
  }

  async #pass(): Promise<void> {
    const known = (this.#known ??= await this.#read())
    const uptime = await this.#uptime()
    this.#compare(known, uptime)
    await this.#save(known)
    const absent = [...known].flatMap(([path, absence]) => (absence ? [{ path, absence }] : []))
    if (absent.length === 0) return
    let next = retryInterval
    for (const { path, absence } of absent) {
      const left = absence.due ? 0 : absenceBeforeRemoval - (uptime.milliseconds - absence.uptime)
      if (left > 0 && !(await this.#isTaken(path))) next = Math.min(next, left)
      else await this.#take(known, path, absence)
    }
    this.#again(next)
  }

  /** Brings the known directories up to the configuration. */
  #compare(known: Known, { boot, milliseconds: uptime }: Uptime): void {
    for (const { path, onDrop } of this.#configured) {
      if (known.get(path)) this.#cancel(path)
      if (onDrop === 'remove' && !this.#moved.has(path)) known.set(path, null)
      else known.delete(path)
    }
    const configured = new Set(this.#configured.map(({ path }) => path))
    for (const [path, absence] of known) {
      if (configured.has(path)) continue
      if (!absence || (!absence.due && absence.boot !== boot)) {
        known.set(path, { since: new Date().toISOString(), boot, uptime, due: false })
      }
      if (!this.#messages.has(path)) {
        const minutes = absenceBeforeRemoval / 60_000
        const text = `${path} is not configured any more: holdfast removes it (onDrop: remove) after ${minutes} minutes, once nobody uses it`
        this.#report(path, text)
      }
    }
  }

  #cancel(path: string): void {
    this.#options.log.info({ directory: path }, `${path} is configured again: holdfast does not remove it`)
    this.#forget(path)
  }

  /** Whether another agent keeps it: that ends this at once. */
  async #isTaken(path: string): Promise<boolean> {
    const identity = this.#options.identity?.()
    const keeper = await beside(path, () => readKeeper(path)).catch(() => undefined)
    return identity !== undefined && keeper !== undefined && keeper !== identity
  }

  async #take(known: Known, path: string, absence: Absence): Promise<void> {
    // Before the first try, so that the next start after a crash goes on with it.
    known.set(path, { ...absence, due: true })
    await this.#save(known)
    const controller = new AbortController()
    this.#removing.set(path, controller)
    try {
      if (this.#closed || this.#configured.some((directory) => directory.path === path)) return
      await beside(path, () => this.#remove(path, controller.signal))
      this.#end(known, path, 'Dropped', `${path} was not configured any more: holdfast has removed it (onDrop: remove)`)
    } catch (error) {
      if (controller.signal.aborted) return
      if (error instanceof Stays) this.#end(known, path, undefined, error.message)
      else this.#report(path, `${path} is not configured any more, and cannot be removed yet: ${messageOf(error)}`)
    } finally {
      this.#removing.delete(path)
    }
    await this.#save(known)
  }

  #end(known: Known, path: string, reason: Reason | undefined, message: string): void {
    known.delete(path)
    this.#forget(path)
    this.#options.log.info({ directory: path, ...(reason && { reason }) }, message)
    if (reason) this.#options.events().pass({ events: [{ on: 'node', reason, message }] })
  }

  #forget(path: string): void {
    this.#messages.delete(path)
    this.#options.metrics.dropPending(path, false)
    this.#options.changed()
  }

  /** Once for each thing that there is to say. */
  #report(path: string, message: string): void {
    if (this.#messages.get(path)?.message === message) return
    const reason = 'DropPending'
    this.#messages.set(path, { message, at: this.#messages.get(path)?.at ?? new Date().toISOString() })
    this.#options.metrics.dropPending(path, true)
    this.#options.log.warn({ reason, directory: path }, message)
    this.#options.events().pass({ events: [{ on: 'node', reason, message }] })
    this.#options.changed()
  }

  get #file(): string {
    return join(this.#options.stateDirectory(), 'drops.json')
  }

  async #read(): Promise<Known> {
    const text = await beside(this.#file, () => readFile(this.#file, 'utf8')).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return this.#saved
      throw error
    })
    this.#saved = text
    return parsePaths(text, this.#file, isAbsence, 'directories that have left the configuration then stay')
  }

  /** Writes nothing where nothing has changed: most agents have no such directory. */
  async #save(known: Known): Promise<void> {
    const text = known.size === 0 ? '{}' : `${JSON.stringify(Object.fromEntries(known), undefined, 2)}\n`
    if (text === this.#saved) return
    await beside(this.#file, () => replaceFile(this.#file, text, { mode: 0o600 }))
    this.#saved = text
  }
}

function isAbsence(value: unknown): value is Absence | null {
  if (value === null) return true
  const { since, boot, uptime, due } = value as Partial<Record<keyof Absence, unknown>>
  const isText = typeof since === 'string' && typeof boot === 'string'
  return isText && typeof uptime === 'number' && typeof due === 'boolean'
}

/** By the kernel's own clock, which no user can set. */
async function machineUptime(): Promise<Uptime> {
  const text = await readFile('/proc/uptime', 'latin1')
  return { boot: await new NodeFileSystem().bootId(), milliseconds: Number.parseFloat(text) * 1000 }
}
