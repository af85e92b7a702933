import { type DurableWriteError, foreign, leftAsItWas, unfit } from './errors.js'
import type { HoldOptions } from './hold.js'
import type { PublishedContent } from './published-content.js'
import type { StoredRecord } from './record.js'
import type { DirectoryRequest, PublicationOptions, Relocation } from './types.js'

/* The old path of a directory that moves: what is published there, and what is refused. See relocation.ts. */

export interface RelocationOptions extends HoldOptions, Pick<Relocation, 'from' | 'as'> {
  /** Milliseconds that both paths stay at least. */
  readonly keep: number
  /** Runs what works at the new path: where each file system has its own threads, with those. Default: as the rest. */
  readonly atNew?: <T>(work: () => Promise<T>) => Promise<T>
  /** Who uses the old path that is no process, in a few words. Default: nobody. */
  readonly usedBy?: () => Promise<string | undefined>
  /** Of the publications of the old path; its form, modes and owner stay what they are. */
  readonly publication?: Pick<PublicationOptions, 'hooks' | 'publisher' | 'retire' | 'retireTimeout' | 'requireProven'>
}

/**
 * The content of the new path in the form, with the modes and for the owner of the old one; what the old one did not have gets the modes
 * that it has at the new one.
 */
export function requestFor(
  old: StoredRecord,
  { record, files }: PublishedContent,
  { from, publication, lockTimeout = 0, signal, log }: RelocationOptions,
): DirectoryRequest & PublicationOptions {
  const [root] = old.entries
  const ofFiles = [...record.entries, ...old.entries].filter(({ type }) => type === 'file')
  const modes = new Map(ofFiles.map(({ path, mode }) => [path, mode]))
  const empty = record.entries.filter(({ type, path }) => type === 'directory' && path !== '')
  return {
    ...publication,
    target: from,
    files: Object.fromEntries([...files].map(([path, content]) => [path, { content, mode: modes.get(path) }])),
    contentStays: true,
    mode: root?.mode,
    owner: root && { uid: root.uid, gid: root.gid },
    ...(old.keepsAttributes === true && { attributes: 'keep' }),
    objects: [...record.objects],
    // Its own keys are the new path's now, and so are their copies.
    history: { keep: 0, maxAge: null },
    ...(old.kind === 'symlink'
      ? { publish: 'symlink', retire: 'immediately' }
      : { emptyDirectories: empty.map(({ path }) => path) }),
    // An operator's rollback of the old path stays until he releases it.
    supersedes: () => false,
    lockTimeout,
    ...(signal && { signal }),
    ...(log && { log }),
  }
}

export function notOurs(from: string, to: string): DurableWriteError {
  return foreign(`holdfast has published nothing at ${from}, which is to move to ${to}`, from, {
    state: leftAsItWas(from),
    advice: 'leave out movedFrom, and move away what is there once nobody needs it',
  })
}

export function notDirectory(from: string): DurableWriteError {
  return unfit(`${from} is a file, and only directories can move`, {
    code: 'ENOTDIR',
    syscall: 'lstat',
    path: from,
    advice: 'leave out movedFrom',
  })
}
