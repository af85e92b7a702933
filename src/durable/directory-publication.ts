import { codeOf } from '../errors.js'
import { approve, refuseUnreadable } from './adoption.js'
import type { AdoptionScene } from './adoption-rules.js'
import { barrier, type StagedEntries, type SharedDirectory } from './barrier.js'
import { DurableWriteError, foreign, unfit } from './errors.js'
import type { StagedDirectory } from './examine.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'
import { dataLink } from './generation.js'
import { generationFor, stageGeneration } from './history.js'
import { isRepeated, type Judgement } from './judge.js'
import { disinherit } from './kept-attributes.js'
import { type Identity, identityOf } from './place.js'
import { TargetPublication } from './publication.js'
import { quarantineOld } from './quarantine.js'
import type { Exchanged } from './record.js'
import { openTarget, refuseOtherThanDirectory } from './refusals.js'
import { isAsRead, removeEntries } from './old-content.js'
import { refuseMounted, remove, removeInside } from './remove.js'
import { PlannedTree } from './planned-tree.js'
import type { DirectoryPlan } from './request.js'
import { isOver } from './retired.js'
import { OldMetadata, stageTree, stagingMode } from './stage.js'
import { takenOverAs } from './taken-over.js'
import { type Current, readTree, type Tree } from './tree.js'
import type { Generation, PublicationOptions } from './types.js'
import { isAt } from './visible-rename.js'

/** Milliseconds: without a view of all processes, old private keys would else stay for ever. */
const defaultRetireTimeout = 3_600_000

/** A directory that is exchanged as a whole. */
export class DirectoryPublication extends TargetPublication {
  readonly kind = 'exchange'
  readonly planned: PlannedTree
  /** The target as it was when it was read. */
  #old: Attributes | undefined
  /** The same, open: it stays the same directory under whatever name. */
  #oldDirectory: Descriptor | undefined
  #staged: Attributes | undefined
  #stagedDirectory: Descriptor | undefined
  #made = false
  /** The copy of the old content that is staged for the history. */
  #generation: Generation | undefined
  /** The old content is somebody else's, and has passed all checks. */
  #adopts = false
  /** Another program has changed the old content since it was read. */
  #isForeign = false
  /** What went already, as the mutation after barrier 2. */
  #removed: string | undefined

  constructor(
    fs: FileSystem,
    readonly plan: DirectoryPlan,
    options: PublicationOptions,
  ) {
    super(fs, plan.target, options)
    this.planned = PlannedTree.ofDirectory(plan, fs.user)
  }

  protected refuseKind(found: Attributes): void {
    // Where it is to be taken over, one of the seven checks says so.
    if (this.options.adopt === undefined) refuseOtherThanDirectory(this.path, found)
  }

  protected async readCurrent(): Promise<Current | undefined> {
    if (this.#oldDirectory !== undefined) await this.scope.close(this.#oldDirectory)
    try {
      const opened = await this.#open()
      this.#oldDirectory = opened
      if (opened === undefined) return undefined
      const attributes = await this.fs.attributes(opened)
      this.#old = attributes
      const tree = await readTree(this.fs, opened, (await this.fs.label(opened)) !== undefined)
      this.#refuseOtherForm(tree)
      return { attributes, tree }
    } catch (error) {
      const scene = error instanceof DurableWriteError ? this.#adoption : undefined
      if (scene) await refuseUnreadable(scene)
      throw error
    }
  }

  /** What was read is what is judged, and what is exchanged: what comes to the path later is not taken out by it. */
  protected override async refuseForeign(found: Judgement): Promise<void> {
    const scene = this.#adoption
    if (scene === undefined) return super.refuseForeign(found)
    this.#adopts = !found.recorded && found.tree !== undefined && found.tree.entries.length > 1
    if (this.#adopts && found.tree) await approve(scene, found.tree)
  }

  /** undefined where nothing is to be taken over. */
  get #adoption(): AdoptionScene | undefined {
    const { fs, path, name, names, plan, desired, site, options } = this
    const { adopt, attributes } = options
    const keepsOwners = attributes === 'keep'
    return adopt && { fs, path, name, names, plan, desired, site, adopt, keepsOwners, busy: false }
  }

  /** The target, open; undefined where there is none. */
  async #open(): Promise<Descriptor | undefined> {
    try {
      const { device } = this.site.parent.attributes
      return await this.scope.keep(openTarget(this.fs, this.path, this.directory, this.name, device))
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      if (error instanceof DurableWriteError) throw error
      const found = await this.fs.look(this.directory, this.name)
      if (found) refuseOtherThanDirectory(this.path, found)
      throw error
    }
  }

