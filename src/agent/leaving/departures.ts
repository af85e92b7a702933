import type { AgentConfiguration } from '../../config/types.js'
import { endsWithin } from '../../deadline.js'
import { letGo, readPublication, sameTarget } from '../../durable/index.js'
import { DurableWriteError } from '../../durable/errors.js'
import { codeOf, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { beside } from '../file-systems.js'
import { lockForPass } from '../state-lock.js'
import { withOldPaths } from './moves.js'
import { NamedDirectories } from './named-directories.js'
import { isBare } from './remove-dropped.js'

/*
 * Directories that leave the configuration. The record of each says that it was let go, durably, before it may come back; what cannot be
 * said now is owed, and tried again. Which of them then goes is for drops.ts.
 */

/** Milliseconds: to wait for disks before all else goes on; for another holder of a record's lock; until what failed is tried again. */
const patience = 3_000
const lockTimeout = 2_000
const retryInterval = 60_000

interface DeparturesOptions {
  readonly log: Log
  readonly identity: () => string | undefined
  readonly named: NamedDirectories
  /** Ends the agent: nothing begins any more. Absent for one pass. */
  readonly signal?: AbortSignal
}

export class Departures {
  readonly #options: DeparturesOptions
  #problem: string | undefined
  readonly #trying = new Set<string>()
  /** The state directory that is worked on. */
  #working: string | undefined
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()
  /** Old paths of the configuration that are done. */
  readonly #moved = new Set<string>()
  /** Of several that come together, the last one counts. */
  #newest: AgentConfiguration | undefined

  constructor(options: DeparturesOptions) {
    this.#options = options
  }

  /** These are configured from now on. Resolves when that is on the disk, or when the disk takes long; never rejects. */
  async configure(configuration: AgentConfiguration): Promise<void> {
    clearTimeout(this.#timer)
    this.#newest = configuration
    this.#work = this.#work.then(async () => {
      if (this.#newest !== configuration || this.#hasEnded()) return
      this.#working = configuration.stateDirectory
      await this.#attempt(configuration, () => this.list(configuration))
      await this.mark(configuration)
      await this.#attempt(configuration, () => this.#options.named.save(configuration.stateDirectory))
      this.#working = undefined
      if (this.#owed.length === 0 || this.#newest !== configuration || this.#hasEnded()) return
      this.#timer = setTimeout(() => void this.configure(configuration), retryInterval).unref()
    })
    await endsWithin(this.#work, patience)
  }

  #hasEnded(): boolean {
    return this.#options.signal?.aborted === true
  }

  /** Resolves when the departures that were under way as the signal aborted have ended. */
  async ended(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#work
  }

  /** The paths that departures wait for: directories, or the state directory. */
  underWay(): string[] {
    if (this.#trying.size > 0) return [...this.#trying]
    return this.#working === undefined ? [] : [this.#working]
  }

  /** Brings the list up to the configuration. What comes back while its mark is owed is marked first. */
  async list(configuration: AgentConfiguration): Promise<void> {
    const { file, stateDirectory, directories } = configuration
    const { named } = this.#options
    const known = await named.load(configuration)
    const configured = new Map(withOldPaths(directories).map((directory) => [directory.path, directory]))
    for (const path of this.#moved) if (configured.get(path)?.follows === undefined) this.#moved.delete(path)
    await this.mark(configuration, (path) => configured.has(path))
    for (const [path, one] of known)
      if (one.file === file && !configured.has(path)) known.set(path, { ...one, left: true })
    for (const [path, { onDrop }] of configured) {
      const before = known.get(path)
      const goes = onDrop === 'remove' && !this.#moved.has(path)
      known.set(path, { file, ...(goes && { onDrop }), ...(before?.left && { left: true }) })
    }
    await named.save(stateDirectory)
  }

  /** A move has removed this old path: it needs no other removal. */
  moved(path: string): void {
    this.#moved.add(path)
    if (this.#newest) void this.configure(this.#newest)
  }

  /** Whether a path has left, or left and came back, before its record could say so: what changed there meanwhile would pass for drift. */
  isOwed(path: string): boolean {
    return this.#options.named.get(path)?.left === true
  }

  /** Has the records say it of those that have left. */
  async mark(configuration: AgentConfiguration, which: (path: string) => boolean = () => true): Promise<void> {
    if (this.#hasEnded()) return
    const paths = this.#owed.filter((path) => which(path) && !this.#trying.has(path))
    const marking = paths.map(async (path) => {
      this.#trying.add(path)
      const isConfigured = pathsOf(configuration).includes(path)
      if (await this.#isMarked(path, configuration, isConfigured)) this.#options.named.marked(path, isConfigured)
      this.#trying.delete(path)
    })
    await endsWithin(Promise.all(marking), patience)
  }

  /** For one pass, after its marks: others may have written the list since. */
  async saveList(configuration: AgentConfiguration): Promise<void> {
    const { named } = this.#options
    const owed = new Set(this.#owed)
    for (const [path, { left }] of await named.reload(configuration))
      if (left && !owed.has(path)) named.marked(path, false)
    await named.save(configuration.stateDirectory)
  }

  get #owed(): string[] {
    return this.#options.named.entries().flatMap(([path, { left }]) => (left ? [path] : []))
  }

  /** Whether the record of a path says that it has left, or need not. */
  async #isMarked(path: string, configuration: AgentConfiguration, isConfigured: boolean): Promise<boolean> {
    const { log, identity, signal } = this.#options
    try {
      return await beside(path, async () => {
        const others = pathsOf(configuration).filter((one) => one !== path)
        if ((await sameTarget(path, others)) !== undefined) return true
        if (await letGo(path, { agent: identity(), lockTimeout, log, ...(signal && { signal }) })) return true
        // Its disk may come later. A configured directory counts in spite of that: its parent may just be empty, and would stay so for
        // ever.
        return isConfigured || (await readPublication(path)) !== undefined || !(await isBare(path))
      })
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return true
      if (this.#hasEnded()) return false
      log.warn({ directory: path }, `${messageOf(error)}; the agent tries again`)
      return false
    }
  }

  /** The agent publishes, too, where it cannot write its state directory. */
  async #attempt({ stateDirectory }: AgentConfiguration, work: () => Promise<void>): Promise<void> {
    if (this.#hasEnded()) return
    try {
      await work()
    } catch (error) {
      const problem = `could not note in ${stateDirectory} which directories are configured: ${messageOf(error)}`
      if (problem !== this.#problem) this.#options.log.warn({}, problem)
      this.#problem = problem
    }
  }
}

/**
 * The same for one pass of `sync`, unless an agent has the state directory: that one knows, and says it. Answers which paths are owed their
 * mark all the same.
 */
export async function noteForPass(
  configuration: AgentConfiguration,
  { log, identity }: { readonly log: Log; readonly identity: string | undefined },
): Promise<(path: string) => boolean> {
  const { stateDirectory } = configuration
  const departures = new Departures({ log, identity: () => identity, named: new NamedDirectories(false) })
  const locked = async (work: () => Promise<void>): Promise<boolean> => {
    const lock = await lockForPass(stateDirectory, 0)
    try {
      if (lock) await work()
    } finally {
      await lock?.release()
    }
    return lock !== undefined
  }
  try {
    if (await locked(() => departures.list(configuration))) {
      await departures.mark(configuration)
      await locked(() => departures.saveList(configuration))
    }
  } catch (error) {
    log.debug({}, `could not note in ${stateDirectory} which directories are configured: ${messageOf(error)}`)
  }
  return (path) => departures.isOwed(path)
}

function pathsOf({ directories }: AgentConfiguration): string[] {
  return withOldPaths(directories).map(({ path }) => path)
}

/** For a publication that has to wait for the mark. */
export function owed(path: string): DurableWriteError {
  return new DurableWriteError(`${path} has left the configuration, and its record could not say so yet`, {
    code: 'EEXIST',
    syscall: 'none',
    path,
    reason: 'TargetForeign',
    state: `holdfast left ${path} as it was`,
    advice:
      'the log says why its record could not be written; once it says so, the directory comes back by an adoption',
  })
}
