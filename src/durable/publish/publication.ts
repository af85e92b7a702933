import type { DirectoryPublicationOptions, DirectoryPlan } from './request.js'
import { silent, type Log } from '../../log.js'
import {
  Bound,
  fsyncAll,
  probeJournal,
  shared,
  type SharedDirectory,
  alone,
  sharedDirectory,
  type StagedEntries,
  type Identity,
  identityOf,
  mostRemoved,
  type RemovalLimits,
  type TargetNames,
  attempt,
  Scope,
  type Current,
  type Tree,
} from '../path/index.js'
import { type DurableWriteError, wrapError } from '../errors.js'
import { examineStaged, type StagedDirectory } from './examine.js'
import type { Attributes, Descriptor, FileSystem, RenameMode } from '../file-system.js'
import { takeIn } from './claim.js'
import {
  refuseTargetBelow,
  holdOf,
  lostFlags,
  refuseDecrypted,
  refuseEmptied,
  refuseForeign,
  refuseHeld,
  refuseOtherForm,
  refuseOtherPublisher,
  refusePinned,
  Parents,
  Site,
} from '../target/index.js'
import {
  historyAfter,
  limitsOf,
  clearRefused,
  makeRoom,
  removeRest,
  removeSuperseded,
  type Staying,
  survey,
  type Survey,
  tidy,
  type StagingArea,
} from '../keep/index.js'
import { newBody } from './new-record.js'
import { OldMetadata } from './stage.js'
import { trust, type KeepsFrom, type PlannedTree } from './planned-tree.js'
import { listed } from '../../message-text.js'
import {
  type Exchanged,
  type RecordKind,
  amend,
  RecordFile,
  isRepeated,
  isSettled,
  type Judgement,
  letGoSince,
  readRecords,
  type Records,
  type StoredRecord,
  resultOf,
} from '../record/index.js'
import type { History, HistoryLimits, Outcome, ReplaceResult } from '../types.js'
import { makeVisible } from './visible-rename.js'

/** What a form has staged for a target. */
export interface StagedContent {
  /** Of the inode that holds it. */
  readonly identity: Identity
  /** Digest of what its entries have of ACLs and user attributes; null for none. */
  readonly attributes: string | null
  /** For a check; absent for a file. */
  readonly directory?: StagedDirectory
  /** What the first barrier syncs of it beside the staged entries. */
  readonly open: readonly Descriptor[]
  /** What an exchange will bring under the staging name, for the record; and its retirement, if it stays until no process uses it. */
  readonly exchanged: Exchanged
  /** Makes it visible, and sets `published` by looking, not by the call's answer. */
  readonly swap: () => Promise<void>
  /** The directory that barrier 2 has to sync. */
  readonly swapped: SharedDirectory
}

/** What a stranger may have set to open an entry. */
export const lists = 'ACLs and user attributes'

/**
 * One target on its way from the request to the committed publication: the common steps of directories, symbolic-link directories and
 * files. publish.ts calls the steps, in their order, for a whole batch.
 */
export abstract class TargetPublication {
  abstract readonly kind: RecordKind
  readonly scope: Scope
  readonly names: TargetNames
  readonly site: Site
  readonly log: Log
  /** The new content is visible: from here on, failure means that durability is unknown. */
  published = false
  /** Others filled what is to go of the past: so much that it goes once all of the batch are published, by sweep(). */
  hasRest = false
  /** The judgement of the target and of the files beside it. */
  protected found: Judgement | undefined
  #seen: (Survey & { readonly staying: Staying }) | undefined
  /** What the new record says of the past. */
  #history: History | undefined
  protected random: string
  protected bound: Bound | undefined
  /** A foreign entry may be under the staging name: delete nothing. */
  protected keep = false
  #record: RecordFile<TargetPublication> | undefined

  constructor(
    readonly fs: FileSystem,
    readonly path: string,
    readonly options: DirectoryPublicationOptions,
  ) {
    this.scope = new Scope(fs)
    this.site = new Site(this.scope, path, options.family)
    this.names = this.site.names
    this.log = options.log ?? silent
    this.random = fs.random()
  }

