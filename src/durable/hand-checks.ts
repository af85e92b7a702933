import { basename } from 'node:path'
import { foreign, unfit } from './errors.js'
import type { FileSystem } from './file-system.js'
import { isLeftLink, leftLinks } from './left-link.js'
import { isThere, notWhole, recordOf, wordOn } from './old-path.js'
import { mountOf } from './proof.js'
import { withRecord } from './record-files.js'
import type { RelocationProgress } from './relocation.js'
import type { MovedFromForm } from './types.js'

/* What a person who moves a directory by hand is warned of, or refused, beyond what relocation.ts says. */

/** What to do about that for which a move waits. */
export async function withAdvice(
  fs: FileSystem,
  from: string,
  to: string,
  progress: RelocationProgress,
): Promise<RelocationProgress> {
  const { state, waits } = progress
  if (waits === undefined || state === 'staged') return progress
  if (state === undefined || waits === notWhole(to)) return { ...progress, advice: 'publish it again' }
  const old = await recordOf(fs, from)
  if (old === undefined) return { ...progress, advice: 'mount its disk' }
  const isKept = wordOn(from, old, fs.now()) !== undefined
  return { ...progress, advice: isKept ? `run "holdfast release ${from}"` : `have its users open ${to}` }
}

/** What a finished move has left at the old path, by a look there. @throws DurableWriteError: somebody has put something else there */
export async function leftAt(fs: FileSystem, from: string, to: string): Promise<MovedFromForm> {
  const left = await withRecord<MovedFromForm>(fs, from, async (parent, name, records) => {
    const entry = await fs.look(parent, name)
    if (entry === undefined) return 'removed'
    if (await isLeftLink(fs, parent, name, leftLinks(records))) return 'link'
    throw foreign(`${from} is not what holdfast left there when it moved to ${to}`, from, {
      ...{ state: 'nothing was changed', advice: 'see what it is, and move it away' },
    })
  })
  return left ?? 'removed'
}

/** A move that is done, and whose content somebody has taken away since, is not said to be done. */
export async function refuseGone(fs: FileSystem, from: string, to: string): Promise<void> {
  if (await isThere(fs, to, basename(to))) return
  throw unfit(`${from} has moved to ${to}, and is not there any more`, {
    ...{ code: 'ENOENT', syscall: 'lstat', path: to },
    advice: 'put it back, or publish it again',
  })
}

/** What is durable would go, and what is left is perhaps not. */
export async function refuseLess(fs: FileSystem, from: string, to: string): Promise<void> {
  const [old, now] = [await mountOf(fs, from), await mountOf(fs, to)]
  if (!old.proven) return
  throw unfit(`${from} is on ${old.type}, where durability is proven, and ${to} is on ${now.type}, where it is not`, {
    ...{ code: 'ENOTSUP', syscall: 'fstatfs', path: to },
    advice: 'choose a new path on such a file system; to give up the durable copy, use --force',
  })
}
