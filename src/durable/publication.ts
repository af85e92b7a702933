import { silent, type Log } from '../log.js'
import type { StagedFiles } from './barrier.js'
import { codeOf, type DurableWriteError, failureOf, fault, foreign, unfit } from './errors.js'
import type { Attributes, Descriptor, FileSystem, Mount, RenameMode } from './file-system.js'
import { lock } from './lock.js'
import { namesFor, type TargetNames } from './names.js'
import { probeJournal } from './probe-journal.js'
import { encodeAppendix, encodeRecord, type RecordKind } from './record.js'
import { recover, type Recovery } from './recover.js'
import { remove } from './remove.js'
import { openAncestors, openParent, type Parent, type Place, resolve } from './resolve.js'
import { Scope } from './scope.js'
import { adorn } from './stage.js'
import type { Tree } from './tree.js'
import type { Outcome, PublicationOptions, ReplaceResult } from './types.js'

/** A directory that several publications of a batch may have to sync: once is enough for each key. */
export interface SharedDirectory {
  readonly descriptor: Descriptor
  /** Device and inode. */
  readonly key: string
}

/**
 * One target on its way from the request to the settled publication: what is common to directories, symbolic-link
 * directories and files. publish.ts calls the steps, in their order, for a whole batch.
 */
export abstract class Publication {
  abstract readonly kind: RecordKind
  readonly scope: Scope
  readonly names: TargetNames
  readonly name: string
  readonly log: Log
  /** The new content is visible: from here on, failure means that durability is unknown. */
  published = false
  protected place: Place | undefined
  protected recovery: Recovery | undefined
  protected random: string
  #parent: Parent | undefined
  #mount: Mount | undefined
  #record: Descriptor | undefined
  #releaseLock: (() => void) | undefined

  constructor(
    readonly fs: FileSystem,
    readonly path: string,
    readonly options: PublicationOptions,
  ) {
    this.scope = new Scope(fs)
    this.name = path.slice(path.lastIndexOf('/') + 1)
    this.names = namesFor(this.name, options.family)
    this.log = options.log ?? silent
    this.random = fs.random()
  }

  /** What the target will be. */
  protected abstract readonly wanted: Tree
  /** Refuses, before anything is made, what is of another kind. */
  protected abstract refuseKind(found: Attributes): void
  /** Refuses a target that was published in another form than is asked for now. */
  protected refuseOtherForm({ newest }: Recovery): void {
    if (newest === undefined || newest.kind === this.kind || this.recovery?.exists !== true) return
    throw unfit(
      `${this.path} was published in the form "${newest.kind}", and "${this.kind}" is asked for; nothing was changed; another ` +
        `form would break those who read it: keep the form, or remove ${this.path} first`,
      { code: 'EEXIST', syscall: 'lstat', path: this.path },
    )
  }

  /** Reads what is there now; throws where it cannot be replaced by what is asked for. */
  protected abstract readCurrent(): Promise<Tree | undefined>
  /** Whether what the digest does not tell (links of a symlink directory) is as it should be. */
  protected abstract isComplete(): Promise<boolean>
  /** Stages the new content; what is not a file of `staged` is returned, for the first barrier. */
  protected abstract stageContent(staged: StagedFiles<Publication>): Promise<Descriptor[]>
  /** Makes the new content visible, and sets `published` by looking, not by the call's answer. */
  abstract swap(): Promise<void>
  /** The directory that barrier 2 has to sync. */
  abstract readonly swapped: SharedDirectory
  /** One mutation of the file system, after barrier 2: fails where its journal has been aborted. */
  async mutate(): Promise<void> {
    await probeJournal(this.fs, this.parent.directory, this.names)
  }

  /** Removes the old content, and what else is only of the past. */
  protected abstract retireContent(): Promise<void>
  /** Removes what was staged. */
  protected abstract discardContent(): Promise<void>

  /** Step 1, first part: finds the parent. Makes nothing. */
  async resolve(): Promise<Place> {
    this.place = await resolve(this.scope, this.path)
    return this.place
  }

  /** The target's path without symbolic links. */
  get realPath(): string {
    if (!this.place) throw new Error('resolve() comes first')
    return `${this.place.realParent === '/' ? '' : this.place.realParent}/${this.name}`
  }

  /** Step 1, second part: opens the parent, its missing ancestors made; refuses file systems that are asked not to be used. */
  async openParent(): Promise<void> {
    if (!this.place) throw new Error('resolve() comes first')
    const { anchor } = this.place
    this.#mount = await this.fs.mount(anchor)
    if (this.options.requireProven && !this.#mount.proven) {
      throw unfit(
        `${this.path} is on ${this.#mount.type}, where durability is not proven (proven: ext4 with a journal, xfs, btrfs, ` +
          `with barriers on); nothing was changed; choose another file system, or do without requireProven`,
        { code: 'ENOTSUP', syscall: 'fstatfs', path: this.path },
      )
    }
    this.#parent = await openParent(this.scope, this.place)
  }

