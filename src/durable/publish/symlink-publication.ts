import { codeOf, failureOf } from '../../errors.js'
import {
  atOnce,
  attempt,
  shared,
  type StagedEntries,
  fsyncAll,
  currentDataDirectory,
  dataLink,
  dataDirectoryName,
  isDataDirectory,
  keyLinks,
  mostOthers,
  mostRemoved,
  nextDataLink,
  readDataDirectory,
  topNames,
  disinherit,
  metadataOf,
  withMode,
  identityOf,
  refuseMounted,
  remove,
  type RemovalLimits,
  notMapped,
  setMetadata,
  withOpen,
  type Current,
} from '../path/index.js'
import { foreign, leftAsItWas } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { generationFor, removeEntries, stageGeneration } from '../keep/index.js'
import { type Judgement, readRecords, takenOverAs } from '../record/index.js'
import { isChangedSince } from './claim.js'
import { lists, type StagedContent, TargetPublication } from './publication.js'
import { openTarget, otherForm, refuseForeign, refuseOtherThanDirectory } from '../target/index.js'
import { PlannedTree } from './planned-tree.js'
import { type DirectoryPlan, emptied } from './request.js'
import { stageTree, stagingMode } from './stage.js'
import type { Generation, PublicationOptions } from '../types.js'
import { isVisible } from './visible-rename.js'

/** A directory that stays, for consumers that mount it: a rename replaces `..data`. The first publication makes it whole. */
export class SymlinkPublication extends TargetPublication {
  readonly kind = 'symlink'
  readonly planned: PlannedTree
  readonly #names: Set<string>
  /** The target, open, where it exists. */
  #target: Descriptor | undefined
  #found: Attributes | undefined
  /** What is staged, or was. */
  #dataDirectory: string | undefined
  /** The one that it replaces. */
  #before: string | undefined
  /** The copy of the old content that is staged for the history. */
  #past: Generation | undefined

