import { lstatSync, readdirSync, type Stats } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Owner } from '../../durable/types.js'
import { codeOf } from '../../errors.js'

/* A directory of holdfast's own that `replace` copies to another path: that gets its modes, owner and form, too. */

export interface PublishedSource {
  readonly mode: number
  readonly owner: Owner
  readonly form: 'exchange' | 'symlink'
  /** The mode of a file in it, from the file's st_mode. */
  readonly modeOf: (path: string, mode: number) => Promise<number>
}

/** undefined where holdfast has published no directory at `from`. */
export async function findPublishedSource(from: string): Promise<PublishedSource | undefined> {
  const path = resolve(from)
  // Most sources have nothing of holdfast's beside them: then the half of the core that reads records is not loaded.
  if (!hasRecords(dirname(path))) return undefined
  const { readRecord } = await import('../../durable/index.js')
  const said = await readRecord(path).catch((error: unknown) => {
    // A user without the right to read its record copies it as any other directory.
    if (codeOf(error) === 'EACCES') return undefined
    throw error
  })
  const status = statOrNone(path)
  const form = said?.form === 'file' ? undefined : said?.form
  if (form === undefined || status?.isDirectory() !== true) return undefined
  const { modeAt } = await import('../../durable/publishing.js')
  const modeOf = (at: string, mode: number): Promise<number> => modeAt(at, mode & 0o7777)
  return { form, mode: await modeOf(path, status.mode), owner: { uid: status.uid, gid: status.gid }, modeOf }
}

/** Whether a publication in the form of links is possible: the target is new, or has this form already. */
export function takesLinks(target: string): boolean {
  return statOrNone(target) === undefined || statOrNone(join(target, '..data'))?.isSymbolicLink() === true
}

function hasRecords(directory: string): boolean {
  try {
    return readdirSync(directory).some((name) => name.startsWith('.holdfast-'))
  } catch {
    // The caller reads the source next, and reports why it cannot.
    return false
  }
}

function statOrNone(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}