  get parent(): Parent {
    if (!this.#parent) throw new Error('openParent() comes first')
    return this.#parent
  }

  protected get parentDirectory(): SharedDirectory {
    const { directory, attributes } = this.parent
    return { descriptor: directory, key: `${attributes.device}:${attributes.inode}` }
  }

  get mount(): Mount {
    if (!this.#mount) throw new Error('openParent() comes first')
    return this.#mount
  }

  /** The parent's device and inode, and the lock's name: equal for two paths that are one target. */
  get identity(): string {
    const { device, inode } = this.parent.attributes
    return `${device}:${inode}:${this.names.lock}`
  }

  /** Step 1, last part: refuses what is there of another kind, and locks. */
  async lock(signal: AbortSignal | undefined): Promise<void> {
    await this.#refuseKind()
    this.#releaseLock = await lock(this.scope, {
      parent: this.parent.directory,
      name: this.names.lock,
      identity: this.identity,
      target: this.path,
      timeout: this.options.lockTimeout ?? 0,
      signal,
    })
  }

  /** Steps 2 and 3: recovers, and tells whether there is nothing to do. */
  async prepare(): Promise<ReplaceResult | undefined> {
    return (await this.#decide(false)) ? this.result('unchanged') : undefined
  }

  /** What would be done, as far as looking tells: throws what publishing would throw. Makes and removes nothing. */
  async preview(): Promise<{ outcome: Outcome; wanted: Tree; found: Tree | undefined }> {
    const { missing } = await this.resolve()
    if (missing.length > 0) return { outcome: 'created', wanted: this.wanted, found: undefined }
    await this.openParent()
    await this.#refuseKind()
    const outcome = (await this.#decide(true)) ? 'unchanged' : this.outcome
    return { outcome, wanted: this.wanted, found: this.recovery?.tree }
  }

  async #refuseKind(): Promise<void> {
    const found = await this.fs.look(this.parent.directory, this.name)
    if (found) this.refuseKind(found)
  }

  /** Whether the target is as wanted already, and known to be durable. */
  async #decide(lookOnly: boolean): Promise<boolean> {
    this.recovery = await recover({
      fs: this.fs,
      parent: this.parent.directory,
      path: this.path,
      name: this.name,
      names: this.names,
      tree: await this.readCurrent(),
      log: this.log,
      sharedStaging: this.options.family !== undefined,
      lookOnly,
    })
    const { tree, current } = this.recovery
    this.refuseOtherForm(this.recovery)
    const same = tree?.digest === this.wanted.digest
    if (same && current?.trusted && (await this.isComplete())) return true
    this.refuseForeign(this.recovery)
    return false
  }

  /** Step 4. */
  async stage(staged: StagedFiles<Publication>): Promise<void> {
    const { place } = this
    const first = this.recovery?.current?.trusted !== true
    // Before anything is staged: afterwards there may be no descriptor left for them.
    const ancestors =
      first && place ? await staged.room(() => openAncestors(this.scope, place, this.parent.directory)) : []
    const directories = await this.stageContent(staged)
    await this.#stageRecord(staged)
    for (const descriptor of [...directories, this.parent.directory, ...this.parent.made, ...ancestors]) {
      this.#directories.push({ descriptor, key: await this.keyOf(descriptor) })
    }
  }

  readonly #directories: SharedDirectory[] = []

  /** What barrier 1 syncs beside the staged files. */
  get pendingDirectories(): readonly SharedDirectory[] {
    return this.#directories
  }

  protected async keyOf(descriptor: Descriptor): Promise<string> {
    const { device, inode } = await this.fs.attributes(descriptor)
    return `${device}:${inode}`
  }

  async #stageRecord(staged: StagedFiles<Publication>): Promise<void> {
    const { objects = [], hooks = [] } = this.options
    const record = encodeRecord({
      version: 1,
      name: this.name,
      kind: this.kind,
      boot: await this.fs.bootId(),
      before: this.recovery?.tree?.digest ?? null,
      after: this.wanted.digest,
      owned: this.recovery?.recorded ?? false,
      publishedAt: this.fs.now(),
      objects,
      hooks,
      entries: this.wanted.entries,
    })
    // A scope of its own: a flush that makes room may close the record, which is then opened again to be settled.
    const file = await staged.create(this.scope, this.parent.directory, this.#recordName)
    this.#record = file
    await this.fs.write(file, record)
    await adorn(this.fs, file, undefined, 0o600, undefined)
    staged.add(this.scope, file, this, true)
  }