  /** A target whose consumers go through `..data` would lose them with an exchange. */
  #refuseOtherForm(tree: Tree): void {
    if (!tree.entries.some(({ path, type }) => path === dataLink && type === 'symlink')) return
    throw unfit(`${this.path} was published with publish: symlink`, {
      code: 'EEXIST',
      syscall: 'lstat',
      path: this.path,
      advice: 'another form would break its readers: keep publish: symlink, or remove the directory first',
    })
  }

  protected async isComplete(): Promise<boolean> {
    return Promise.resolve(true)
  }

  protected async stageContent(staged: StagedEntries<TargetPublication>): Promise<Descriptor[]> {
    const { directory } = this
    const name = this.names.staging(this.random)
    await this.fs.createDirectory(directory, name, stagingMode(this.planned.attributesOf('').mode))
    this.#made = true
    const root = await this.scope.keep(this.fs.openDirectory(directory, name))
    const metadata = new OldMetadata(this.found?.tree, await disinherit(this.fs, root))
    this.stagedAttributes = metadata.digest(this.desired)
    this.#staged = await stageTree(this.scope, root, metadata, staged, this)
    this.#stagedDirectory = root
    return [root, ...(await this.#stageGeneration(staged))]
  }

  /** Copies what is there, where it is to stay. Content that is only published again is no past. */
  async #stageGeneration(staged: StagedEntries<TargetPublication>): Promise<Descriptor[]> {
    const { fs, scope, names, found, limits } = this
    const root = this.#oldDirectory
    const tree = found?.tree
    if (!tree || root === undefined || isRepeated(found, this.desired)) return []
    const nameOf = (sequence: number): string => names.generation(sequence, this.random)
    const generation = this.#adopts
      ? takenOverAs(nameOf, tree, fs.now())
      : generationFor(found, this.desired, limits, nameOf, fs.now())
    if (generation === undefined) return []
    this.#generation = generation
    return stageGeneration(scope, this.directory, generation.name, { root, tree, name: this.name }, staged, this)
  }

  protected override exchanged(): Exchanged {
    const generation = this.#generation
    return { ...this.#takenOut(), ...(generation && { generation }) }
  }

  #takenOut(): Exchanged {
    if (!this.#staged || !this.#old) return {}
    const name = this.names.staging(this.random)
    const { current, tree } = this.found ?? {}
    const retires = this.#retires && tree !== undefined
    const known = tree?.entries.map(({ path, type, sha256 }) => ({ path, type, sha256 })) ?? []
    // The record of what is there names its entries already, and stays until they are gone, unless they stay longer than it.
    const entries = tree && (current === undefined || retires) ? { entries: known } : {}
    const staging = { name, staged: `${this.#staged.inode}`, old: `${this.#old.inode}`, ...entries }
    if (!retires) return { staging }
    const until = this.fs.now() + (this.options.retireTimeout ?? defaultRetireTimeout)
    return { staging, retiring: { name, inode: staging.old, until, entries: known } }
  }

  get #retires(): boolean {
    return this.options.retire === 'whenUnused'
  }

  protected get stagedDirectory(): StagedDirectory | undefined {
    const descriptor = this.#stagedDirectory
    return descriptor === undefined ? undefined : { path: this.names.staging(this.random), descriptor }
  }

  protected get stagedIdentity(): Identity {
    if (!this.#staged) throw new Error('stageContent() comes first')
    return identityOf(this.#staged)
  }

  async swap(): Promise<void> {
    if (!this.#staged) throw new Error('stage() comes first')
    const old = this.#old
    const tookOut = await this.renameOver(this.#staged, old === undefined ? 'noreplace' : 'exchange', old)
    if (old !== undefined && !tookOut) await this.#checkWhatCameOut(old, this.#staged)
  }

  /** What the exchange took out must be what was read: otherwise another program has put its own there meanwhile. */
  async #checkWhatCameOut(old: Attributes, staged: Attributes): Promise<void> {
    const { fs, directory } = this
    const name = this.names.staging(this.random)
    const out = await fs.look(directory, name)
    if (out?.inode === old.inode && out.device === old.device) return
    this.keep = true
    if (out !== undefined) {
      await fs.rename(directory, name, directory, this.name, 'exchange')
      if (await isAt(fs, directory, name, staged)) {
        this.published = false
        await this.#makeReturnDurable(name)
        this.keep = false
      }
    }
    throw foreign(`another program replaced ${this.path} meanwhile`, this.path, {
      published: this.published,
      state: this.published
        ? `what it put there is now ${name} beside the target, and ${this.#quarantine} after the next run; holdfast deleted nothing`
        : 'holdfast put its content back',
    })
  }

  /** What the next run calls what is found under the staging name and is somebody else's. */
  get #quarantine(): string {
    return this.names.quarantine(this.random)
  }

  /**
   * A power cut can leave the first exchange without the second. What was staged may go only once that is ruled out: else the
   * target could come back half deleted, with somebody else's content under a name of ours.
   */
  async #makeReturnDurable(name: string): Promise<void> {
    const parent = { descriptor: this.directory, type: 'directory', owners: [this] } as const
    const failure = (await barrier(this.fs, [parent])).get(this)
    if (failure === undefined) return
    throw foreign(`another program replaced ${this.path} meanwhile`, this.path, {
      state:
        `holdfast put its content back, but this may not survive a power cut (${failure.message}): if the new content is there ` +
        `after one, that program's content is ${name} beside the target, and ${this.#quarantine} after the next run; holdfast deleted nothing`,
    })
  }

  get swapped(): SharedDirectory {
    return this.parentDirectory
  }

  /** The first removal of the old content, where it says something: a foreign owner or an immutable flag does not. */
  override async mutate(): Promise<void> {
    const tree = this.found?.tree
    const old = this.#oldDirectory
    this.#isForeign = old !== undefined && tree !== undefined && !(await isAsRead(this.fs, old, tree))
    const first = this.#isForeign || this.#retires ? undefined : tree?.entries.find(({ type }) => type !== 'directory')
    if (first && old !== undefined && (await removeInside(this.fs, old, first.path))) {
      this.#removed = first.path
      return
    }
    await super.mutate()
  }

  protected async removeOldContent(): Promise<void> {
    const old = this.#oldDirectory
    if (old === undefined) return
    await refuseMounted(this.fs, old)
    if (this.#adopts)
      this.log.info(
        { path: this.path },
        `holdfast has taken over ${this.path}, and keeps what it held as the content 0`,
      )
    if (this.#isForeign) return quarantineOld(this.area, this.random)
    const { retiring } = this.exchanged()
    if (retiring && !(await isOver(this.area, retiring))) return
    try {
      await removeEntries(this.fs, old, this.found?.tree?.entries ?? [], this.#removed)
      await this.fs.removeDirectory(this.directory, this.names.staging(this.random))
    } catch (error) {
      // Somebody has put more there since it was looked at.
      if (codeOf(error) !== 'ENOTEMPTY') throw error
      await quarantineOld(this.area, this.random)
    }
  }

  protected async discardContent(): Promise<void> {
    if (this.#made) await remove(this.fs, this.directory, this.names.staging(this.random))
    if (this.#generation) await remove(this.fs, this.directory, this.#generation.name)
  }
}
