import { basename, dirname, join } from 'node:path'
import {
  atPlace,
  atTarget,
  fsyncAll,
  isUnproven,
  listsDigest,
  otherLists,
  type HeldLock,
  lockFile,
  namesFor,
  type TargetNames,
  remove,
  replaceEntry,
  settle,
  type CopyOptions,
  checkTarget,
  openAncestors,
  type Place,
  resolveLinks,
  type Scope,
  syncBelow,
} from '../path/index.js'
import { DurableWriteError, leftAsItWas, wrapped } from '../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { quarantineForeign } from '../keep/index.js'
import { readPublication } from '../look/index.js'
import { compare, readAllRecords } from '../record/index.js'
import type { Log } from '../../log.js'
import { system } from '../posix/index.js'
import {
  publish,
  resultsOf,
  type DirectoryChange,
  directoryPublication,
  filePublication,
  type PublicationRequest,
} from '../publish/index.js'
import type { Outcome, PublicationOptions, RecordedObject, ReplaceFileOptions, ReplaceResult } from '../types.js'

/*
 * Durable single calls beside publications: batches that fail as one, links, removals, locks, trees. All of it goes through the FileSystem
 * interface, so that a test can stop it at each call. Errors are DurableWriteErrors.
 */

export type DirectoryPublicationRequest = PublicationRequest & CopyOptions

export interface FileRequest {
  readonly path: string
  readonly content: Uint8Array
  readonly options: ReplaceFileOptions & PublicationOptions
}

export interface Difference {
  /** The target exists. */
  readonly exists: boolean
  readonly changes: readonly DirectoryChange[]
  /** Of the desired content. */
  readonly digest: string
  /** Of the desired ACLs, which `digest` leaves out; null: none. */
  readonly lists: string | null
}

export class DurableCalls {
  constructor(readonly fs: FileSystem = system) {}

  /**
   * Publishes directories, with one barrier before and one after for all of them. Those that did not fail stay published.
   * @throws DurableWriteError of the gravest failure: unknown durability before all others
   */
  async publishDirectories(
    requests: readonly DirectoryPublicationRequest[],
    signal: AbortSignal | undefined,
  ): Promise<ReplaceResult[]> {
    return resultsOf(
      await publish(
        requests.map((request) => directoryPublication(this.fs, request)),
        signal,
      ),
    )
  }

  /** The same for files. */
  async publishFiles(requests: readonly FileRequest[], signal: AbortSignal | undefined): Promise<ReplaceResult[]> {
    return resultsOf(
      await publish(
        requests.map(({ path, content, options }) => filePublication(this.fs, path, content, options)),
        signal,
      ),
    )
  }

  /** How a directory differs from its request. Writes nothing. */
  async difference(request: DirectoryPublicationRequest): Promise<Difference> {
    const publication = directoryPublication(this.fs, request)
    const { desired, found } = await previewOf(publication)
    const kinds = { missing: 'add', unexpected: 'remove' } as const
    const changes = compare(desired, found).map(({ path, problem }) => ({
      path,
      change: problem === 'missing' || problem === 'unexpected' ? kinds[problem] : ('change' as const),
    }))
    const listed = otherLists(request.entries, found?.entries ?? [])
    const all = [...changes, ...listed.map((path) => ({ path, change: 'change' as const }))]
    return { exists: found !== undefined, changes: all, digest: desired.digest, lists: listsDigest(request.entries) }
  }

  /** What publishing a file would do, as far as looking can show: throws what publishing would throw. Writes nothing. */
  async previewFile({ path, content, options }: FileRequest): Promise<{ outcome: Outcome; digest: string }> {
    const { outcome, desired } = await previewOf(filePublication(this.fs, path, content, options))
    return { outcome, digest: desired.digest }
  }

  /** Whether a target equals its record, and is known to be durable; undefined where it has no record. */
  async isCommitted(target: string): Promise<boolean | undefined> {
    const known = await wrapped(target, `could not read ${target}`, readPublication(this.fs, target))
    return known && known.durable && known.digest === known.actual
  }

  /** Whether what holdfast published at a path has been changed; undefined where it has published nothing. */
  async isDrifted(target: string): Promise<boolean | undefined> {
    const known = await wrapped(target, `could not read ${target}`, readPublication(this.fs, target))
    return known && known.digest !== known.actual
  }

  /** The objects that a target was last published from. */
  async recordedObjects(target: string): Promise<readonly RecordedObject[]> {
    return (await wrapped(target, `could not read ${target}`, readPublication(this.fs, target)))?.objects ?? []
  }

  /** Takes an advisory lock on a file: see lock.ts. `state`: the state of the disk before the lock, for the message. */
  async lock(
    path: string,
    timeout: number,
    signal: AbortSignal | undefined,
    state = 'nothing was changed',
  ): Promise<HeldLock> {
    return lockFile(this.fs, path, timeout, signal, state)
  }

  /** Makes a symbolic link with this text, in place of the present one: atomically, and durable on return. */
  async replaceLink(path: string, text: string): Promise<void> {
    await atTarget(this.fs, path, { doing: 'could not create the link' }, async (at) => {
      const { parent, name, names } = at
      const above = await at.above()
      for (const entry of await this.fs.list(parent)) {
        if (names.stagingOf(entry) !== undefined) await remove(this.fs, parent, entry)
      }
      const found = await this.fs.look(parent, name)
      if (found !== undefined && found.type !== 'symlink' && found.type !== 'file') {
        throw new DurableWriteError(`${path} is not a symbolic link`, {
          code: 'EEXIST',
          syscall: 'lstat',
          path,
          reason: 'TargetForeign',
          state: leftAsItWas(path),
          advice: 'move it away',
        })
      }
      // The same already: a predecessor may have been killed before its sync.
      if (found?.type !== 'symlink' || (await this.fs.readLink(parent, name)) !== text)
        await replaceEntry(at, name, (staging) => this.fs.createLink(parent, staging, text))
      at.visible()
      await settle(at, [parent, ...above])
    })
  }

