/** Reads the disk as a careful reader does. */
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Text of each file by its relative path. */
export type Tree = Record<string, string>

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/**
 * The directory's whole content, of one version: the read goes through one descriptor, and starts once more where that
 * version was replaced meanwhile. undefined where there is no such directory.
 */
export function readTree(path: string): Tree | undefined {
  for (;;) {
    let descriptor
    try {
      descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
    try {
      const tree: Tree = {}
      const root = `/proc/self/fd/${descriptor}`
      for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
        const file = join(entry.parentPath, entry.name)
        if (entry.isFile()) tree[file.slice(root.length + 1)] = readFileSync(file, 'utf8')
      }
      if (fstatSync(descriptor).ino === statSync(path).ino) return tree
    } catch (error) {
      if (!isMissing(error)) throw error
    } finally {
      closeSync(descriptor)
    }
  }
}

/** The text of one file of the directory; undefined where it is not there. */
export function readPublished(directory: string, file: string): string | undefined {
  return readTree(directory)?.[file]
}

/**
 * holdfast's entries beside the target that do not belong there once it has come to rest. One lock and one record for each
 * target may stay: `.holdfast-ID.lock`, `.holdfast-ID.SEQ`.
 */
export function leftovers(target: string): string[] {
  const beside = readdirSync(dirname(target)).filter((name) => name !== basename(target))
  const kept = new Set<string>()
  return beside.filter((name) => {
    const kind = /^\.holdfast-([0-9a-f]{16})\.(lock|\d+)$/.exec(name)
    if (!kind) return true
    const key = `${kind[1]} ${kind[2] === 'lock' ? 'lock' : 'record'}`
    if (kept.has(key)) return true
    kept.add(key)
    return false
  })
}
