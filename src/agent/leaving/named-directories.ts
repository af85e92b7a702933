import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfiguration } from '../../config/types.js'
import { OwnFile, syncParents } from '../../durable/index.js'
import { codeOf } from '../../errors.js'
import { beside } from '../file-systems.js'
import { readStatusFile } from '../report/read-status.js'

/*
 * STATE/directories.json: the directories that a configuration names, old paths too, and its last word on each. The agent writes it before it
 * publishes anything there, so that a start finds the directories that have left since the last one, and their `onDrop`. A directory's
 * record says whose content it holds, and nothing of the configuration: the record changes only with a publication, and a configuration
 * counts without one.
 */

/** Since when a directory is not configured. */
export interface Absence {
  /** RFC 3339, for people. */
  readonly since: string
  readonly boot: string
  /** Milliseconds from the machine's start until then. */
  readonly uptime: number
  /** The time is over: the removal may have begun. */
  readonly due: boolean
}

/** What directories.json says of a path. */
export interface Named {
  /** The configuration file that names it: one state directory may serve several files, each by `sync`. */
  readonly file: string
  /** What this file said last; absent for `keep`. */
  readonly onDrop?: 'remove'
  /** The file names the path no more, and the record does not say so yet. */
  readonly left?: true
  /** For a path that is to be removed. */
  readonly absent?: Absence
}

export class NamedDirectories {
  #paths: Map<string, Named> | undefined
  #loading: Promise<Map<string, Named>> | undefined
  #saving: Promise<void> = Promise.resolve()
  /** As the file has it. */
  #saved = textOf(new Map())

  /** `isAgent`: this process is the agent of the state directory, and the last agent's directories are its own, under any name of the file. */
  constructor(private readonly isAgent: boolean) {}

  /** Read once. @throws Error where the file cannot be read: the next call tries again */
  load(configuration: AgentConfiguration): Promise<Map<string, Named>> {
    this.#loading ??= this.#read(configuration).catch((error: unknown) => {
      this.#loading = undefined
      throw error
    })
    return this.#loading
  }

  /** For one pass: another process may have written the file since. */
  reload(configuration: AgentConfiguration): Promise<Map<string, Named>> {
    this.#loading = undefined
    return this.load(configuration)
  }

  get(path: string): Named | undefined {
    return this.#paths?.get(path)
  }

  entries(): [string, Named][] {
    return [...(this.#paths ?? [])]
  }

  /** The record of a path says that it has left, or need not. */
  marked(path: string, isConfigured: boolean): void {
    const { left: _, ...named } = this.#paths?.get(path) ?? {}
    if ('file' in named && (isConfigured || named.onDrop)) this.#paths?.set(path, named)
    else this.#paths?.delete(path)
  }

  /** Durable on return; nothing is written where nothing has changed. */
  save(stateDirectory: string): Promise<void> {
    const saving = this.#saving.then(async () => {
      const text = textOf(this.#paths ?? new Map<string, Named>())
      if (text === this.#saved) return
      await beside(stateDirectory, () => new OwnFile(listIn(stateDirectory)).replace(text))
      this.#saved = text
    })
    this.#saving = saving.catch(() => undefined)
    return saving
  }

  /** Where a version before this one has kept its state, its status names its directories. */
  async #read({ stateDirectory, file }: AgentConfiguration): Promise<Map<string, Named>> {
    const status = await beside(stateDirectory, () => readStatusFile(stateDirectory)).catch(() => undefined)
    const last = status?.agent?.configuration?.file ?? file
    const owner = this.isAgent ? file : last
    const text = await textIn(stateDirectory, listIn(stateDirectory))
    if (text !== undefined) this.#saved = text
    const paths =
      text === undefined
        ? new Map((status?.directories ?? []).map(({ path }) => [path, { file: owner }]))
        : parsePaths(text, listIn(stateDirectory), isNamed, 'what has left the configuration meanwhile is not noticed')
    if (this.isAgent) for (const [path, named] of paths) if (named.file === last) paths.set(path, { ...named, file })
    this.#paths = paths
    await this.#takeDrops(stateDirectory, owner)
    return paths
  }

  /**
   * A version before this one had a file for the directories with `onDrop: remove`: null for those that were configured. That file must
   * be gone, durably, before anything changes in this one: later, it would be out of date.
   */
  async #takeDrops(stateDirectory: string, file: string): Promise<void> {
    const drops = join(stateDirectory, 'drops.json')
    const text = await textIn(stateDirectory, drops)
    if (text === undefined) return
    const isAbsent = (value: unknown): value is Absence | null => value === null || isAbsence(value)
    for (const [path, absent] of parsePaths(text, drops, isAbsent, 'directories that have left the configuration stay'))
      this.#paths?.set(path, {
        ...{ file, ...this.#paths.get(path), onDrop: 'remove' },
        ...(absent && { left: true, absent }),
      })
    await this.save(stateDirectory)
    await beside(stateDirectory, async () => {
      await rm(drops)
      await syncParents([drops])
    })
  }
}

function listIn(stateDirectory: string): string {
  return join(stateDirectory, 'directories.json')
}

function textOf(paths: ReadonlyMap<string, Named>): string {
  return `${JSON.stringify(Object.fromEntries(paths), undefined, 2)}\n`
}

/** undefined: there is no such file. */
async function textIn(stateDirectory: string, file: string): Promise<string | undefined> {
  return beside(stateDirectory, () => readFile(file, 'utf8')).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  })
}

/**
 * A file of the agent that says something of paths, as one JSON object. `lost`: what follows from its removal.
 * @throws Error where it is none
 */
function parsePaths<Said>(
  text: string,
  file: string,
  isSaid: (value: unknown) => value is Said,
  lost: string,
): Map<string, Said> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value)
    if (entries.every((entry): entry is [string, Said] => isSaid(entry[1]))) return new Map(entries)
  }
  throw new Error(`${file} is not a file of the agent: remove it; ${lost}`)
}

function isNamed(value: unknown): value is Named {
  const { file, onDrop, left, absent } = (value ?? {}) as Partial<Record<keyof Named, unknown>>
  const isWord = (onDrop === undefined || onDrop === 'remove') && (left === undefined || left === true)
  return typeof file === 'string' && isWord && (absent === undefined || isAbsence(absent))
}

function isAbsence(value: unknown): value is Absence {
  const { since, boot, uptime, due } = (value ?? {}) as Partial<Record<keyof Absence, unknown>>
  const isText = typeof since === 'string' && typeof boot === 'string'
  return isText && typeof uptime === 'number' && typeof due === 'boolean'
}
