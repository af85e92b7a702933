import { basename } from 'node:path'
import type { AgentConfiguration } from '../../config/types.js'
import { NodeFileSystem, readRecord } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Reason } from '../../reasons.js'
import type { AgentEvents } from '../report/agent-events.js'
import { beside } from '../file-systems.js'
import { withOldPaths } from './moves.js'
import type { Absence, Named, NamedDirectories } from './named-directories.js'
import { removeDropped, Stays } from './remove-dropped.js'
import type { Metrics } from '../report/report-metrics.js'
import type { DirectoryStatus } from '../report/status-file.js'

/*
 * `onDrop: remove`: a directory that leaves the configuration goes, once no process uses it. STATE/directories.json has its configuration's
 * last word, and since when it is absent; the record beside the directory must say that this agent has let it go, or it stays. Only an
 * absence of ten minutes is a wish: a directory that comes back within that time was missing by a typo.
 *
 * The minutes are those of the machine since its start, which no clock that is set makes shorter or longer. After a reboot they begin
 * again, but a removal that was due is.
 */

/** Milliseconds of absence. */
const absenceBeforeRemoval = 10 * 60_000

/** Milliseconds until a removal that was refused is tried again. */
const retryInterval = 60_000

/** By path. */
type Known = Map<string, Named>

/** How long the machine has been running, and since which start. */
export interface Uptime {
  readonly boot: string
  readonly milliseconds: number
}

interface DropsOptions {
  readonly log: Log
  readonly named: NamedDirectories
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
  #configuration: AgentConfiguration | undefined
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
      ((path, signal) =>
        removeDropped(path, {
          signal,
          log: options.log,
          configured: () => this.#configured,
          isOwed: () => options.named.get(path)?.left === true,
          agent: options.identity?.(),
        }))
  }

  /** This is in force from now on. Resolves when that is on the disk; never rejects. */
  configure(configuration: AgentConfiguration): Promise<void> {
    this.#configuration = configuration
    // The same name may be the same directory, by another way: the next pass finds that out.
    const names = new Set(this.#configured.map((path) => basename(path)))
    for (const [path, controller] of this.#removing) if (names.has(basename(path))) controller.abort()
    return this.#next()
  }

  get #configured(): readonly string[] {
    return withOldPaths(this.#configuration?.directories ?? []).map(({ path }) => path)
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
    const { named } = this.#options
    if (this.#configuration === undefined) return
    const known = await named.load(this.#configuration)
    const uptime = await this.#uptime()
    const absent = this.#absences(known, this.#configuration, uptime)
    await this.#save()
    if (absent.length === 0) return
    let next = retryInterval
    for (const { path, absence } of absent) {
      const left = absence.due ? 0 : absenceBeforeRemoval - (uptime.milliseconds - absence.uptime)
      if (left > 0 && !(await this.#isTaken(path))) next = Math.min(next, left)
      else await this.#take(known, path, absence)
    }
    this.#again(next)
  }

  /** Which directories are to be removed and are not configured, each since when. */
  #absences(known: Known, { file }: AgentConfiguration, { boot, milliseconds: uptime }: Uptime) {
    const configured = new Set(this.#configured)
    for (const path of this.#messages.keys()) if (configured.has(path)) this.#forget(path)
    return [...known].flatMap(([path, named]) => {
      if (named.file !== file || named.onDrop !== 'remove' || configured.has(path)) return []
      const before = named.absent
      const goesOn = before !== undefined && (before.due || before.boot === boot)
      const absence = goesOn ? before : { since: new Date().toISOString(), boot, uptime, due: false }
      known.set(path, { ...named, absent: absence })
      if (!this.#messages.has(path)) {
        const minutes = absenceBeforeRemoval / 60_000
        const text = `${path} is not configured any more: holdfast removes it (onDrop: remove) after ${minutes} minutes, once nobody uses it`
        this.#report(path, text)
      }
      return [{ path, absence }]
    })
  }

  /** Whether another agent keeps it: that ends this at once. */
  async #isTaken(path: string): Promise<boolean> {
    const identity = this.#options.identity?.()
    const keeper = (await beside(path, () => readRecord(path)).catch(() => undefined))?.keeper
    return identity !== undefined && keeper !== undefined && keeper !== identity
  }

  async #take(known: Known, path: string, absence: Absence): Promise<void> {
    if (this.#configured.includes(path)) return
    // Before the first try: a start after a crash goes on with it.
    const named = known.get(path)
    if (named) known.set(path, { ...named, absent: { ...absence, due: true } })
    await this.#save()
    const controller = new AbortController()
    this.#removing.set(path, controller)
    try {
      if (this.#closed || this.#configured.includes(path)) return
      await beside(path, () => this.#remove(path, controller.signal))
      this.#end(known, path, 'Dropped', `${path} was not configured any more: holdfast has removed it (onDrop: remove)`)
    } catch (error) {
      if (controller.signal.aborted) return
      if (error instanceof Stays) this.#end(known, path, undefined, error.message)
      else this.#report(path, `${path} is not configured any more, and cannot be removed yet: ${messageOf(error)}`)
    } finally {
      this.#removing.delete(path)
    }
    await this.#save()
  }

  #end(known: Known, path: string, reason: Reason | undefined, message: string): void {
    if (!this.#configured.includes(path)) known.delete(path)
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

  async #save(): Promise<void> {
    if (this.#configuration) await this.#options.named.save(this.#configuration.stateDirectory)
  }
}

/** By the kernel's own clock, which no user can set. */
async function machineUptime(): Promise<Uptime> {
  const fs = new NodeFileSystem()
  return { boot: await fs.bootId(), milliseconds: fs.uptime() }
}
