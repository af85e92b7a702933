import { failureOf } from '../../errors.js'
import {
  type SharedDirectory,
  sharedDirectory,
  type StagedEntries,
  fsyncAll,
  currentGeneration,
  dataLink,
  generationName,
  isGeneration,
  keyLinks,
  nextDataLink,
  readGeneration,
  topNames,
  disinherit,
  metadataOf,
  withMode,
  type Identity,
  identityOf,
  remove,
  setMetadata,
  type Current,
} from '../path/index.js'
import { foreign, leftAsItWas, unfit } from '../errors.js'
import type { StagedDirectory } from './examine.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { generationFor, stageGeneration } from '../keep/index.js'
import { type Judgement, type Exchanged, readRecords, takenOverAs } from '../record/index.js'
import { isChangedSince } from './claim.js'
import { TargetPublication } from './publication.js'
import { openTarget, refuseForeign, refuseOtherThanDirectory } from '../target/index.js'
import { PlannedTree } from './planned-tree.js'
import type { DirectoryPlan } from './request.js'
import { OldMetadata, stageTree, stagingMode } from './stage.js'
import type { Generation, PublicationOptions } from '../types.js'
import { isVisible } from './visible-rename.js'

/** A directory that stays, for consumers that mount it: a rename replaces `..data`. The first publication makes it whole. */
export class SymlinkPublication extends TargetPublication {
  readonly kind = 'symlink'
  readonly planned: PlannedTree
  readonly #names: Set<string>
  /** The target, open, where it exists. */
  #target: Descriptor | undefined
  /** The staged target of a first publication. */
  #staged: Attributes | undefined
  #generationIdentity: Identity | undefined
  #generation: string | undefined
  /** The staged generation. */
  protected stagedDirectory: StagedDirectory | undefined
  /** The copy of the old content that is staged for the history. */
  #past: Generation | undefined
  /** Where the link is renamed: the target, unless it is new as a whole. */
  #targetDirectory: SharedDirectory | undefined

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

  protected refuseKind(found: Attributes): void {
    refuseOtherThanDirectory(this.path, found)
  }