  constructor(
    fs: FileSystem,
    readonly plan: DirectoryPlan,
    options: PublicationOptions,
  ) {
    super(fs, plan.target, options)
    this.planned = PlannedTree.ofDirectory(plan, fs.user)
    this.#names = topNames(this.planned.files.map(({ path }) => path))
    const reserved = [...this.#names].find((name) => name.startsWith('..'))
    if (reserved !== undefined) {
      throw new TypeError(
        `files: ${JSON.stringify(reserved)} starts with two dots; publish: symlink keeps such names for itself`,
      )
    }
  }

  override withoutContent(): TargetPublication {
    return new SymlinkPublication(this.fs, ...emptied(this.plan, this.options))
  }

  protected refuseKind(found: Attributes): void {
    refuseOtherThanDirectory(this.path, found)
  }

  protected async readCurrent(): Promise<Current | undefined> {
    const { directory } = this
    const found = await this.fs.look(directory, this.name)
    if (found === undefined) return undefined
    this.refuseKind(found)
    this.#target ??= (await openTarget(this.scope, this.path, this.site.parent, this.name)).opened
    const entries = await this.fs.list(this.#target, mostOthers)
    const dataDirectory = await currentDataDirectory(this.fs, this.#target)
    this.#before = dataDirectory
    const other = entries.some((name) => !isDataDirectory(name) && name !== nextDataLink)
    if (dataDirectory === undefined && other && !(await this.#isRecorded())) {
      throw otherForm(this.path, 'exchange', false)
    }
    this.#found = found
    const labels = (await this.fs.label(this.#target)) !== undefined
    return { attributes: found, tree: await readDataDirectory(this.fs, this.#target, labels, this.bound) }
  }

  /** `..data` is gone or leads nowhere, but this program has published here in this form: drift, to be repaired. */
  async #isRecorded(): Promise<boolean> {
    const { valid } = await readRecords(this.fs, this.directory, this.name, this.names)
    return valid[0]?.kind === this.kind
  }

  protected async isComplete(): Promise<boolean> {
    const target = this.#target
    if (target === undefined) return false
    const links = await keyLinks(this.fs, target, this.#names)
    const isLinked = links.size === this.#names.size && [...this.#names].every((name) => links.has(name))
    const current = await currentDataDirectory(this.fs, target)
    const hasStrays = (await this.fs.list(target, mostOthers)).some(
      (name) => name === nextDataLink || (isDataDirectory(name) && name !== current),
    )
    return isLinked && !hasStrays && this.#isAsAsked(await metadataOf(this.fs, target))
  }

  protected override get between(): readonly Attributes[] {
    return this.#found ? [this.#found] : []
  }

  /** Nobody else may have set what the target, which stays, has of modes and ACLs. */
  #isTrusted({ uid }: { uid: number }): boolean {
    const next = this.options.attributes === 'keep' ? uid : (this.plan.owner ?? this.fs.user).uid
    return this.trustIn(undefined, [])('', uid, next)
  }

  #isAsAsked({ mode, uid, gid }: { mode: number; uid: number; gid: number }): boolean {
    if (this.options.attributes === 'keep') return this.#isTrusted({ uid })
    const owner = this.plan.owner ?? this.fs.user
    return mode === this.plan.mode && uid === owner.uid && gid === owner.gid
  }

  protected async stageContent(staged: StagedEntries<TargetPublication>): Promise<StagedContent> {
    const { directory } = this
    const dataDirectory = dataDirectoryName(this.found?.nextSequence ?? 1, this.random)
    const first = this.#target === undefined
    let target = this.#target
    let holder = this.name
    if (target === undefined) {
      holder = this.names.staging(this.random)
      await this.fs.createDirectory(directory, holder, stagingMode(this.planned.root.mode))
      this.#dataDirectory = dataDirectory
      target = await this.scope.keep(this.fs.openDirectory(directory, holder))
    } else {
      await this.#refuseTakenNames(target)
      // Our own name, under the lock: what a predecessor left.
      await remove(this.fs, target, nextDataLink)
    }
    await this.fs.createDirectory(target, dataDirectory, stagingMode(this.planned.root.mode))
    this.#dataDirectory = dataDirectory
    const root = await this.scope.keep(this.fs.openDirectory(target, dataDirectory))
    // The default ACL of the target's parent has come down to here through a new target.
    const inherited = await disinherit(this.fs, root)
    const from = first ? this.site.parent.attributes : await this.fs.attributes(target)
    const metadata = this.oldMetadata(inherited, from.uid)
    const identity = identityOf(await stageTree(this.scope, root, metadata, staged, this))
    await this.#link(target, first ? dataLink : nextDataLink, dataDirectory)
    if (first) {
      for (const name of this.#names) await this.#link(target, name, `${dataLink}/${name}`)
    }
    // A target in use gets its mode once the new content is visible: an aborted publication changes nothing.
    if (first) await setMetadata(this.fs, target, { ...this.plan, ...metadata.of('', 'directory', this.plan.mode) })
    const attributes = await this.fs.attributes(target)
    const open = [root, target, ...(await this.#stagePast(target, staged))]
    return {
      identity,
      attributes: metadata.digest(this.planned.heads),
      directory: { path: `${holder}/${dataDirectory}`, descriptor: root },
      open,
      exchanged: this.#past ? { generation: this.#past } : {},
      swap: async () => {
        if (first) await this.renameOver(attributes, 'noreplace')
        else await this.#renameLink(target, dataDirectory)
      },
      // Where the link is renamed: the target, unless it is new as a whole.
      swapped: first ? this.parentDirectory : shared(target, attributes),
    }
  }

  /** Copies the content of `..data` beside the target: inside it, a consumer that mounts it would see the old keys, too. */
  async #stagePast(target: Descriptor, staged: StagedEntries<TargetPublication>): Promise<Descriptor[]> {
    const { fs, scope, names, found, limits } = this
    const nameOf = (sequence: number) => names.generation(sequence, this.random)
    if (!found?.tree) return []
    const past = this.#isOthers
      ? takenOverAs(nameOf, found.tree, fs.now())
      : generationFor(found, this.desired, limits, nameOf, fs.now())
    const current = past && (await currentDataDirectory(fs, target))
    if (past === undefined || current === undefined) return []
    this.#past = past
    const root = await scope.keep(fs.openDirectory(target, current))
    return stageGeneration(scope, this.directory, past.name, { root, tree: found.tree, name: this.name }, staged, this)
  }

  async #refuseTakenNames(target: Descriptor): Promise<void> {
    const links = await keyLinks(this.fs, target, this.#names)
    for (const name of this.#names) {
      if (links.has(name) || (await this.fs.look(target, name)) === undefined) continue
      throw foreign(`${this.path}/${name} is not a link that holdfast made`, this.path, {
        state: leftAsItWas(this.path),
        advice: 'move it away',
      })
    }
  }

  protected override get copiesBeside(): boolean {
    return this.limits.keep > 0 || this.#isOthers
  }

  /** The agent takes over what another program has made of the target, and keeps a copy. */
  get #isOthers(): boolean {
    return this.options.publisher === 'agent' && this.found !== undefined && isChangedSince(this.found)
  }

  /** Its links are this program's; but another program's changes to a directory that was let go must not be lost. */
  protected override async refuseForeign(found: Judgement): Promise<void> {
    const { publisher, adopt } = this.options
    if (this.#isOthers && adopt?.replace !== true) refuseForeign(this.path, this.desired, found, publisher)
    return super.refuseForeign(found)
  }

  async #link(target: Descriptor, name: string, text: string): Promise<void> {
    await this.fs.createLink(target, name, text)
    const { owner } = this.plan
    if (owner) await this.fs.setLinkOwner(target, name, owner.uid, owner.gid).catch(notMapped(this.path, owner))
  }

  async #renameLink(target: Descriptor, dataDirectory: string): Promise<void> {
    const failure = await failureOf(this.fs.rename(target, nextDataLink, target, dataLink, 'replace'))
    this.published = await isVisible(
      async () => (await currentDataDirectory(this.fs, target)) === dataDirectory,
      this.blind,
    )
    if (this.published) return
    if (failure !== undefined) throw failure
    throw foreign(`another program replaced ${this.path}/${dataLink} meanwhile`, this.path, {
      state: leftAsItWas(this.path),
    })
  }

  /**
   * New names get their links; links to names that are gone go, and so does the old content, which consumers of the target would see. All
   * of that is durable, too, before the call succeeds.
   */
  override async mutate(): Promise<void> {
    const target = this.#target
    if (target === undefined) {
      await super.mutate()
      return
    }
    const recorded = topNames(this.found?.record?.entries.map(({ path }) => path) ?? [])
    const links = await keyLinks(this.fs, target, [...this.#names, ...recorded])
    for (const name of new Set([...this.#names, ...links])) {
      if (!this.#names.has(name)) await this.fs.removeFile(target, name)
      else if (!links.has(name)) await this.#link(target, name, `${dataLink}/${name}`)
    }
    await this.#setMetadata(target)
    await attempt(this.log, this.path, 'could not remove the old content', () => this.#removeOld(target))
    await fsyncAll(this.fs, [target])
    // Last: only a mutation after the last sync shows a flush that failed in another process's fsync.
    await super.mutate()
  }

  async #setMetadata(target: Descriptor): Promise<void> {
    const before = await metadataOf(this.fs, target)
    const isOthers = !this.#isTrusted(before)
    if (!(isOthers && before.extended) && this.#isAsAsked(before)) return
    const { owner, mode } = this.plan
    if (isOthers) {
      // The owner first, who could set them again.
      const to = owner ?? this.fs.user
      await this.fs.setOwner(target, to.uid, to.gid).catch(notMapped(this.path, to))
      await disinherit(this.fs, target)
      if (before.extended) this.tellDropped(lists, ['.'])
      if (this.options.attributes === 'keep') this.tellDropped('mode and owner', ['.'])
    }
    const extended = isOthers ? undefined : withMode(before.extended, mode)
    await setMetadata(this.fs, target, { target: this.path, owner, mode, extended })
  }

  async #removeOld(target: Descriptor): Promise<void> {
    const { fs } = this
    const before = this.#before
    // Old keys must not come back, whatever others put beside them.
    if (before !== undefined && this.found?.tree?.isCut) await this.#removeRecorded(target, before)
    else if (before !== undefined) await remove(fs, target, before, { most: mostRemoved })
    this.hasRest = (await this.#removeDataDirectories(target, { most: atOnce })) || this.hasRest
  }

  async #removeRecorded(target: Descriptor, dataDirectory: string): Promise<void> {
    const { fs } = this
    await withOpen(fs, fs.openDirectory(target, dataDirectory), async (opened) => {
      await refuseMounted(fs, opened)
      // A file that others changed, or a directory that they filled, goes with the rest.
      await failureOf(removeEntries(fs, opened, this.found?.record?.entries ?? []))
    })
  }

  /** Removes all but the current one, as far as the limits allow. Answers whether that was not all. */
  async #removeDataDirectories(target: Descriptor, limits: RemovalLimits): Promise<boolean> {
    const { fs } = this
    const names = new Set((await fs.list(target, mostOthers)).filter(isDataDirectory))
    if (this.#before !== undefined) names.add(this.#before)
    names.delete(this.#dataDirectory ?? this.#before ?? '')
    let hasRest = false
    for (const name of names) {
      const failure = await failureOf(remove(fs, target, name, limits))
      if (codeOf(failure) === 'E2BIG') hasRest = true
      else if (failure !== undefined && limits.signal?.aborted !== true) throw failure
    }
    return hasRest
  }

  protected override async sweepInside(limits: RemovalLimits): Promise<void> {
    const target = this.#target
    if (target === undefined) return
    await this.#removeDataDirectories(target, limits)
    await fsyncAll(this.fs, [target])
  }

  protected async discardContent(): Promise<void> {
    if (this.#past) await remove(this.fs, this.directory, this.#past.name)
    if (this.#dataDirectory === undefined) return
    if (this.#target === undefined) {
      await remove(this.fs, this.directory, this.names.staging(this.random))
      return
    }
    await remove(this.fs, this.#target, nextDataLink)
    await remove(this.fs, this.#target, this.#dataDirectory)
    // The next run finds nothing to do: a power cut after that must not bring them back.
    await fsyncAll(this.fs, [this.#target])
  }
}
