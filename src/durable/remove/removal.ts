import { failureOf, isSystemError, codeOf } from '../../errors.js'
import { silent, type Log } from '../../log.js'
import {
  settle,
  fsyncAll,
  type TargetNames,
  isOfThis,
  attempt,
  remove,
  checkTarget,
  readFileTree,
  readTree,
} from '../path/index.js'
import {
  clean,
  isAsRead,
  claimOf,
  type PresentEntry,
  quarantineForeign,
  type StagingArea,
  findRetired,
  isOver,
  retiredClaims,
} from '../keep/index.js'
import { DurableWriteError, wrapError, wrapped } from '../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import {
  nothingPublished,
  renamedMeanwhile,
  writeRecord,
  refuseTargetBelow,
  openTarget,
  type LockedTarget,
  type Site,
  withLockedTarget,
} from '../target/index.js'
import { publicationIn, readTarget, TargetSnapshot } from '../look/index.js'
import {
  encoded,
  nextSequence,
  readRecords,
  type Records,
  describes,
  recordBody,
  type StoredRecord,
} from '../record/index.js'
import {
  removalAborted,
  changed,
  inUse,
  notAllGone,
  refuseChanged,
  refuseKept,
  refuseRevision,
  stillInUse,
  unfinished,
  placeTaken,
} from './removal-errors.js'
import { isAt } from '../publish/index.js'
import type { HoldOptions } from '../types.js'

/** How to take a target away: see removal.ts. */
export interface RemovalOptions extends HoldOptions {
  /** Even a changed target, or one whose users are not all visible; default false. A target without a record stays in any case. */
  readonly force?: boolean
  /** Even where the target is held or rolled back; default false. */
  readonly release?: boolean
  /** Looks alone: refuses as the removal would, takes no lock and changes nothing; default false. */
  readonly dryRun?: boolean
  /** A user that is no process, in a few words. Default: none. */
  readonly usedBy?: () => Promise<string | undefined>
  /** Checks the record under the lock, before any change; throws to refuse. Default: no check. */
  readonly confirm?: (
    record: Pick<StoredRecord, 'publisher' | 'removing' | 'movedTo' | 'pin' | 'agent' | 'letGo' | 'publishedAt'>,
  ) => void | Promise<void>
}

/*
 * Takes a published target away, with its earlier contents, the leftovers beside it and, last, its record:
 *
 * 1. A first scan finds no process that uses it. Up to here nothing has changed.
 * 2. A new record says that the removal has begun, and under which name the target goes; that is durable before all else.
 * 3. The target gets that name, where its path no longer leads. A second scan sees a process that came to use it before: then it goes back
 *    to its place. So does content that another program has changed meanwhile.
 * 4. Once the rename is durable, all that is this target's goes, and once that is durable, the record.
 *
 * A crash leaves the whole target in its place, or a record without a target: the next removal goes on, and the next publication clears up.
 * No part of it goes while a power cut could bring the target back.
 */

/**
 * Removes a published target, durably, once no process uses it.
 * @throws DurableWriteError. `published: false`: the target is unchanged, for the reasons InUse, Held, RolledBack, Busy, TargetUnfit
 *   (holdfast has published nothing there), TargetForeign (another program has changed it since), or the system's error. `published: true`:
 *   it has left its place, and part of it may remain: the same call goes on. With `dryRun`, the same, as far as looking can show
 */
export async function removePublished(fs: FileSystem, path: string, options: RemovalOptions = {}): Promise<void> {
  const target = checkTarget(path)
  const removing = withLockedTarget(fs, target, options, async (locked) => {
    const removal = new Removal(fs, target, options, locked)
    const failure = await failureOf(removal.run(locked.records))
    if (failure !== undefined) throw removal.wrapError(failure)
  })
  await wrapped(target, `could not remove ${target}`, removing)
}

class Removal {
  readonly #names: TargetNames
  readonly #site: Site
  readonly #log: Log
  readonly #departure: Departure
  /** The parent's ancestors, where no new record makes them durable: another program may have renamed one, without a sync. */
  #above: readonly Descriptor[] = []

  constructor(
    readonly fs: FileSystem,
    readonly path: string,
    readonly options: RemovalOptions,
    { site }: LockedTarget,
  ) {
    this.#site = site
    this.#names = site.names
    this.#departure = new Departure(fs, site)
    this.#log = options.log ?? silent
  }

