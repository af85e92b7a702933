import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfiguration } from '../../config/types.js'
import { endsWithin } from '../../deadline.js'
import { letGo, OwnFile, readPublication, sameTarget } from '../../durable/index.js'
import { DurableWriteError } from '../../durable/errors.js'
import { codeOf, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { beside } from '../file-systems.js'
import { lockForPass } from '../state-lock.js'
import { withOldPaths } from './moves.js'
import { isBare } from './remove-dropped.js'
import { parsePaths } from '../state-paths.js'
import { readStatusFile } from '../report/status-file.js'

/*
 * Directories that leave the configuration. STATE/directories.json names those that it has, old paths too, before the first publication
 * there: so a start finds out which have left since the last one. The record of each says that it was let go, durably, before it may come
 * back; the agent retries a record that it cannot write now.
 */

/** Milliseconds: to wait for disks before all else goes on; for another holder of a record's lock; until what failed is tried again. */
const patience = 3_000
const lockTimeout = 2_000
const retryInterval = 60_000

/** What directories.json says of a path. */
interface Named {
  /** The configuration file that names it: one state directory may serve several files, each by `sync`. */
  readonly file: string
  /** It names the path no more, and the record does not say so yet. */
  readonly left?: true
}

interface DeparturesOptions {
  readonly log: Log
  readonly identity: () => string | undefined
  /** Its process is the agent of the state directory: the last agent there had its own configuration, in a file of any name. */
  readonly isAgent: boolean
}

export class Departures {
  readonly #options: DeparturesOptions
  #known: Map<string, Named> | undefined
  /** As the file has it. */
  #saved = '{}'
  #problem: string | undefined
  readonly #trying = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()
  #closed = false
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
      if (this.#newest !== configuration) return
      await this.#attempt(configuration, () => this.list(configuration))
      await this.mark(configuration)
      await this.#attempt(configuration, () => this.#save(configuration))
      if (this.#owed.length === 0 || this.#closed) return
      this.#timer = setTimeout(() => void this.configure(configuration), retryInterval).unref()
    })
    await endsWithin(this.#work, patience)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** Brings the list up to the configuration. What comes back while its mark is owed is marked first. */
  async list(configuration: AgentConfiguration): Promise<void> {
    const { file } = configuration
    const known = (this.#known ??= await this.#read(configuration))
    const paths = new Set(pathsOf(configuration))
    await this.mark(configuration, (path) => paths.has(path))
    for (const [path, named] of known)
      if (named.file === file && !paths.has(path)) known.set(path, { file, left: true })
    for (const path of paths) if (!this.isOwed(path)) known.set(path, { file })
    await this.#save(configuration)
  }

  /** Whether a path has left, or left and came back, before its record could say so: what changed there meanwhile would pass for drift. */
  isOwed(path: string): boolean {
    return this.#known?.get(path)?.left === true
  }

  /** Has the records say it of those that have left. */
  async mark(configuration: AgentConfiguration, which: (path: string) => boolean = () => true): Promise<void> {
    const paths = this.#owed.filter((path) => which(path) && !this.#trying.has(path))
    const marking = paths.map(async (path) => {
      this.#trying.add(path)
      const isConfigured = pathsOf(configuration).includes(path)
      if (await this.#isMarked(path, configuration, isConfigured)) {
        if (isConfigured) this.#known?.set(path, { file: configuration.file })
        else this.#known?.delete(path)
      }
      this.#trying.delete(path)
    })
    await endsWithin(Promise.all(marking), patience)
  }

  /** For one pass, after its marks: others may have written the list since. */
  async settle(configuration: AgentConfiguration): Promise<void> {
    const owed = new Set(this.#owed)
    const known = await this.#read(configuration)
    for (const [path, { left }] of known) if (left && !owed.has(path)) known.delete(path)
    this.#known = known
    await this.#save(configuration)
  }

  get #owed(): string[] {
    return [...(this.#known ?? [])].flatMap(([path, { left }]) => (left ? [path] : []))
  }

  /** Whether the record of a path says that it has left, or need not. */
  async #isMarked(path: string, configuration: AgentConfiguration, isConfigured: boolean): Promise<boolean> {
    const { log, identity } = this.#options
    try {
      return await beside(path, async () => {
        const others = pathsOf(configuration).filter((one) => one !== path)
        if ((await sameTarget(path, others)) !== undefined) return true
        if (await letGo(path, { agent: identity(), lockTimeout, log })) return true
        // Its disk may come later. A configured directory counts in spite of that: its parent may just be empty, and would stay so for
        // ever.
        return isConfigured || (await readPublication(path)) !== undefined || !(await isBare(path))
      })
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return true
      log.warn({ directory: path }, `${messageOf(error)}; the agent tries again`)
      return false
    }
  }

  /** The agent publishes, too, where it cannot write its state directory. */
  async #attempt({ stateDirectory }: AgentConfiguration, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const problem = `could not note in ${stateDirectory} which directories are configured: ${messageOf(error)}`
      if (problem !== this.#problem) this.#options.log.warn({}, problem)
      this.#problem = problem
    }
  }

  /** Where a version before this one has kept its state, its status names its directories. */
  async #read({ stateDirectory, file }: AgentConfiguration): Promise<Map<string, Named>> {
    const status = await beside(stateDirectory, () => readStatusFile(stateDirectory)).catch(() => undefined)
    const last = status?.agent?.configuration?.file ?? file
    const text = await beside(stateDirectory, () => readFile(listIn(stateDirectory), 'utf8')).catch(
      (error: unknown) => {
        if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
        throw error
      },
    )
    if (text === undefined)
      return new Map(
        (status?.directories ?? []).map(({ path }) => [path, { file: this.#options.isAgent ? file : last }]),
      )
    this.#saved = text
    const lost = 'what has left the configuration meanwhile is not noticed'
    const known = parsePaths(text, listIn(stateDirectory), isNamed, lost)
    if (!this.#options.isAgent) return known
    return new Map([...known].map(([path, named]) => [path, named.file === last ? { ...named, file } : named]))
  }

  async #save({ stateDirectory }: AgentConfiguration): Promise<void> {
    const text = `${JSON.stringify(Object.fromEntries(this.#known ?? []), undefined, 2)}\n`
    if (text === this.#saved) return
    await beside(stateDirectory, () => new OwnFile(listIn(stateDirectory)).replace(text))
    this.#saved = text
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
  const departures = new Departures({ log, identity: () => identity, isAgent: false })
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
      await locked(() => departures.settle(configuration))
    }
  } catch (error) {
    log.debug({}, `could not note in ${stateDirectory} which directories are configured: ${messageOf(error)}`)
  }
  return (path) => departures.isOwed(path)
}

function listIn(stateDirectory: string): string {
  return join(stateDirectory, 'directories.json')
}

function pathsOf({ directories }: AgentConfiguration): string[] {
  return withOldPaths(directories).map(({ path }) => path)
}

function isNamed(value: unknown): value is Named {
  const { file, left } = (value ?? {}) as Partial<Record<keyof Named, unknown>>
  return typeof file === 'string' && (left === undefined || left === true)
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
