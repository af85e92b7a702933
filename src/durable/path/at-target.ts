import { failureOf } from '../../errors.js'
import { wrapError } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { fsyncAll, probeJournal } from './barrier.js'
import { lock } from './lock.js'
import { checkTarget, namesFor, type TargetNames } from './names.js'
import { remove } from './remove.js'
import { openAncestors, openParent, resolve } from './resolve.js'
import { inScope, type Scope } from './scope.js'

/* Work at one path, and the steps of a change there. publish.ts has those of a batch of targets, which shares its barriers. */

/** What is open while something works at a path. */
export interface AtTarget {
  readonly fs: FileSystem
  readonly scope: Scope
  readonly name: string
  readonly names: TargetNames
  /** Open, and made where it was missing. */
  readonly parent: Descriptor
  readonly attributes: Attributes
  /** Opens every directory above the parent: another program may have renamed one, without a sync. */
  readonly above: () => Promise<Descriptor[]>
  /** From here on readers see a change, and an error says so. */
  readonly visible: () => void
}

interface Work {
  /** As an error begins, before the path. */
  readonly doing: string
  /** Under the lock of the target there; default false. */
  readonly locks?: boolean
  /** The state that a failure leaves once the change is visible. Default: that of a publication. */
  readonly changed?: string
}

/** Works at a path. @throws DurableWriteError; `published: true` once the change is visible */
export async function atTarget<T>(
  fs: FileSystem,
  path: string,
  { doing, locks = false, changed }: Work,
  work: (at: AtTarget) => Promise<T>,
): Promise<T> {
  let published = false
  try {
    return await inScope(fs, async (scope) => {
      const place = await resolve(scope, checkTarget(path))
      const { name } = place
      const names = namesFor(name)
      const parent = await openParent(scope, place)
      if (locks) await lock(scope, { parent, name: names.lock, target: path, timeout: 0, signal: undefined })
      const { directory, attributes } = parent
      const above = (): Promise<Descriptor[]> => openAncestors(scope, place, directory)
      return work({ fs, scope, name, names, parent: directory, attributes, above, visible: () => (published = true) })
    })
  } catch (error) {
    throw wrapError(path, error, published, `${doing} ${path}`, changed)
  }
}

type Area = Pick<AtTarget, 'fs' | 'parent' | 'names'>

/**
 * Puts what `make` makes in the place of an entry, by one rename, and answers what `make` does. That gets the name to make it under, and has
 * synced it. Durable once `settle` has run.
 */
export async function replaceEntry<T>(
  { fs, parent, names }: Area,
  name: string,
  make: (staging: string) => Promise<T>,
): Promise<T> {
  const staging = names.staging(fs.random())
  try {
    const made = await make(staging)
    await fs.rename(parent, staging, parent, name, 'replace')
    return made
  } catch (error) {
    // What stays all the same has a staging name, and goes with the next recovery.
    await failureOf(remove(fs, parent, staging))
    throw error
  }
}

/** The end of each change: fsync of all that is open, and then a change of the parent, which fails where the file system has shut down. */
export async function settle({ fs, parent, names }: Area, open: readonly Descriptor[]): Promise<void> {
  await fsyncAll(fs, open)
  await probeJournal(fs, parent, names)
}
