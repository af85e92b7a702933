import { closeSync, constants, writeFileSync } from 'node:fs'
import { open, readdir, readlink } from 'node:fs/promises'
import { createMemoryFile } from '../../../native/index.js'
import { parseStatus, type StatusDocument } from './status-file.js'

/*
 * While the disk of the stateDirectory does not answer, the status is in a file in memory of the agent's process. `holdfast status` finds it
 * among the descriptors of the processes: that asks no disk, and needs no socket. Only the agent's user and root may open it. Any process can
 * make a file of this name: so a reader takes only a file of root or of its own user, by a process in its own mount namespace, where another
 * container's root is not.
 */

/** The kernel takes 249 bytes: of a longer path, the end. */
function nameFor(stateDirectory: string): string {
  return `holdfast-status:${Buffer.from(stateDirectory).subarray(-200).toString('latin1')}`
}

export class StatusInMemory {
  /** The last two: a reader that has listed the descriptors finds one of them whole, in spite of the next write. */
  #files: readonly number[] = []

  constructor(private readonly stateDirectory: string) {}

  /** Replaces the whole text. Throws the system's error. */
  write(text: string): void {
    const file = createMemoryFile(nameFor(this.stateDirectory))
    const [last, ...older] = this.#files
    this.#files = last === undefined ? [file] : [file, last]
    writeFileSync(file, text)
    older.forEach((one) => closeSync(one))
  }

  /** The disk has the status again. */
  drop(): void {
    this.#files.forEach((file) => closeSync(file))
    this.#files = []
  }
}

/** The status that a running agent keeps in memory; undefined: no agent does, or this user may not see it. */
export async function readStatusInMemory(stateDirectory: string): Promise<StatusDocument | undefined> {
  const link = `/memfd:${nameFor(stateDirectory)} (deleted)`
  const namespaceOf = (pid: string) => readlink(`/proc/${pid}/ns/mnt`).catch(() => undefined)
  const own = await namespaceOf('self')
  let newest: StatusDocument | undefined
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || (await namespaceOf(pid)) !== own) continue
    const directory = `/proc/${pid}/fd`
    // Processes of other users, and those that end meanwhile.
    for (const file of await readdir(directory).catch(() => [])) {
      const path = `${directory}/${file}`
      if ((await readlink(path).catch(() => '')) !== link) continue
      // Not whole while the agent writes it.
      const document = parseStatus(await readTrusted(path).catch(() => ''))
      if (document !== undefined && writtenAt(document) > writtenAt(newest)) newest = document
    }
  }
  return newest
}

function writtenAt(document: StatusDocument | undefined): string {
  return document?.agent?.writtenAt ?? ''
}

async function readTrusted(path: string): Promise<string> {
  // A pipe in its place, or a lease of its owner, would hold open(2) up.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = await file.stat()
    const isTrusted = status.isFile() && (status.uid === 0 || status.uid === process.geteuid?.())
    return isTrusted ? await file.readFile('utf8') : ''
  } finally {
    await file.close()
  }
}
