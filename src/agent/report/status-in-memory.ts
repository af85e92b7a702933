import { closeSync, writeFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { createMemoryFile } from '../../../native/index.js'
import { parseStatus, type StatusDocument } from './status-file.js'

/*
 * While the disk of the stateDirectory does not answer, the status is in a file in memory of the agent's process. `holdfast status` finds it
 * among the descriptors of the processes: that asks no disk, and needs no socket. Only the agent's user and root may open it.
 */

/** The kernel takes 249 bytes: of a longer path, the end. */
function nameFor(stateDirectory: string): string {
  return `holdfast-status:${Buffer.from(stateDirectory).subarray(-200).toString('latin1')}`
}

export class StatusInMemory {
  #file: number | undefined

  constructor(private readonly stateDirectory: string) {}

  /** Replaces what is there as a whole. Throws the system's error. */
  write(text: string): void {
    const before = this.#file
    const file = createMemoryFile(nameFor(this.stateDirectory))
    writeFileSync(file, text)
    this.#file = file
    if (before !== undefined) closeSync(before)
  }

  /** The disk has the status again. */
  drop(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

/** The status that a running agent keeps in memory; undefined: none does, or this user may not see it. */
export async function readStatusInMemory(stateDirectory: string): Promise<StatusDocument | undefined> {
  const link = `/memfd:${nameFor(stateDirectory)} (deleted)`
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const directory = `/proc/${pid}/fd`
    // Processes of other users, and those that end meanwhile.
    for (const file of await readdir(directory).catch(() => [])) {
      const path = `${directory}/${file}`
      if ((await readlink(path).catch(() => '')) !== link) continue
      // The agent may just replace it: then the next one has the whole text.
      const document = parseStatus(await readFile(path, 'utf8').catch(() => ''))
      if (document !== undefined) return document
    }
  }
  return undefined
}
