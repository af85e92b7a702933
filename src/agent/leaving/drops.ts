import { basename } from 'node:path'
import type { AgentConfiguration } from '../../config/types.js'
import { readRecord } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Reason } from '../../reasons.js'
import type { AgentEvents } from '../report/agent-events.js'
import { beside } from '../file-systems.js'
import { loadHostPathUsers } from '../needed-modules.js'
import { withOldPaths } from './moves.js'
import type { NamedDirectory, NamedDirectories } from './named-directories.js'
import { removeDropped, Stays } from './remove-dropped.js'
import type { DirectoryStatus } from '../report/status-file.js'

/*
 * `onDrop: remove`: a directory that leaves the configuration goes, once no process uses it. STATE/directories.json has its configuration's
 * last word; the record beside the directory must say that this agent has let it go, or it stays. Only an absence of ten minutes is a wish: a
 * directory that comes back within that time was missing by a typo. The minutes are those of this process, and begin again at each start.
 */

/** Milliseconds of absence. */
const absenceBeforeRemoval = 10 * 60_000

/** Milliseconds until a removal that was refused is tried again. */
const retryInterval = 60_000

/** By path. */
type NamedByPath = Map<string, NamedDirectory>

interface DropsOptions {
  readonly log: Log
  readonly named: NamedDirectories
  /** Ends the agent: nothing begins any more. */
  readonly signal: AbortSignal
  readonly inForce: { readonly events: Pick<AgentEvents, 'pass'> }
  /** The agent's identity: it removes only its own publications. Default: unknown, and it removes nothing. */
  readonly identity?: () => string | undefined
  /** Something that the status shows has changed. */
  readonly changed: () => void
  /** Milliseconds of a monotonic clock. Default: performance.now. */
  readonly now?: () => number
  /** Removes a directory. Default: the core does. */
  readonly remove?: (path: string, signal: AbortSignal) => Promise<void>
}

export class Drops {
  readonly #options: DropsOptions
  readonly #now: () => number
  readonly #remove: (path: string, signal: AbortSignal) => Promise<void>
  #configuration: AgentConfiguration | undefined
  /** The message for each absent directory, and since when. */
  readonly #messages = new Map<string, { readonly message: string; readonly at: string }>()
  /** When each absent path was first missed, by `now`. */
  readonly #absentSince = new Map<string, number>()
  readonly #removing = new Map<string, AbortController>()
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()
  #isWorking = false

  constructor(options: DropsOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
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

  /** Resolves when the removals that were under way as the signal aborted have ended. */
  async ended(): Promise<void> {
    clearTimeout(this.#timer)
    for (const controller of this.#removing.values()) controller.abort()
    await this.#work
  }

  /** The paths that removals wait for: a directory, or the state directory. */
  underWay(): string[] {
    const { stateDirectory } = this.#configuration ?? {}
    if (this.#removing.size > 0) return [...this.#removing.keys()]
    return this.#isWorking && stateDirectory !== undefined ? [stateDirectory] : []
  }

  get #hasEnded(): boolean {
    return this.#options.signal.aborted
  }

  /** One pass after the other. */
  #next(): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#hasEnded) return
      this.#isWorking = true
      try {
        await this.#pass()
      } catch (error) {
        this.#options.log.warn(
          {},
          `could not look after directories that are not configured any more: ${messageOf(error)}`,
        )
        this.#again(retryInterval)
      }
      this.#isWorking = false
    })
    return this.#work
  }

  #again(milliseconds: number): void {
    clearTimeout(this.#timer)
    if (!this.#hasEnded) this.#timer = setTimeout(() => void this.#next(), milliseconds).unref()
  }

  async #pass(): Promise<void> {
    const { named } = this.#options
    if (this.#configuration === undefined) return
    const known = await named.load(this.#configuration)
    const absent = this.#absent(known, this.#configuration)
    if (absent.length === 0) return
    // No directory that is configured now may need it.
    await loadHostPathUsers()
    let next = retryInterval
    for (const [path, since] of absent) {
      if (this.#hasEnded) return
      const left = absenceBeforeRemoval - (this.#now() - since)
      if (left > 0 && !(await this.#isTaken(path))) next = Math.min(next, left)
      else await this.#take(known, path)
    }
    this.#again(next)
  }

  /** Which directories are to be removed and are not configured, each since when. */
  #absent(known: NamedByPath, { file }: AgentConfiguration): (readonly [string, number])[] {
    const configured = new Set(this.#configured)
    for (const path of this.#messages.keys()) {
      if (!configured.has(path)) continue
      this.#forget(path)
      this.#options.log.info({ directory: path }, `${path} is configured again: holdfast does not remove it`)
    }
    return [...known].flatMap(([path, named]) => {
      if (named.file !== file || named.onDrop !== 'remove' || configured.has(path)) return []
      const since = this.#absentSince.get(path) ?? this.#now()
      this.#absentSince.set(path, since)
      if (!this.#messages.has(path)) {
        const minutes = absenceBeforeRemoval / 60_000
        const text = `${path} is not configured any more: holdfast removes it (onDrop: remove) after ${minutes} minutes, once nobody uses it`
        this.#report(path, text)
      }
      return [[path, since] as const]
    })
  }

  /** Whether another agent keeps it: that ends this at once. */
  async #isTaken(path: string): Promise<boolean> {
    const identity = this.#options.identity?.()
    const keeper = (await beside(path, () => readRecord(path)).catch(() => undefined))?.keeper
    return identity !== undefined && keeper !== undefined && keeper !== identity
  }

  async #take(known: NamedByPath, path: string): Promise<void> {
    const controller = new AbortController()
    this.#removing.set(path, controller)
    try {
      if (this.#hasEnded || this.#configured.includes(path)) return
      await beside(path, () => this.#remove(path, controller.signal))
      this.#end(known, path, 'Dropped', `${path} was not configured any more: holdfast has removed it (onDrop: remove)`)
    } catch (error) {
      if (controller.signal.aborted) return
      if (error instanceof Stays) this.#end(known, path, undefined, error.message)
      else this.#report(path, `${path} is not configured any more, and cannot be removed yet: ${messageOf(error)}`)
    } finally {
      this.#removing.delete(path)
    }
    if (this.#configuration) await this.#options.named.save(this.#configuration.stateDirectory)
  }

  #end(known: NamedByPath, path: string, reason: Reason | undefined, message: string): void {
    if (!this.#configured.includes(path)) known.delete(path)
    this.#forget(path)
    this.#options.log.info({ directory: path, ...(reason && { reason }) }, message)
    if (reason) this.#options.inForce.events.pass({ events: [{ on: 'node', reason, message }] })
  }

  #forget(path: string): void {
    this.#messages.delete(path)
    this.#absentSince.delete(path)
    this.#options.changed()
  }

  /** Once for each thing that there is to say. */
  #report(path: string, message: string): void {
    if (this.#messages.get(path)?.message === message) return
    const reason = 'DropPending'
    this.#messages.set(path, { message, at: this.#messages.get(path)?.at ?? new Date().toISOString() })
    this.#options.log.warn({ reason, directory: path }, message)
    this.#options.inForce.events.pass({ events: [{ on: 'node', reason, message }] })
    this.#options.changed()
  }
}
