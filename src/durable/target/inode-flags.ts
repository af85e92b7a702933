import { listed } from '../../listed.js'
import { unfit } from '../errors.js'
import type { Attributes } from '../file-system.js'
import type { TreeEntry } from '../path/index.js'

/*
 * Attributes that statx(2) tells (STATX_ATTR_… of linux/stat.h). New content is made beside the target, and has of them what the parent
 * passes on. docs/durability.md has the whole table, with those that only an ioctl tells: `check` looks at these.
 */

const encrypted = 0x800

/** What an entry has for itself, and an administrator has to give to new content again. */
const told = [
  [0x10, 'immutable (chattr +i)'],
  [0x20, 'append-only (chattr +a)'],
  [0x10_0000, 'fs-verity'],
] as const

type Entries = { readonly entries: readonly Pick<TreeEntry, 'path' | 'flags'>[] } | undefined

/** A copy in a directory without fscrypt(8) would have the new keys on the disk in the clear. `parent`: of the target at `path`. */
export function refuseDecrypted(path: string, tree: Entries, parent: Pick<Attributes, 'flags'>): void {
  if ((parent.flags & encrypted) !== 0) return
  const found = tree?.entries.find(({ flags = 0 }) => (flags & encrypted) !== 0)
  if (found === undefined) return
  const shown = found.path === '' ? path : `${path}/${found.path}`
  throw unfit(`${shown} is encrypted, and new content beside it would not be`, {
    code: 'ENOTSUP',
    syscall: 'statx',
    path: shown,
    advice: `encrypt the directory that holds ${path} (fscrypt encrypt), or remove ${shown} first`,
  })
}

/** What entries of the old content have and the new ones will not, in words. */
export function lostFlags(tree: Entries): string[] {
  return told.flatMap(([bit, name]) => {
    const having = tree?.entries.filter(({ flags = 0 }) => (flags & bit) !== 0).map(({ path }) => path || '.') ?? []
    return having.length === 0 ? [] : [`${name} (${listed(having, 3)})`]
  })
}
