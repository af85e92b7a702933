import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfiguration } from '../../config/types.js'
import { OwnFile } from '../../durable/index.js'
import { codeOf } from '../../errors.js'
import { beside } from '../file-systems.js'
import { readStatusFile } from '../report/read-status.js'

/*
 * STATE/directories.json: the directories that a configuration names, old paths too, and its last word on each. The agent writes it before it
 * publishes anything there, so that a start finds the directories that have left since the last one, and their `onDrop`. A directory's
 * record says whose content it holds, and nothing of the configuration: the record changes only with a publication, and a configuration
 * counts without one.
 */

/** What directories.json says of a path. */
export interface NamedDirectory {
  /** The configuration file that names it: one state directory may serve several files, each by `sync`. */
  readonly file: string
  /** What this file said last; absent for `keep`. */
  readonly onDrop?: 'remove'
  /** The file names the path no more, and the record does not say so yet. */
  readonly left?: true
}

export class NamedDirectories {
  #paths: Map<string, NamedDirectory> | undefined
  #loading: Promise<Map<string, NamedDirectory>> | undefined
  #saving: Promise<void> = Promise.resolve()
  /** As the file has it. */
  #saved = textOf(new Map())

  /** `isAgent`: this process is the agent of the state directory, and the last agent's directories are its own, under any name of the file. */
  constructor(private readonly isAgent: boolean) {}

  /** Read once. @throws Error where the file cannot be read: the next call tries again */
  load(configuration: AgentConfiguration): Promise<Map<string, NamedDirectory>> {
    this.#loading ??= this.#read(configuration).catch((error: unknown) => {
      this.#loading = undefined
      throw error
    })
    return this.#loading
  }

  /** For one pass: another process may have written the file since. */
  reload(configuration: AgentConfiguration): Promise<Map<string, NamedDirectory>> {
    this.#loading = undefined
    return this.load(configuration)
  }

  get(path: string): NamedDirectory | undefined {
    return this.#paths?.get(path)
  }

  entries(): [string, NamedDirectory][] {
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
      const text = textOf(this.#paths ?? new Map<string, NamedDirectory>())
      if (text === this.#saved) return
      await beside(stateDirectory, () => new OwnFile(listIn(stateDirectory)).replace(text))
      this.#saved = text
    })
    this.#saving = saving.catch(() => undefined)
    return saving
  }

  async #read({ stateDirectory, file }: AgentConfiguration): Promise<Map<string, NamedDirectory>> {
    const status = await beside(stateDirectory, () => readStatusFile(stateDirectory)).catch(() => undefined)
    const last = status?.agent?.configuration?.file ?? file
    const text = await textIn(stateDirectory, listIn(stateDirectory))
    if (text !== undefined) this.#saved = text
    const paths = text === undefined ? new Map<string, NamedDirectory>() : parsePaths(text, listIn(stateDirectory))
    if (this.isAgent) for (const [path, named] of paths) if (named.file === last) paths.set(path, { ...named, file })
    this.#paths = paths
    return paths
  }
}

function listIn(stateDirectory: string): string {
  return join(stateDirectory, 'directories.json')
}

function textOf(paths: ReadonlyMap<string, NamedDirectory>): string {
  return `${JSON.stringify(Object.fromEntries(paths), undefined, 2)}\n`
}

/** undefined: there is no such file. */
async function textIn(stateDirectory: string, file: string): Promise<string | undefined> {
  return beside(stateDirectory, () => readFile(file, 'utf8')).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  })
}

/** @throws Error where the text is no such file */
function parsePaths(text: string, file: string): Map<string, NamedDirectory> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value).map(([path, said]) => [path, namedBy(said)] as const)
    if (entries.every((entry): entry is [string, NamedDirectory] => entry[1] !== undefined)) return new Map(entries)
  }
  throw new Error(
    `${file} is not a file of the agent: remove it; what has left the configuration meanwhile is not noticed`,
  )
}

function namedBy(value: unknown): NamedDirectory | undefined {
  const { file, onDrop, left } = (value ?? {}) as Partial<Record<keyof NamedDirectory, unknown>>
  if (typeof file !== 'string' || (onDrop ?? 'remove') !== 'remove' || (left ?? true) !== true) return undefined
  return { file, ...(onDrop === 'remove' && { onDrop }), ...(left === true && { left }) }
}
