/*
 * Two trees that change places and may change back, so that neither goes before the caller says so. A publication removes the old content;
 * a rollout must first see the new one work, so it keeps the old one under another name, and ends with `removeTarget`.
 */
import { basename, dirname } from 'node:path'
import {
  probeJournal,
  fsyncAll,
  lock,
  namesFor,
  type TargetNames,
  type Identity,
  identityOf,
  refuseMounted,
  remove,
  checkTarget,
  openAncestors,
  openParent,
  resolve,
  Scope,
  readTree,
} from '../path/index.js'
import { codeOf, isSystemError, messageOf } from '../../errors.js'
import { wrapError } from '../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { isPartOf, removeEntries } from '../keep/index.js'
import type { KnownEntry } from '../record/index.js'
import { openTarget } from '../target/index.js'

/** The directory at a path, distinguished from a later one of the same number; undefined where there is none. */
export async function identityAt(fs: FileSystem, path: string): Promise<Identity | undefined> {
  return inParent(fs, path, 'could not look at', async ({ scope, parent, device, name }) => {
    if ((await fs.look(parent, name)) === undefined) return undefined
    return identityOf(await fs.attributes(await scope.keep(openTarget(fs, path, parent, name, device))))
  })
}

/**
 * Two directories in one parent change places: in one exchange, or, where only one is there, in one rename. Durable on return. What a
 * kill leaves of it has the name of `other`, and goes with that.
 * @throws DurableWriteError; `published: true` where they have changed places and that is not known to be durable
 */
export async function swapPlaces(fs: FileSystem, path: string, other: string): Promise<void> {
  if (dirname(path) !== dirname(other)) throw new TypeError(`${path} and ${other} are not in one directory`)
  await inParent(fs, path, 'could not exchange', async ({ parent, name, ancestors, visible }) => {
    const second = basename(other)
    const [here, there] = [await fs.look(parent, name), await fs.look(parent, second)]
    if (here && there) await fs.rename(parent, name, parent, second, 'exchange')
    else if (there) await fs.rename(parent, second, parent, name, 'noreplace')
    else if (here) await fs.rename(parent, name, parent, second, 'noreplace')
    visible()
    await fsyncAll(fs, [parent, ...ancestors])
    await probeJournal(fs, parent, namesFor(second))
  })
}

/** Makes the places durable that two directories have: a predecessor may have been killed between its exchange and its sync. */
export async function syncPlaces(fs: FileSystem, path: string, other: string): Promise<void> {
  await inParent(fs, path, 'could not sync', async ({ parent, ancestors, visible }) => {
    visible()
    await fsyncAll(fs, [parent, ...ancestors])
    await probeJournal(fs, parent, namesFor(basename(other)))
  })
}

/** The process that uses the entry at a path, or may do so, in a few words; undefined: none, or there is no entry. */
export async function userAt(fs: FileSystem, path: string): Promise<string | undefined> {
  return inParent(fs, path, 'could not look at', async ({ parent, name }) => {
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
  const remains = async ({ scope, parent, name, ancestors, visible }: InParent): Promise<string | undefined> => {
    const names = namesFor(name)
    const isOwn = (entry: string) =>
      names.sequenceOf(entry) !== undefined || names.stagingOf(entry) !== undefined || names.isGeneration(entry)
    const quarantined = await removeKnown(scope, { fs, parent, name, names, visible }, known)
    visible()
    for (const entry of await fs.list(parent)) if (isOwn(entry)) await remove(fs, parent, entry)
    await fsyncAll(fs, [parent, ...ancestors])
    return quarantined
  }
  return inParent(fs, path, 'could not remove', remains, changed)
}

interface Kept {
  readonly fs: FileSystem
  readonly parent: Descriptor
  readonly name: string
  readonly names: TargetNames
  readonly visible: () => void
}

/** Answers the new name of a directory with unknown entries. */
async function removeKnown(
  scope: Scope,
  { fs, parent, name, names, visible }: Kept,
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

interface InParent {
  readonly scope: Scope
  readonly parent: Descriptor
  readonly device: number
  readonly name: string
  readonly ancestors: readonly Descriptor[]
  readonly visible: () => void
}

/** Works in the parent under the lock of the path's target. `changed`: the state that a failure leaves after `visible`. */
async function inParent<T>(
  fs: FileSystem,
  path: string,
  doing: string,
  work: (site: InParent) => Promise<T>,
  changed?: string,
): Promise<T> {
  const scope = new Scope(fs)
  let published = false
  try {
    const place = await resolve(scope, checkTarget(path))
    const parent = await openParent(scope, place)
    const { directory, attributes } = parent
    await lock(scope, { parent, name: namesFor(place.name).lock, target: path, timeout: 0, signal: undefined })
    const ancestors = await openAncestors(scope, place, directory)
    return await work({
      scope,
      parent: directory,
      device: attributes.device,
      name: place.name,
      ancestors,
      visible: () => (published = true),
    })
  } catch (error) {
    throw isSystemError(error) ? wrapError(path, error, published, `${doing} ${path}`, changed) : error
  } finally {
    await scope.closeAll()
  }
}