  abstract readonly planned: PlannedTree
  /** Refuses a target of another kind before the publication makes anything. */
  protected abstract refuseKind(found: Attributes): void

  /** Reads the present content, undefined where there is none; throws where the requested form cannot replace it. */
  protected abstract readCurrent(): Promise<Current | undefined>
  /** Whether the parts that the digest does not cover (links of a symlink directory) are complete. */
  protected abstract isComplete(): Promise<boolean>
  protected abstract stageContent(staged: StagedEntries<TargetPublication>): Promise<StagedContent>
  /** undefined before it is staged. */
  content: StagedContent | undefined
  /** Paths of entries that do not keep their mode, since a stranger may have set it. */
  #otherModes: readonly string[] = []
  /** One mutation of the file system, after barrier 2: fails where its journal has been aborted. */
  async mutate(): Promise<void> {
    await probeJournal(this.fs, this.directory, this.names)
  }

  /** Removes the old content, where that is still there. */
  protected async removeOldContent(): Promise<void> {
    // A rename or mutate() has removed it.
  }

  protected abstract discardContent(): Promise<void>

  protected get limits(): HistoryLimits {
    return limitsOf(this.options.history, this.found)
  }

  get name(): string {
    return this.site.name
  }

  protected get directory(): Descriptor {
    return this.site.parent.directory
  }

  protected get parentDirectory(): SharedDirectory {
    return shared(this.directory, this.site.parent.attributes)
  }

  /** Where its staging is. */
  protected get area(): StagingArea {
    const { fs, directory: parent, path, names, log } = this
    return { fs, parent, path, names, log }
  }

  protected get desired(): Tree {
    return this.planned.tree
  }

  /** Step 1, first part. Without a present target or a check to compare with, staging reads the content for the only time. */
  async read(): Promise<void> {
    const { fs, path, planned, options } = this
    await this.#offer()
    const canWait = planned.canWait && !options.adopt && !options.check
    // What cannot be looked at is refused later, in other words.
    if (canWait && (await fs.lookPath(path).catch(() => null)) === undefined) return
    await planned.readOnce()
  }

