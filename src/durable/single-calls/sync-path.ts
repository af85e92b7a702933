import { join } from 'node:path'
import { ready } from '../../../native/index.js'
import { absolutePath } from '../../absolute-path.js'
import {
  fsyncAll,
  inScope,
  namesFor,
  settle,
  unprovenRefused,
  checkPath,
  checkTarget,
  openAncestors,
  type Place,
  resolve,
  type Scope,
} from '../path/index.js'
import { DurableWriteError, wrapError, wrapped } from '../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import type { SyncOptions } from '../types.js'

/** fsync of a file or a directory; symbolic links in its last part are refused. Throws DurableWriteError. */
export async function syncPath(fs: FileSystem, path: string, { requireProven }: SyncOptions = {}): Promise<void> {
  const absolute = absolutePath(checkPath(path))
  await ready()
  const sync = async (scope: Scope): Promise<void> => {
    const opened = absolute === '/' ? await scope.keep(fs.openPath('/')) : await openAny(scope, absolute)
    if (requireProven === true) await refuseUnproven(fs, absolute, opened)
    await fsyncAll(fs, [opened])
  }
  await wrapped(path, `could not sync ${path}`, inScope(fs, sync))
}

async function openAny(scope: Scope, path: string): Promise<Descriptor> {
  const { fs } = scope
  const { anchor, name, realParent } = await place(scope, path)
  const entry = await fs.look(anchor, name)
  if (entry === undefined) throw missing(path, 'open')
  // A mount point may be synced as any other directory.
  return scope.keep(entry.type === 'directory' ? fs.openPath(join(realParent, name)) : fs.openFile(anchor, name))
}

async function refuseUnproven(fs: FileSystem, path: string, opened: Descriptor): Promise<void> {
  const { proven, type } = await fs.mount(opened)
  if (!proven) throw unprovenRefused(path, type, 'leave out requireProven')
}

async function place(scope: Scope, path: string): Promise<Place> {
  const found = await resolve(scope, path)
  if (found.missing.length === 0) return found
  throw missing(path)
}

function missing(path: string, syscall = 'openat2'): DurableWriteError {
  return new DurableWriteError(`${path} does not exist`, {
    code: 'ENOENT',
    state: 'nothing was changed',
    syscall,
    path,
  })
}

/**
 * RENAME_EXCHANGE of two paths of any kind, then fsync of both parents and their ancestors. Throws DurableWriteError; `published: true`
 * when they have changed places, perhaps not durably.
 */
export async function exchange(
  fs: FileSystem,
  a: string,
  b: string,
  { requireProven }: SyncOptions = {},
): Promise<void> {
  const paths = [checkTarget(a), checkTarget(b)] as const
  await ready()
  let published = false
  const change = async (scope: Scope): Promise<void> => {
    const first = await place(scope, paths[0])
    const second = await place(scope, paths[1])
    for (const { anchor, name, target } of [first, second]) {
      if ((await fs.look(anchor, name)) === undefined) throw missing(target)
    }
    // Both, or EXDEV.
    if (requireProven === true) await refuseUnproven(fs, a, first.anchor)
    await fs.rename(first.anchor, first.name, second.anchor, second.name, 'exchange')
    published = true
    const above: Descriptor[] = []
    for (const one of [first, second]) above.push(...(await openAncestors(scope, one, one.anchor)))
    const area = { fs, parent: second.anchor, names: namesFor(second.name) }
    await settle(area, [first.anchor, second.anchor, ...above])
  }
  try {
    await inScope(fs, change)
  } catch (error) {
    throw wrapError(a, error, published, `could not exchange ${a} and ${b}`)
  }
}

/**
 * fsync of the targets' parents, and of the targets themselves (a symlink directory removes its generations inside), so that
 * removed content, private keys among it, does not come back.
 */
export async function syncParents(fs: FileSystem, targets: readonly string[]): Promise<void> {
  const sync = async (scope: Scope): Promise<void> => {
    const synced = new Map<string, Descriptor>()
    for (const target of targets) {
      const { anchor, name, realParent, missing } = await resolve(scope, checkTarget(target))
      if (missing.length > 0) continue
      synced.set(realParent, anchor)
      if ((await fs.look(anchor, name))?.type !== 'directory') continue
      const path = join(realParent, name)
      synced.set(path, await scope.keep(fs.openPath(path)))
    }
    await fsyncAll(fs, [...synced.values()])
  }
  await wrapped(targets[0] ?? '', 'could not sync the parents of the targets', inScope(fs, sync))
}