  /** Removes what a publication of this path, or of this link, left when it was killed; unless one is under way. */
  async tidy(path: string): Promise<void> {
    const names = namesFor(basename(path))
    await this.inDirectory(dirname(path), async (directory) => {
      const left = (await this.fs.list(directory)).filter((entry) => names.stagingOf(entry) !== undefined)
      if (left.length === 0) return
      const held = await this.lock(join(dirname(path), names.lock), 0, undefined).catch((error: unknown) => {
        if (error instanceof DurableWriteError && error.reason === 'Busy') return undefined
        throw error
      })
      if (held === undefined) return
      try {
        for (const entry of left) await remove(this.fs, directory, entry)
      } finally {
        await held.release()
      }
    })
  }

  /**
   * Names in an open directory of what interrupted publications of this family staged, and may be removed. What an exchange took out and
   * another program's content is gets another name first, durably. `path`: of the directory, for messages.
   */
  async stagedLeftovers(parent: Descriptor, path: string, names: TargetNames, log: Log): Promise<string[]> {
    const { fs } = this
    const entries = await fs.list(parent)
    const staging = entries.flatMap((name) => names.stagingOf(name) ?? [])
    if (staging.length === 0) return []
    const quarantined = entries.flatMap((name) => names.quarantineOf(name) ?? [])
    const area = { fs, parent, path, names, log }
    const own = await quarantineForeign(area, staging, quarantined, await readAllRecords(fs, parent))
    return own.map(names.staging)
  }

  /** Removes a file, durably. False where there was none: a predecessor may have removed it, and been killed before its sync. */
  async removeFile(path: string): Promise<boolean> {
    return atTarget(this.fs, path, { doing: 'could not remove' }, async ({ parent, name, above, visible }) => {
      const opened = await above()
      const removed = (await this.fs.look(parent, name)) !== undefined
      if (removed) await this.fs.removeFile(parent, name)
      visible()
      await fsyncAll(this.fs, [parent, ...opened])
      return removed
    })
  }

  /** Makes a directory durable that another program wrote: all that is in it, its own name, and those of its ancestors. */
  async syncTree(path: string): Promise<void> {
    const sync = async (place: Place, scope: Scope): Promise<void> => {
      const root = await scope.keep(this.fs.openDirectory(place.anchor, place.name))
      await syncBelow(this.fs, root, [root, place.anchor, ...(await openAncestors(scope, place, place.anchor))])
    }
    await wrapped(path, `could not sync ${path}`, atPlace(this.fs, checkTarget(path), sync), true)
  }

  /**
   * Makes durable these files of a directory, as far as they are there, its names, and those of its ancestors, and what links among them
   * lead to: another program may have written or renamed them. Nothing where there is no such directory.
   */
  async syncNames(path: string, files: readonly string[] = []): Promise<void> {
    const sync = async (place: Place, scope: Scope): Promise<void> => {
      if (place.missing.length > 0) return
      const open = [place.anchor, ...(await openAncestors(scope, place, place.anchor))]
      for (const name of files) {
        const { places, found } = await resolveLinks(scope, join(path, name))
        for (const on of places.slice(1)) {
          open.push(on.anchor)
          if (on.missing.length === 0) open.push(...(await openAncestors(scope, on, on.anchor)))
        }
        const { anchor, name: last } = places.at(-1) ?? place
        if (found?.type === 'file') open.push(await scope.keep(this.fs.openFile(anchor, last)))
      }
      await fsyncAll(this.fs, open)
    }
    await wrapped(path, `could not sync ${path}`, atPlace(this.fs, join(checkTarget(path), 'x'), sync))
  }

  /**
   * Opens a directory for as long as `use` runs; undefined where it does not exist.
   * @throws DurableWriteError
   */
  async inDirectory<T>(path: string, use: (directory: Descriptor) => Promise<T>): Promise<T | undefined> {
    const working = atPlace(this.fs, join(checkTarget(path), 'x'), async ({ anchor, missing }) =>
      missing.length > 0 ? undefined : use(anchor),
    )
    return wrapped(path, `could not work in ${path}`, working)
  }

  /** Whether durability is not proven for a path whose mount is that of an existing directory. @throws DurableWriteError where that is refused */
  async isUnproven(path: string, directory: string, requireProven: boolean): Promise<boolean> {
    const mount = await this.inDirectory(directory, (opened) => this.fs.mount(opened))
    return mount !== undefined && isUnproven(path, mount, requireProven)
  }

  /** The path without symbolic links in its parent; the parent need not exist. */
  async realPath(path: string): Promise<string> {
    return wrapped(
      path,
      `could not read ${path}`,
      atPlace(this.fs, checkTarget(path), ({ realParent, name }) => Promise.resolve(join(realParent, name))),
    )
  }
}

/** Closes it in any case. */
function previewOf(publication: ReturnType<typeof filePublication>): ReturnType<typeof publication.preview> {
  const { path } = publication
  return wrapped(path, `could not read ${path}`, publication.preview()).finally(() => publication.close())
}