  /** Refuses unreadable content, and what the caller does not accept. */
  async #offer(): Promise<void> {
    const { planned, options } = this
    const bytes = await planned.measure()
    await options.accept?.({ bytes, entries: async () => (await planned.readOnce()).entries })
  }

  /** Step 1, last part: refuses a target of another kind, and locks. */
  async lock(signal: AbortSignal | undefined): Promise<void> {
    await this.#refuseKind()
    await this.site.lock(this.options.lockTimeout, signal)
  }

  /** Steps 2 and 3, under the locks of the whole batch: refuses, then cleans up, and answers whether there is nothing to do. */
  async prepare(parents: Parents): Promise<ReplaceResult | undefined> {
    const seen = await this.#look(parents)
    // A target came meanwhile, or was there before.
    if (seen.found.exists || seen.found.newest) await this.planned.readOnce()
    const isDone = await this.#decide(seen).catch(async (error: unknown) => {
      this.hasRest = await clearRefused(seen)
      throw error
    })
    if (!isDone) {
      const staying = await makeRoom(seen)
      this.hasRest = staying.hasRest
      return void (this.#seen = { ...seen, staying })
    }
    if (seen.found.moved && seen.found.current) await this.#recordPlace(seen.found.current)
    const current = await takeIn(this.site, seen.found, this.options, this.log)
    const found = current === undefined ? seen.found : { ...seen.found, current }
    this.found = found
    this.hasRest = await tidy({ ...seen, found })
    return this.result('unchanged')
  }

  /** The content is durable, but a rename of a directory above it may not be: that is, from here on. */
  async #recordPlace({ sequence, place }: StoredRecord): Promise<void> {
    const { fs, directory, names, area, site } = this
    await fsyncAll(fs, [directory, ...(await site.ancestors())])
    await this.#attempt('could not record its place', () =>
      amend(area, names.record(sequence), { place: { ...place, within: site.within } }),
    )
  }

  /**
   * What would be done, as far as looking can show: throws what publishing would throw. Makes and removes nothing. `asCaller`: also refuses
   * where this process may not publish now, for lack of rights, or since another one does.
   */
  async preview(asCaller = false): Promise<{ outcome: Outcome; desired: Tree; found: Tree | undefined }> {
    const { site, options } = this
    await this.#offer()
    await this.planned.readOnce()
    const { missing } = await site.resolve()
    await site.admit(options)
    if (missing.length > 0) {
      if (asCaller) await site.refuseUnwritable()
      return { outcome: 'created', desired: this.desired, found: undefined }
    }
    await site.open(options)
    await this.#refuseKind()
    if (asCaller) await site.refuseLocked(options.lockTimeout, options.signal)
    const isDone = await this.#decide(await this.#look())
    if (asCaller && !isDone) await site.refuseUnwritable()
    return { outcome: isDone ? 'unchanged' : this.outcome, desired: this.desired, found: this.found?.tree }
  }

  async #refuseKind(): Promise<void> {
    const found = await this.fs.look(this.directory, this.name)
    if (found) this.refuseKind(found)
  }

  /** The survey of the target. Makes and removes nothing. */
  async #look(parents = new Parents(this.scope)): Promise<Survey> {
    const listing = await parents.names(this.directory)
    const records = await readRecords(this.fs, this.directory, this.name, this.names, listing)
    this.bound = this.#boundBy(records)
    const current = await this.readCurrent()
    const { fs, path, name, options, directory } = this
    await refuseTargetBelow({ fs, path, parent: directory, name }, current?.tree)
    const area = { ...this.area, name, target: current?.attributes, options }
    const { within, mount, parent } = this.site
    const place = { within, parent: identityOf(parent.attributes), lasting: mount.lasting }
    const seen = await survey(area, records, { ...place, tree: current?.tree })
    this.found = seen.found
    const { attributes = 'set' } = options
    if (attributes !== 'set')
      this.#otherModes = await this.planned.keep(path, current?.tree, attributes, this.trustIn(current?.tree))
    return seen
  }

  /**
   * How far the present content is read. What is to be taken over is read whole, and so is what goes whatever it holds: a copy of it stays, or
   * it holds another target.
   */
  #boundBy({ valid }: Records): Bound | undefined {
    const { adopt, foreign } = this.options
    const isOurs = valid.some(({ committed, owned }) => committed || owned) && !valid.some((one) => letGoSince(one))
    if (!isOurs && (adopt !== undefined || foreign !== 'same-names')) return undefined
    const desired = this.planned.isRead ? this.desired.entries : this.planned.heads
    return new Bound([...valid.flatMap(({ entries }) => entries), ...desired])
  }

  /** Whether the target is as desired already, and known to be durable. All that is refused is refused here. */
  async #decide({ area: { target }, found, generations }: Survey): Promise<boolean> {
    const { fs, path, names, options } = this
    if (target) refuseOtherPublisher(path, names, options.publisher, found)
    refuseOtherForm(path, this.kind, found)
    options.confirm?.(found, generations)
    // There is nothing to compare with.
    if (!this.planned.isRead) return false
    const isSame = isSettled(found, this.desired, options) && this.#openedBy(found.tree).length === 0
    if (isSame && (await this.isComplete())) return true
    if (this.copiesBeside) refuseDecrypted(path, found.tree, this.site.parent.attributes)
    if (options.allowEmpty !== true) refuseEmptied(path, this.planned.emptyStreams, found.tree)
    if ((options.held ?? 'refuse') === 'refuse') refuseHeld(path, holdOf(found, fs.now()))
    if (!isRepeated(found, this.desired)) refusePinned(path, this.desired.digest, found, options, fs.now())
    await this.refuseForeign(found)
    return false
  }

  /** Whether new content, or a copy of the old, is made in the target's parent. */
  protected get copiesBeside(): boolean {
    return true
  }

  protected async refuseForeign(found: Judgement): Promise<void> {
    const { foreign, publisher } = this.options
    if (foreign === 'same-names') refuseForeign(this.path, this.desired, found, publisher)
    return Promise.resolve()
  }

  /** Step 4, first part. `isAlone`: no other publication shares its barriers. */
  async stage(staged: StagedEntries<TargetPublication>, isAlone: boolean): Promise<void> {
    this.options.check?.accepts(this.desired.digest)
    // Whichever record vouches for them: directories above may have been renamed since, and an unsynced rename takes all away.
    const ancestors = await this.site.ancestors()
    const content = await this.stageContent(staged)
    await this.#stageRecord(content, staged)
    this.content = content
    for (const descriptor of [...content.open, this.directory, ...ancestors]) {
      // Alone, it has each of them once.
      this.pendingDirectories.push(isAlone ? alone(descriptor) : await sharedDirectory(this.fs, descriptor))
    }
  }

  /** Whose ACLs, user attributes and modes stay of this content. */
  protected trustIn(old: Tree | undefined, between = this.between): KeepsFrom {
    const { fs, site, found } = this
    const last = (found?.record ?? found?.newest)?.entries ?? []
    return trust({ fs, parent: site.parent.attributes, between, old: old?.entries ?? [], last })
  }

  /** Directories between the target's parent and the present content. */
  protected get between(): readonly Attributes[] {
    return []
  }

  /** The entries whose ACLs and user attributes do not stay. */
  #openedBy(old: Tree | undefined): Tree['entries'] {
    const { heads, root } = this.planned
    const owners = new Map(heads.map(({ path, uid }) => [path, uid]))
    const isTrusted = this.trustIn(old)
    const isDropped = ({ path, uid, extended }: Tree['entries'][number]): boolean =>
      extended !== undefined && !isTrusted(path, uid, owners.get(path) ?? root.owner.uid)
    return old?.entries.filter(isDropped) ?? []
  }

  /** What the staged entries get of the old content. `inherited`: the default ACL of a directory of the user `from`. */
  protected oldMetadata(
    inherited: Uint8Array | undefined,
    from: number,
    old = this.found?.tree,
    own?: DirectoryPlan['entries'],
  ): OldMetadata {
    const opened = new Set(this.#openedBy(old))
    const dropped = [...opened].map(({ path }) => path)
    const isInherited = inherited === undefined || this.trustIn(old)('', from, this.planned.root.owner.uid)
    if (!isInherited) dropped.push('the directory above')
    this.tellDropped(lists, dropped)
    this.tellDropped('the mode', this.#otherModes)
    this.#tellLost(lostFlags(old))
    const kept = old?.entries.map((entry) => (opened.has(entry) ? { ...entry, extended: new Map() } : entry))
    return new OldMetadata(old && kept && { ...old, entries: kept }, isInherited ? inherited : undefined, own)
  }

  protected tellDropped(what: string, entries: readonly string[]): void {
    if (entries.length === 0) return
    const { path, log } = this
    const shown = listed(
      entries.map((entry) => entry || '.'),
      3,
    )
    log.warn({ path }, `the new content of ${path} does not keep ${what} of ${shown}: another user owned that`)
  }

  #tellLost(lost: readonly string[]): void {
    const { path, log } = this
    if (lost.length > 0) log.warn({ path }, `the new content of ${path} is no longer ${lost.join(', ')}`)
  }

  /** Step 4, second part. */
  async examine(): Promise<void> {
    const { check } = this.options
    const directory = this.content?.directory
    if (check && directory) await examineStaged(this, directory, this.desired.digest, check)
  }

  /** What barrier 1 syncs beside the staged files. */
  readonly pendingDirectories: SharedDirectory[] = []

  async #stageRecord(content: StagedContent, staged: StagedEntries<TargetPublication>): Promise<void> {
    const sequence = this.found?.nextSequence ?? 1
    this.#record = new RecordFile(this.scope, this.directory, this.names, sequence)
    const { fs, name, kind, found, options, limits, site } = this
    const standing = { within: site.within, parent: identityOf(site.parent.attributes) }
    const replaced = found?.tree?.identity
    const { staging, retiring, generation } = content.exchanged
    const { generations: stays = [], staying } = this.#seen ?? {}
    const [boot, now] = [await fs.bootId(), fs.now()]
    const replacedIn = { boot, uptime: fs.uptime() }
    const added = generation && { ...generation, replacedIn }
    this.#history = historyAfter(limits, stays, added, now, options, found, this.desired)
    const body = newBody({
      name,
      kind,
      boot,
      now,
      found,
      desired: this.desired,
      options,
      staging,
      place: { ...standing, target: content.identity, ...(replaced && { replaced }) },
      history: this.#history,
      attributes: content.attributes,
      retired: [...(staying?.retired ?? []), ...(retiring ? [retiring] : [])],
    })
    await this.#record.stage(body, staged, this)
  }

  /** Step 8, first half: known to be durable from here on. Where the mark cannot be made, the next run publishes again. */
  async commit(): Promise<void> {
    await this.#attempt('could not mark the publication as committed', () => this.#record?.markCommitted())
  }

  /** Step 8, second half: removes the old content, older records last. A failure leaves them to the next run. */
  async removeOld(): Promise<void> {
    await this.#attempt('could not remove the old content', () => this.removeOldContent())
    if (this.#seen) await removeSuperseded(this.#seen, this.#seen.staying, this.#history?.generations ?? [])
  }

  /** Another publication of this target, for sweep(); undefined for a file. */
  withoutContent(): TargetPublication | undefined {
    return undefined
  }

  /**
   * Removes what others filled, and a publication left for the sake of its neighbours, under the lock: as what a predecessor left, so much as one
   * run may, and until the signal ends that.
   */
  async sweep(signal: AbortSignal | undefined): Promise<void> {
    const limits = { most: mostRemoved, signal }
    try {
      if ((await this.site.resolve()).missing.length > 0) return
      await this.site.open(this.options)
      await this.lock(signal)
      const seen = await this.#look()
      await removeRest(seen, limits)
      if (seen.found.known && seen.found.current !== undefined) await this.sweepInside?.(limits)
    } finally {
      await this.close()
    }
  }

  /** Removes the rest inside a symlink directory, beside its content. */
  protected sweepInside?(limits: RemovalLimits): Promise<void>

  /** Gives the publication up before the exchange and removes the staged content; a failure leaves that to the next run. */
  async discard(): Promise<void> {
    if (!this.found || this.keep) return
    await this.#attempt('could not remove the staged content', () => this.discardContent())
    await this.#attempt('could not remove the staged record', () => this.#record?.discard())
  }

  #attempt(message: string, task: () => Promise<void> | undefined): Promise<void> {
    return attempt(this.log, this.path, message, task)
  }

  async close(): Promise<void> {
    await this.scope.closeAll()
    await this.planned.close()
  }

  result(outcome: Outcome): ReplaceResult {
    return resultOf(this.path, outcome, this.desired, this.found, this.site.mount, this.options)
  }

  get outcome(): Outcome {
    return this.found?.exists === true ? 'replaced' : 'created'
  }

  wrapError(error: unknown, doing: string): DurableWriteError {
    return wrapError(this.path, error, this.published, `${doing} ${this.path}`)
  }

  /** Makes a staged entry visible. `old`: the entry that the exchange has to take out; answers whether it did. */
  protected async renameOver(staged: Attributes, mode: RenameMode, old?: Attributes): Promise<boolean> {
    const { fs, directory, name: to, path, blind } = this
    const from = this.names.staging(this.random)
    const rename = { fs, directory, from, to, mode, staged, old, blind, path, mount: this.site.mount }
    const tookOut = await makeVisible(rename)
    this.published = true
    return tookOut
  }

  protected readonly blind = (error: unknown): void => {
    this.log.warn({ path: this.path, error: String(error) }, 'could not tell whether the new content is visible')
  }
}