  protected async readCurrent(): Promise<Current | undefined> {
    const { directory } = this
    const found = await this.fs.look(directory, this.name)
    if (found === undefined) return undefined
    this.refuseKind(found)
    const { device } = this.site.parent.attributes
    this.#target ??= await this.scope.keep(openTarget(this.fs, this.path, directory, this.name, device))
    const entries = await this.fs.list(this.#target)
    const generation = await currentGeneration(this.fs, this.#target)
    const other = entries.some((name) => !isGeneration(name) && name !== nextDataLink)
    if (generation === undefined && other && !(await this.#isRecorded())) {
      throw unfit(`${this.path} exists, but not in the form that publish: symlink makes`, {
        code: 'EEXIST',
        syscall: 'lstat',
        path: this.path,
        advice: 'another form would break its readers: keep publish: exchange, or remove the directory first',
      })
    }
    const labels = (await this.fs.label(this.#target)) !== undefined
    return { attributes: found, tree: await readGeneration(this.fs, this.#target, labels) }
  }

  /** `..data` is gone or leads nowhere, but this program has published here in this form: drift, to be repaired. */
  async #isRecorded(): Promise<boolean> {
    const { valid } = await readRecords(this.fs, this.directory, this.name, this.names)
    return valid[0]?.kind === this.kind
  }

  protected get stagedIdentity(): Identity {
    if (!this.#generationIdentity) throw new Error('stageContent() comes first')
    return this.#generationIdentity
  }

  protected async isComplete(): Promise<boolean> {
    const target = this.#target
    if (target === undefined) return false
    const links = await keyLinks(this.fs, target)
    const isLinked = links.size === this.#names.size && [...this.#names].every((name) => links.has(name))
    const current = await currentGeneration(this.fs, target)
    const hasStrays = (await this.fs.list(target)).some(
      (name) => name === nextDataLink || (isGeneration(name) && name !== current),
    )
    return isLinked && !hasStrays && this.#isAsAsked(await metadataOf(this.fs, target))
  }

  #isAsAsked({ mode, uid, gid }: { mode: number; uid: number; gid: number }): boolean {
    if (this.options.attributes === 'keep') return true
    const owner = this.plan.owner ?? this.fs.user
    return mode === this.plan.mode && uid === owner.uid && gid === owner.gid
  }

  protected async stageContent(staged: StagedEntries<TargetPublication>): Promise<Descriptor[]> {
    const { directory } = this
    const generation = generationName(this.found?.nextSequence ?? 1, this.random)
    const first = this.#target === undefined
    let target = this.#target
    let holder = this.name
    if (target === undefined) {
      holder = this.names.staging(this.random)
      await this.fs.createDirectory(directory, holder, stagingMode(this.planned.root.mode))
      this.#generation = generation
      target = await this.scope.keep(this.fs.openDirectory(directory, holder))
    } else {
      await this.#refuseTakenNames(target)
      // Our own name, under the lock: what a predecessor left.
      await remove(this.fs, target, nextDataLink)
    }
    await this.fs.createDirectory(target, generation, stagingMode(this.planned.root.mode))
    this.#generation = generation
    const root = await this.scope.keep(this.fs.openDirectory(target, generation))
    // The default ACL of the target's parent has come down to here through a new target.
    const inherited = await disinherit(this.fs, root)
    const metadata = new OldMetadata(this.found?.tree, inherited)
    this.stagedAttributes = metadata.digest(this.planned.heads)
    this.stagedDirectory = { path: `${holder}/${generation}`, descriptor: root }
    this.#generationIdentity = identityOf(await stageTree(this.scope, root, metadata, staged, this))
    await this.#link(target, first ? dataLink : nextDataLink, generation)
    if (first) {
      for (const name of this.#names) await this.#link(target, name, `${dataLink}/${name}`)
    }
    // A target in use gets its mode once the new content is visible: an aborted publication changes nothing.
    if (first) {
      const metadata = new OldMetadata(undefined, inherited).of('', 'directory', this.plan.mode)
      await setMetadata(this.fs, target, { ...this.plan, ...metadata })
      this.#staged = await this.fs.attributes(target)
    } else this.#targetDirectory = await sharedDirectory(this.fs, target)
    return [root, target, ...(await this.#stagePast(target, staged))]
  }

  /** Copies the content of `..data` beside the target: inside it, a consumer that mounts it would see the old keys, too. */
  async #stagePast(target: Descriptor, staged: StagedEntries<TargetPublication>): Promise<Descriptor[]> {
    const { fs, scope, names, found, limits } = this
    const nameOf = (sequence: number) => names.generation(sequence, this.random)
    if (!found?.tree) return []
    const isOthers = this.options.publisher === 'agent' && isChangedSince(found)
    const past = isOthers
      ? takenOverAs(nameOf, found.tree, fs.now())
      : generationFor(found, this.desired, limits, nameOf, fs.now())
    const current = past && (await currentGeneration(fs, target))
    if (past === undefined || current === undefined) return []
    this.#past = past
    const root = await scope.keep(fs.openDirectory(target, current))
    return stageGeneration(scope, this.directory, past.name, { root, tree: found.tree, name: this.name }, staged, this)
  }

  protected override exchanged(): Exchanged {
    return this.#past ? { generation: this.#past } : {}
  }

  async #refuseTakenNames(target: Descriptor): Promise<void> {
    const links = await keyLinks(this.fs, target)
    for (const name of this.#names) {
      if (links.has(name) || (await this.fs.look(target, name)) === undefined) continue
      throw foreign(`${this.path}/${name} is not a link that holdfast made`, this.path, {
        state: leftAsItWas(this.path),
        advice: 'move it away',
      })
    }
  }

  /** Its links are this program's; but another program's changes to a directory that was let go must not be lost. */
  protected override async refuseForeign(found: Judgement): Promise<void> {
    const { publisher, adopt } = this.options
    if (publisher === 'agent' && isChangedSince(found) && adopt?.replace !== true)
      refuseForeign(this.path, this.desired, found)
    return super.refuseForeign(found)
  }

  async #link(target: Descriptor, name: string, text: string): Promise<void> {
    await this.fs.createLink(target, name, text)
    const { owner } = this.plan
    if (owner) await this.fs.setLinkOwner(target, name, owner.uid, owner.gid)
  }

  async swap(): Promise<void> {
    if (this.#staged) {
      await this.renameOver(this.#staged, 'noreplace')
      return
    }
    const target = this.#target
    if (target === undefined || this.#generation === undefined) throw new Error('stage() comes first')
    const failure = await failureOf(this.fs.rename(target, nextDataLink, target, dataLink, 'replace'))
    this.published = await isVisible(
      async () => (await currentGeneration(this.fs, target)) === this.#generation,
      this.blind,
    )
    if (this.published) return
    if (failure !== undefined) throw failure
    throw foreign(`another program replaced ${this.path}/${dataLink} meanwhile`, this.path, {
      state: leftAsItWas(this.path),
    })
  }

  get swapped(): SharedDirectory {
    return this.#targetDirectory ?? this.parentDirectory
  }

  /** New names get their links, links to names that are gone go: durable, too, before the call succeeds. */
  override async mutate(): Promise<void> {
    if (this.#target === undefined) {
      await super.mutate()
      return
    }
    const links = await keyLinks(this.fs, this.#target)
    const before = await metadataOf(this.fs, this.#target)
    const metadataChanged = !this.#isAsAsked(before)
    const changed = [...this.#names, ...links].filter((name) => !(this.#names.has(name) && links.has(name)))
    for (const name of changed) {
      if (links.has(name)) await this.fs.removeFile(this.#target, name)
      else await this.#link(this.#target, name, `${dataLink}/${name}`)
    }
    if (metadataChanged) {
      const { owner, mode } = this.plan
      const extended = withMode(before.extended, mode)
      await setMetadata(this.fs, this.#target, { target: this.path, owner, mode, extended })
    }
    if (metadataChanged || changed.length > 0) {
      await fsyncAll(this.fs, [this.#target])
    }
    // Last: only a mutation after the last sync shows a flush that failed in another process's fsync.
    await super.mutate()
  }

  protected async removeOldContent(): Promise<void> {
    if (this.#target === undefined) return
    for (const name of await this.fs.list(this.#target)) {
      if (isGeneration(name) && name !== this.#generation) await remove(this.fs, this.#target, name)
    }
  }

  protected async discardContent(): Promise<void> {
    if (this.#past) await remove(this.fs, this.directory, this.#past.name)
    if (this.#generation === undefined) return
    if (this.#target === undefined) {
      await remove(this.fs, this.directory, this.names.staging(this.random))
      return
    }
    await remove(this.fs, this.#target, nextDataLink)
    await remove(this.fs, this.#target, this.#generation)
  }
}