  get #recordName(): string {
    return this.names.record(this.recovery?.nextSequence ?? 1)
  }

  /**
   * Step 8, first half: from here on, the publication is known to be durable. Where the mark cannot be made, the next run
   * publishes anew; this one has succeeded.
   */
  async settle(): Promise<void> {
    await this.#attempt('the publication could not be marked as settled', () => this.#markSettled())
  }

  async #markSettled(): Promise<void> {
    await this.fs.write(await this.#openRecord(), encodeAppendix({ settled: true }))
  }

  async #openRecord(): Promise<Descriptor> {
    if (this.#record === undefined || !this.scope.holds(this.#record)) {
      this.#record = await this.scope.keep(this.fs.openAppend(this.parent.directory, this.#recordName))
    }
    return this.#record
  }

  /** Step 8, second half: the old content goes, older records last. Failures are left to the next run. */
  async retire(): Promise<void> {
    await this.#attempt('the old content could not be removed', () => this.retireContent())
    for (const entry of this.recovery?.leftovers ?? []) {
      await this.#attempt(`the leftover ${entry} could not be removed`, () => this.#removeEntry(entry))
    }
    const current = this.recovery?.current
    if (current) {
      const entry = this.names.record(current.sequence)
      await this.#attempt(`the old record ${entry} could not be removed`, () => this.#removeEntry(entry))
    }
  }

  async #removeEntry(entry: string): Promise<void> {
    await remove(this.fs, this.parent.directory, entry)
  }

  /** Gives the publication up before the exchange: what was staged goes; failures are left to the next run. */
  async discard(): Promise<void> {
    if (!this.recovery) return
    await this.#attempt('what was staged could not be removed', () => this.discardContent())
    if (this.#record !== undefined) {
      await this.#attempt('the staged record could not be removed', () => this.#removeEntry(this.#recordName))
    }
  }

  async #attempt(message: string, task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      this.log.warn({ path: this.path, error: String(error) }, `${message}; the next run tries again`)
    }
  }

  async close(): Promise<void> {
    await this.scope.closeAll()
    this.#releaseLock?.()
  }

  result(outcome: Outcome): ReplaceResult {
    const { digest } = this.wanted
    return { outcome, path: this.path, digest, ...(this.mount.proven ? {} : { unproven: true as const }) }
  }

  get outcome(): Outcome {
    return this.recovery?.exists === true ? 'replaced' : 'created'
  }

  fault(error: unknown, doing: string): DurableWriteError {
    return fault(this.path, error, this.published, `${doing} ${this.path}`)
  }

  /** The rename that makes a staged entry visible. Only its effect tells what happened: `published` is set by looking. */
  protected async renameOver(staged: Attributes, mode: RenameMode): Promise<void> {
    const { directory } = this.parent
    const from = this.names.staging(this.random)
    const failure = await failureOf(this.fs.rename(directory, from, directory, this.name, mode))
    this.published = await this.isVisible(async () => {
      const now = await this.fs.look(directory, this.name)
      return now?.inode === staged.inode && now.device === staged.device
    })
    if (this.published) return
    if (failure !== undefined) throw this.#renameFault(failure, mode)
    throw foreign(
      `another program replaced ${this.path} in the same instant; its content was left alone`,
      this.path,
    )
  }

  /** Where even a look fails, the new content may be visible: that is what has to be said. */
  protected async isVisible(look: () => Promise<boolean>): Promise<boolean> {
    try {
      return await look()
    } catch (error) {
      this.log.warn({ path: this.path, error: String(error) }, 'could not look at what was published')
      return true
    }
  }

  #renameFault(failure: Error, mode: RenameMode): Error {
    const code = codeOf(failure)
    if (code === 'EEXIST' && mode === 'noreplace') {
      return foreign(`${this.path} was created by another program meanwhile; it was left alone`, this.path)
    }
    // Both names are in one directory and neither is above the other, so EINVAL can only mean the flag (rename(2)).
    if ((code === 'EINVAL' || code === 'ENOSYS') && mode !== 'replace') {
      return unfit(
        `the file system ${this.mount.type} cannot ${mode === 'exchange' ? 'exchange two names in one step (RENAME_EXCHANGE)' : 'rename without replacing (RENAME_NOREPLACE)'}; ` +
          `${this.path} is unchanged; put it on ext4, xfs or btrfs`,
        { code, syscall: 'renameat2', path: this.path, cause: failure },
      )
    }
    return failure
  }

  /** A non-empty directory that this program did not publish is somebody's: `same-names` replaces it only by more of the same. */
  protected refuseForeign({ tree, recorded }: Recovery): void {
    if (this.options.foreign !== 'same-names' || recorded || tree === undefined) return
    const own = new Set(this.wanted.entries.map(({ path }) => path))
    const strangers = tree.entries.filter(({ path }) => !own.has(path)).map(({ path }) => path)
    if (strangers.length === 0) return
    const some = strangers.slice(0, 3).join(', ') + (strangers.length > 3 ? ', …' : '')
    throw foreign(
      `${this.path} was not published by holdfast and holds what the new content does not (${some}); it was left alone; ` +
        `set adopt: true to replace it, or move it away`,
      this.path,
    )
  }
}
