import { promises as fsp } from 'node:fs'
import { type Descriptor, type FileSystem, Scope } from '../durable/index.js'
import { fault, inBytes, ok, warn, type CheckResult } from './findings.js'

/** Below this many free bytes and inodes there is little room for anything. */
const lowBytes = 16 * 1024 * 1024
const lowInodes = 128

/** What a directory takes: bytes in whole blocks, and inodes. */
export interface Usage {
  readonly bytes: number
  readonly inodes: number
}

export interface Free {
  readonly bytes: number
  /** undefined: the file system makes inodes as they are needed. */
  readonly inodes: number | undefined
}

/** What a target holds now; the next publication needs as much again beside it. */
export async function usageOf(fs: FileSystem, target: Descriptor, blockSize: number): Promise<Usage> {
  const scope = new Scope(fs)
  let [bytes, inodes] = [0, 0]
  const add = async (directory: Descriptor): Promise<void> => {
    bytes += blockSize
    inodes += 1
    for (const name of await fs.list(directory)) {
      const entry = await fs.look(directory, name)
      if (entry?.type === 'directory') {
        const opened = await scope.keep(fs.openDirectory(directory, name))
        await add(opened)
        await scope.close(opened)
      } else if (entry !== undefined) {
        bytes += Math.ceil(entry.size / blockSize) * blockSize
        inodes += 1
      }
    }
  }
  try {
    await add(target)
    return { bytes, inodes }
  } finally {
    await scope.closeAll()
  }
}

export async function freeOn(directory: Descriptor): Promise<Free & { blockSize: number }> {
  const { bsize, bavail, files, ffree } = await fsp.statfs(`/proc/self/fd/${directory}`)
  return { bytes: bavail * bsize, inodes: files === 0 ? undefined : ffree, blockSize: bsize }
}

/** Old and new are on the disk together until the old content is removed; while a second publication waits, twice as much. */
export function checkSpace(free: Free, used: Usage | undefined): CheckResult[] {
  return [
    amountResult('space', free.bytes, used?.bytes ?? 0, lowBytes, inBytes),
    free.inodes === undefined
      ? ok('inodes', 'this file system creates them as needed')
      : amountResult('inodes', free.inodes, used?.inodes ?? 0, lowInodes, String),
  ]
}

function amountResult(
  check: 'space' | 'inodes',
  free: number,
  used: number,
  low: number,
  show: (amount: number) => string,
): CheckResult {
  const found = used > 0 ? `${show(free)} free; the target takes ${show(used)}` : `${show(free)} free`
  const more = check === 'space' ? 'free up space on this file system' : 'remove files on this file system'
  if (free < used) return fault(check, `${found}, and the next publication needs as much again beside it`, more)
  if (free < 2 * used) return warn(check, `${found}; keep twice that free`, more)
  if (free < low) return warn(check, found, more)
  return ok(check, found)
}
