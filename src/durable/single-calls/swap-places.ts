/*
 * Two trees that change places and may change back, so that neither goes before the caller says so. A publication removes the old content;
 * a rollout must first see the new one work, so it keeps the old one under another name, and ends with `removeTarget`.
 */
import { basename, dirname } from 'node:path'
import {
  atTarget,
  type AtTarget,
  fsyncAll,
  type Identity,
  identityOf,
  lock,
  namesFor,
  readTree,
  refuseMounted,
  remove,
  settle,
} from '../path/index.js'
import { codeOf, messageOf } from '../../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { isPartOf, removeEntries } from '../keep/index.js'
import type { KnownEntry } from '../record/index.js'
import { openTarget } from '../target/index.js'

/** The directory at a path, distinguished from a later one of the same number; undefined where there is none. */
export async function identityAt(fs: FileSystem, path: string): Promise<Identity | undefined> {
  return underLock(fs, path, 'could not look at', async ({ scope, parent, attributes, name }) => {
    if ((await fs.look(parent, name)) === undefined) return undefined
    return identityOf((await openTarget(scope, path, { directory: parent, attributes }, name)).attributes)
  })
}

/**
 * Two directories in one parent change places: in one exchange, or, where only one is there, in one rename. Durable on return. What a
 * kill leaves of it has the name of `other`, and goes with that.
 * @throws DurableWriteError; `published: true` where they have changed places and that is not known to be durable
 */
export async function swapPlaces(fs: FileSystem, path: string, other: string): Promise<void> {
  if (dirname(path) !== dirname(other)) throw new TypeError(`${path} and ${other} are not in one directory`)
  await underLock(fs, path, 'could not exchange', async (at) => {
    const { parent, name } = at
    const above = await at.above()
    const second = basename(other)
    const [here, there] = [await fs.look(parent, name), await fs.look(parent, second)]
    if (here && there) await fs.rename(parent, name, parent, second, 'exchange')
    else if (there) await fs.rename(parent, second, parent, name, 'noreplace')
    else if (here) await fs.rename(parent, name, parent, second, 'noreplace')
    at.visible()
    await settle({ ...at, names: namesFor(second) }, [parent, ...above])
  })
}

/** Makes the places durable that two directories have: a predecessor may have been killed between its exchange and its sync. */
export async function syncPlaces(fs: FileSystem, path: string, other: string): Promise<void> {
  await underLock(fs, path, 'could not sync', async (at) => {
    const above = await at.above()
    at.visible()
    await settle({ ...at, names: namesFor(basename(other)) }, [at.parent, ...above])
  })
}

/** The process that uses the entry at a path, or may do so, in a few words; undefined: none, or there is no entry. */
export async function userAt(fs: FileSystem, path: string): Promise<string | undefined> {
  return underLock(fs, path, 'could not look at', async ({ parent, name }) => {
    if ((await fs.look(parent, name)) === undefined) return undefined
    return fs.userOf(parent, name).catch((error: unknown) => `it cannot be looked at: ${messageOf(error)}`)
  })
}

/** What an open directory holds, as `removeTarget` expects it. */
export async function knownContent(fs: FileSystem, directory: Descriptor): Promise<KnownEntry[]> {
  const { entries } = await readTree(fs, directory, false)
  return entries.map(({ path, type, sha256 }) => ({ path, type, sha256 }))
}

/**
 * Removes a published directory, its records, its earlier contents and staged leftovers, durably. Missing ones are no failure. `known`: its
 * entries by this program's knowledge. A directory with other entries gets another name, which no cleanup touches, and the call returns
 * that name.
 */
export async function removeTarget(
  fs: FileSystem,
  path: string,
  known: readonly KnownEntry[],
): Promise<string | undefined> {
  const changed = `part of ${path}, or of what is kept beside it, may be gone: repeat the call`
  const removing = async (at: AtTarget): Promise<string | undefined> => {
    const { parent, names } = at
    const above = await at.above()
    const isOwn = (entry: string) =>
      names.sequenceOf(entry) !== undefined || names.stagingOf(entry) !== undefined || names.isGeneration(entry)
    const quarantined = await removeKnown(at, known)
    at.visible()
    for (const entry of await fs.list(parent)) if (isOwn(entry)) await remove(fs, parent, entry)
    await fsyncAll(fs, [parent, ...above])
    return quarantined
  }
  return underLock(fs, path, 'could not remove', removing, changed)
}

/** Answers the new name of a directory with unknown entries. */
async function removeKnown(
  { fs, scope, parent, name, names, visible }: AtTarget,
  known: readonly KnownEntry[],
): Promise<string | undefined> {
  const found = await fs.look(parent, name)
  if (found === undefined) return undefined
  if (found.type === 'directory') {
    const opened = await scope.keep(fs.openDirectory(parent, name))
    await refuseMounted(fs, opened)
    try {
      if (await isPartOf(fs, parent, name, known)) {
        visible()
        await removeEntries(fs, opened, known)
        await fs.removeDirectory(parent, name)
        return undefined
      }
    } catch (error) {
      // Another program has added files since the check.
      if (codeOf(error) !== 'ENOTEMPTY') throw error
    }
  }
  const quarantined = names.quarantine(fs.random())
  await fs.rename(parent, name, parent, quarantined, 'noreplace')
  return quarantined
}

/** Works at a path under the lock of its target: see atTarget. */
async function underLock<T>(
  fs: FileSystem,
  path: string,
  doing: string,
  work: (at: AtTarget) => Promise<T>,
  changed?: string,
): Promise<T> {
  return atTarget(fs, path, { doing, changed }, async (at) => {
    const { scope, parent: directory, attributes, names } = at
    const parent = { directory, attributes }
    await lock(scope, { parent, name: names.lock, target: path, timeout: 0, signal: undefined })
    return work(at)
  })
}
