import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import type { FileSystem } from '../../durable/file-system.js'
import { OwnFile } from '../../durable/index.js'
import { beside } from '../file-systems.js'
import { statusFileIn, type DirectoryStatus, type OperationStatus, type StatusFile } from './status-file.js'
import { encodeStatusLine, encodeStatusLines, statusLinesIn } from './status-lines.js'

/** So many directories stand in status.json itself. */
const mostInOne = 8

/** Bytes of changes in status.lines, at least, before it is written anew; or as many as its directories take. */
const mostAdded = 64 * 1024

/** What the agent says of itself and its directories. */
export interface CurrentStatus extends StatusFile {
  readonly operations: readonly OperationStatus[]
}

/**
 * Keeps the status on the disk, and writes no more of it than has changed. That the source has confirmed a directory once more is no change:
 * the sign of life has the newest dates.
 */
export class StatusStore {
  readonly #stateDirectory: string
  readonly #file: OwnFile
  readonly #lines: OwnFile
  #id = ''
  /** By path, as written last; undefined: the content of the file is unknown. */
  #directories: ReadonlyMap<string, DirectoryStatus> | undefined
  #operations: readonly OperationStatus[] = []
  #agent: object | undefined
  /** Bytes of the directories in status.lines, and of the lines added since. */
  #size = 0
  #added = 0

  constructor(stateDirectory: string, fs?: FileSystem) {
    this.#stateDirectory = stateDirectory
    this.#file = new OwnFile(statusFileIn(stateDirectory), fs)
    this.#lines = new OwnFile(statusLinesIn(stateDirectory), fs)
  }

  /**
   * Writes the changes, durably. `isDue`: a sign of life in any case. Answers whether it wrote status.json, which is the sign.
   * @throws DurableWriteError: the next call writes all anew
   */
  write(now: CurrentStatus, isDue: boolean): Promise<boolean> {
    return beside(this.#stateDirectory, async () => {
      try {
        return await this.#write(now, isDue)
      } catch (error) {
        this.#directories = undefined
        throw error
      }
    })
  }

  async #write(now: CurrentStatus, isDue: boolean): Promise<boolean> {
    const changed = this.#changed(now.directories)
    const isNews = changed === undefined || changed.length > 0 || !isSameWork(this.#operations, now.operations)
    const isInOne = now.directories.length <= mostInOne
    const agent = { ...now.agent, writtenAt: undefined }
    let isSign = isDue || !isDeepStrictEqual(agent, this.#agent)
    if (isInOne) isSign ||= isNews
    else if (changed === undefined || !(await this.#add(isNews ? { ...now, directories: changed } : undefined))) {
      await this.#writeAnew(now)
      isSign = true
    }
    if (isSign) {
      await this.#file.replace(
        isInOne ? `${JSON.stringify(now, undefined, 2)}\n` : `${JSON.stringify(this.#small(now))}\n`,
      )
      this.#agent = agent
      // What status.json says by itself needs no other file.
      if (isInOne && this.#size > 0) await rm(this.#lines.path, { force: true })
      if (isInOne) this.#size = 0
    }
    this.#operations = now.operations
    this.#directories = new Map(now.directories.map((directory) => [directory.path, directory]))
    return isSign
  }

  /** undefined: there are others than before, or more, or fewer. */
  #changed(now: readonly DirectoryStatus[]): readonly DirectoryStatus[] | undefined {
    const before = this.#directories
    const paths = [...(before?.keys() ?? [])]
    if (before === undefined || paths.length !== now.length) return undefined
    if (now.some(({ path }, index) => path !== paths[index])) return undefined
    return now.filter((directory) => !isSame(before.get(directory.path), directory))
  }

  /** Answers whether status.lines holds the whole status, this change included. */
  async #add(change: CurrentStatus | undefined): Promise<boolean> {
    if (change === undefined) return this.#lines.append('')
    const { agent, directories, operations } = change
    const line = encodeStatusLine({ at: agent.writtenAt, directories, operations })
    this.#added += Buffer.byteLength(line)
    if (this.#added > Math.max(this.#size, mostAdded)) return false
    return this.#lines.append(line)
  }

  /** Before status.json, so that a reader of status.json finds its lines. */
  async #writeAnew({ agent, directories, operations }: CurrentStatus): Promise<void> {
    this.#id = randomBytes(8).toString('hex')
    const text = encodeStatusLines({ id: this.#id, at: agent.writtenAt, directories, operations })
    await this.#lines.replace(text)
    this.#size = Buffer.byteLength(text)
    this.#added = 0
  }

  /** Without the directories: status.lines has them. */
  #small({ agent, directories }: CurrentStatus): StatusFile {
    const written = Date.parse(agent.writtenAt)
    const age = ({ confirmedAt }: DirectoryStatus): number | null =>
      confirmedAt === null ? null : Math.ceil((written - Date.parse(confirmedAt)) / 1000)
    return { agent, directories: [], pieces: { id: this.#id, confirmed: directories.map(age) } }
  }
}

/** A newer confirmation alone is no difference. */
function isSame(before: DirectoryStatus | undefined, now: DirectoryStatus): boolean {
  return before !== undefined && isDeepStrictEqual({ ...before, confirmedAt: now.confirmedAt }, now)
}

/** Times are measured anew at each look. */
function isSameWork(before: readonly OperationStatus[], now: readonly OperationStatus[]): boolean {
  const text = (all: readonly OperationStatus[]): string =>
    JSON.stringify(all.map(({ name, state, attempt }) => [name, state, attempt]))
  return text(before) === text(now)
}