  async run(records: Records): Promise<void> {
    const { fs, path, options } = this
    const { name } = this.#site
    const seen = await publicationIn(new TargetSnapshot(fs, path, this.#parent, name, records.valid))
    if (seen === undefined) return this.#removeLeftovers(records)
    const { state, record, tree, here } = seen
    await refuseTargetBelow({ fs, path, parent: this.#parent, name }, tree)
    if (options.release !== true) refuseKept(path, state)
    refuseRevision(path, record)
    await options.confirm?.(record)
    for (const tree of await findRetired(this.#area, records.valid)) {
      if (!(await isOver(this.#area, tree))) throw inUse(path, `its old content ${tree.name} is still used`)
    }
    const entry = await fs.look(this.#parent, name)
    // A link at the target after the removal began is another program's, and stays.
    const isGone = entry === undefined || (entry.type === 'symlink' && record.removing !== undefined)
    if (isGone) return this.#goOn(records, record)
    if (entry.type !== (record.kind === 'file' ? 'file' : 'directory')) throw changed(path, 'it is of another type')
    // Where a publication of the same content was interrupted, it may be that of an older record.
    const found = { ...here, lasting: this.#site.mount.lasting }
    const isOwn = records.valid.some((one) => describes(one, tree) && isOfThis(one, found))
    if (options.force !== true) refuseChanged(path, record, state, isOwn)
    await this.#takeAway(records, record)
  }

  get #parent(): Descriptor {
    return this.#site.parent.directory
  }

  get #area(): StagingArea {
    return { fs: this.fs, parent: this.#parent, path: this.path, names: this.#names, log: this.#log }
  }

  #records(): Promise<Records> {
    return readRecords(this.fs, this.#parent, this.#site.name, this.#names)
  }

  /** Steps 1 to 3. */
  async #takeAway(records: Records, record: StoredRecord): Promise<void> {
    const { fs, path } = this
    const { name } = this.#site
    const present = await this.#read(record)
    await refuseTargetBelow({ fs, path, parent: this.#parent, name }, present.tree)
    await this.#refuseUsed(name)
    if (this.options.dryRun === true) return
    const staging = this.#names.staging(fs.random())
    const written = this.#names.record(nextSequence(records))
    // `before` is `after`: the absent target proves no aborted publication.
    const removing = { since: fs.now() }
    const body = recordBody(record, { removing, before: record.after, staging: claimOf(staging, present) })
    const renamed = () => renamedMeanwhile(path, `could not remove ${path}`, 'remove')
    // With the files that a publication has just removed in it: they must not come back as foreign ones.
    const also = present.opened === undefined ? [] : [present.opened]
    let isWritten = false
    try {
      await writeRecord(this.#site, written, encoded(body, record), this.#log, renamed, also)
      isWritten = true
      if (this.options.signal?.aborted) throw removalAborted(path, this.options.signal)
      await this.#departure.leave(staging, present, (isIt) => this.#confirm(staging, present, isIt))
    } catch (error) {
      // Where it is back in its place, durably, the older record stands for it again.
      const takeBack = async (): Promise<void> => {
        await this.#sync()
        await remove(fs, this.#parent, written)
        await this.#sync()
      }
      if (isWritten && !this.#departure.gone)
        await attempt(this.#log, path, 'could not remove the new record', takeBack)
      throw error
    }
    await this.#finish()
  }

  /** Decides whether a target that has left its place may go. */
  async #confirm(staging: string, present: PresentEntry, isIt: boolean): Promise<void> {
    if (isIt) await this.#refuseUsed(staging)
    // A process that still had it open during the scan may have written to it.
    if (!isIt || !(await this.#isAsRead(staging, present))) throw changed(this.path, 'somebody changed it meanwhile')
  }

  /** All of it, in its form. */
  async #read({ kind }: StoredRecord): Promise<PresentEntry> {
    const { fs, path } = this
    const { name, parent } = this.#site
    if (kind === 'file') {
      // Open until it has left its place: so the kernel gives its number to no other file.
      const attributes = await fs.attributes(await this.#site.scope.keep(fs.openFile(this.#parent, name)))
      return { attributes, tree: await readFileTree(fs, this.#parent, name), opened: undefined }
    }
    const { opened, attributes } = await openTarget(this.#site.scope, path, parent, name)
    return { attributes, tree: await readTree(fs, opened, false), opened }
  }

  async #isAsRead(staging: string, { tree, opened }: PresentEntry): Promise<boolean> {
    if (opened !== undefined) return isAsRead(this.fs, opened, tree)
    return (await readFileTree(this.fs, this.#parent, staging)).digest === tree.digest
  }

  async #refuseUsed(name: string): Promise<void> {
    const { force, usedBy } = this.options
    const user = (await this.fs.userOf(this.#parent, name, force)) ?? (await usedBy?.())
    if (user !== undefined) throw inUse(this.path, user)
  }

  /** There is no record, before the first or after the last one: whether its removal is durable is then unknown. */
  async #removeLeftovers({ staging, torn, generations }: Records): Promise<void> {
    const exists = (await this.fs.look(this.#parent, this.#site.name)) !== undefined
    const isDry = this.options.dryRun === true
    this.#above = await this.#site.ancestors()
    if (!exists && !isDry) await this.#sync()
    if (exists || staging.length + torn.length + generations.length === 0) throw nothingPublished(this.path)
    if (isDry) return
    this.#departure.gone = true
    await this.#finish()
  }

  /** An interrupted removal left the target under its staging name, or another program has removed it. */
  async #goOn(records: Records, record: StoredRecord): Promise<void> {
    const { fs, path } = this
    const isDry = this.options.dryRun === true
    this.#above = await this.#site.ancestors()
    const retired = new Set((await findRetired(this.#area, records.valid)).map(({ name }) => name))
    for (const staging of records.staging.map(this.#names.staging).filter((name) => !retired.has(name))) {
      const failure = await failureOf(this.#refuseUsed(staging))
      if (failure === undefined) continue
      // A process came to use it in the last instant: whole, it goes back to its place.
      this.#departure.gone = true
      const tree = await readTarget(fs, path, this.#parent, staging, record.kind, [record])
      const isWhole = describes(record, tree)
      if (isDry) this.#departure.gone = !isWhole
      else {
        if (isWhole) await this.#departure.comeBack(staging)
        await this.#sync()
      }
      throw isWhole ? failure : stillInUse(path, failure)
    }
    if (isDry) return
    this.#departure.gone = true
    await this.#finish()
  }

  /** Step 4. */
  async #finish(): Promise<void> {
    const { fs } = this
    await settle(this.#area, [this.#parent, ...this.#above])
    const { valid, torn, staging, quarantined, generations } = await this.#records()
    const [last, ...others] = valid
    const claims = [...valid, ...retiredClaims(valid)]
    const own = await quarantineForeign(this.#area, staging, quarantined, claims)
    const records = [...torn, ...others.map(({ sequence }) => sequence)].map(this.#names.record)
    const names = [...own.map(this.#names.staging), ...generations, ...records]
    const failures: unknown[] = []
    const left = await clean(this.#area, names, { most: Infinity }, (error) => failures.push(error))
    if (left.length > 0) throw notAllGone(this.path, left, failures[0])
    await this.#sync()
    if (last) await remove(fs, this.#parent, this.#names.record(last.sequence))
    await this.#sync()
  }

  async #sync(): Promise<void> {
    await fsyncAll(this.fs, [this.#parent, ...this.#above])
  }

  wrapError(error: unknown): DurableWriteError {
    const { path } = this
    const isWrapped = error instanceof DurableWriteError
    if (!this.#departure.gone || isWrapped || !isSystemError(error))
      return wrapError(path, error, false, `could not remove ${path}`)
    const { code, syscall, path: where = path } = error
    return unfinished(path, `could not finish the removal of ${path}: ${syscall} ${where}: ${code}`, code, error)
  }
}

/** A target leaves its place for a staging name, and may come back: see removal.ts. @internal */
export class Departure {
  /** The target may have left its place. */
  gone = false

  constructor(
    readonly fs: FileSystem,
    readonly site: Site,
  ) {}

  get #parent(): Descriptor {
    return this.site.parent.directory
  }

  /** `confirm`: looks at what left, and throws where it has to come back. */
  async leave(staging: string, { attributes }: PresentEntry, confirm: (isIt: boolean) => Promise<void>): Promise<void> {
    const { fs, site } = this
    this.gone = true
    const failure = await failureOf(fs.rename(this.#parent, site.name, this.#parent, staging, 'noreplace'))
    if (failure !== undefined && (await isAt(fs, this.#parent, site.name, attributes))) {
      this.gone = false
      throw failure
    }
    try {
      // Another program may have put its own entry in its place.
      await confirm(await isAt(fs, this.#parent, staging, attributes))
    } catch (error) {
      await this.comeBack(staging)
      throw error
    }
  }

  async comeBack(staging: string): Promise<void> {
    const { fs, site } = this
    const failure = await failureOf(fs.rename(this.#parent, staging, this.#parent, site.name, 'noreplace'))
    if (codeOf(failure) === 'EEXIST') throw placeTaken(site.path, staging)
    if (failure !== undefined) throw failure
    this.gone = false
  }
}
