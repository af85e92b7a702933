import { nameOf } from '../../relative-path.js'
import { codeOf } from '../../errors.js'
import {
  Bound,
  type StagedEntries,
  dataLink,
  disinherit,
  identityOf,
  refuseMounted,
  remove,
  removeInside,
  type Current,
  readTree,
  type Tree,
  barrier,
  type TargetNames,
} from '../path/index.js'
import { DurableWriteError, foreign } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import {
  generationFor,
  type OldContent,
  stageGeneration,
  quarantineOld,
  isAsRead,
  removeEntries,
  isOver,
} from '../keep/index.js'
import { type Judgement, type Exchanged, takenOverAs } from '../record/index.js'
import { type StagedContent, TargetPublication } from './publication.js'
import { type OpenTarget, openTarget, otherForm, refuseDecrypted, refuseOtherThanDirectory } from '../target/index.js'
import { PlannedTree } from './planned-tree.js'
import { type AdoptionScene, type DirectoryPublicationOptions, type DirectoryPlan, emptied } from './request.js'
import { stageTree, stagingMode } from './stage.js'
import type { Generation } from '../types.js'
import { isAt } from './visible-rename.js'

/** A directory that is exchanged as a whole. */
export class DirectoryPublication extends TargetPublication {
  readonly kind = 'exchange'
  readonly planned: PlannedTree
  /** The target at its reading, open: it stays the same directory under any name. */
  #old: (Pick<OldContent, 'root' | 'tree'> & { readonly attributes: Attributes }) | undefined
  #made = false
  /** The copy of the old content that is staged for the history. */
  #generation: Generation | undefined
  /** The old content is foreign, and has passed all checks of the adoption. */
  #adopts = false
  /** Another program has changed the old content since it was read. */
  #isForeign: boolean | undefined
  /** What went already, as the mutation after barrier 2. */
  #removed: string | undefined

  constructor(
    fs: FileSystem,
    readonly plan: DirectoryPlan,
    override readonly options: DirectoryPublicationOptions,
  ) {
    super(fs, plan.target, options)
    this.planned = PlannedTree.ofDirectory(plan, fs.user)
  }

  override withoutContent(): TargetPublication {
    return new DirectoryPublication(this.fs, ...emptied(this.plan, this.options))
  }

  protected refuseKind(found: Attributes): void {
    // Where it is to be taken over, one of the seven checks says so.
    if (this.options.adopt === undefined) refuseOtherThanDirectory(this.path, found)
  }

  protected async readCurrent(): Promise<Current | undefined> {
    try {
      const opened = await this.#open()
      if (opened === undefined) return undefined
      const { opened: root, attributes } = opened
      const tree = await readTree(this.fs, root, (await this.fs.label(root)) !== undefined, this.bound, attributes)
      this.#refuseOtherForm(tree)
      this.#old = { attributes, root, tree }
      return { attributes, tree }
    } catch (error) {
      if (error instanceof DurableWriteError) await this.options.adopt?.refuseUnreadable(this.#scene)
      throw error
    }
  }

  /** Judges the tree that the exchange compares with: content that comes to the path later makes the exchange go back. */
  protected override async refuseForeign(found: Judgement): Promise<void> {
    const { adopt } = this.options
    if (adopt === undefined) return super.refuseForeign(found)
    const { recorded, tree } = found
    if (recorded || tree === undefined || tree.entries.length === 1) return
    this.#adopts = true
    await adopt.approve(this.#scene, tree)
  }

  get #scene(): AdoptionScene {
    const { fs, path, name, names, plan, desired, site, options } = this
    return { fs, path, name, names, plan, desired, site, keepsOwners: options.attributes === 'keep', busy: false }
  }

  /** The target, open; undefined where there is none. */
  async #open(): Promise<OpenTarget | undefined> {
    try {
      return await openTarget(this.scope, this.path, this.site.parent, this.name)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      return this.#refuseUnopened(error)
    }
  }

  async #refuseUnopened(error: unknown): Promise<never> {
    const found = await this.fs.look(this.directory, this.name)
    if (found) refuseOtherThanDirectory(this.path, found)
    throw error
  }

  /** A target whose consumers go through `..data` would lose them with an exchange. */
  #refuseOtherForm(tree: Tree): void {
    if (!tree.entries.some(({ path, type }) => path === dataLink && type === 'symlink')) return
    throw otherForm(this.path, 'symlink')
  }

  protected async isComplete(): Promise<boolean> {
    return Promise.resolve(true)
  }

  protected async stageContent(staged: StagedEntries<TargetPublication>): Promise<StagedContent> {
    const { directory } = this
    const name = this.names.staging(this.random)
    await this.fs.createDirectory(directory, name, stagingMode(this.planned.root.mode))
    this.#made = true
    const root = await this.scope.keep(this.fs.openDirectory(directory, name))
    const { entries, inPlaceOf } = this.plan
    const old = inPlaceOf === undefined ? this.found?.tree : await this.#readBeside(inPlaceOf)
    const inherited = await disinherit(this.fs, root)
    const metadata = this.oldMetadata(inherited, this.site.parent.attributes.uid, old, entries)
    const attributes = await stageTree(this.scope, root, metadata, staged, this)
    const open = [root, ...(await this.#stageGeneration(staged))]
    return {
      identity: identityOf(attributes),
      attributes: metadata.digest(this.planned.heads),
      directory: { path: name, descriptor: root },
      open,
      exchanged: { ...this.#takenOut(attributes), ...(this.#generation && { generation: this.#generation }) },
      swap: () => this.#swap(attributes),
      swapped: this.parentDirectory,
    }
  }

  /** What the new content is to take the place of later. */
  async #readBeside(inPlaceOf: string): Promise<Tree | undefined> {
    const { fs, directory, scope } = this
    const name = nameOf(inPlaceOf)
    if ((await fs.look(directory, name)) === undefined) return undefined
    const { opened: root } = await openTarget(scope, inPlaceOf, this.site.parent, name)
    // For what the new entries keep of it.
    const tree = await readTree(fs, root, (await fs.label(root)) !== undefined, new Bound(this.planned.heads))
    refuseDecrypted(inPlaceOf, tree, this.site.parent.attributes)
    return tree
  }

  /** Copies the present content, where the history keeps it. */
  async #stageGeneration(staged: StagedEntries<TargetPublication>): Promise<Descriptor[]> {
    const { fs, scope, names, found, limits } = this
    const old = this.#old
    if (old === undefined) return []
    const nameOf = (sequence: number): string => names.generation(sequence, this.random)
    const generation = this.#adopts
      ? takenOverAs(nameOf, old.tree, fs.now())
      : generationFor(found, this.desired, limits, nameOf, fs.now())
    if (generation === undefined) return []
    this.#generation = generation
    return stageGeneration(scope, this.directory, generation.name, { ...old, name: this.name }, staged, this)
  }

  #takenOut(staged: Attributes): Exchanged {
    if (!this.#old) return {}
    const name = this.names.staging(this.random)
    const { attributes, tree } = this.#old
    const isWhole = tree.isCut !== true
    const entries = isWhole ? tree.entries.map(({ path, type, sha256 }) => ({ path, type, sha256 })) : []
    // The present record lists its entries already, and outlives them, except where the old content is retired.
    const isNamed = isWhole && (this.found?.current === undefined || this.#retires)
    const staging = { name, staged: `${staged.inode}`, old: `${attributes.inode}`, ...(isNamed && { entries }) }
    if (!this.#retires) return { staging }
    const until = this.fs.now() + (this.options.retireTimeout ?? 0)
    return {
      staging,
      retiring: { name, inode: staging.old, until, entries, ...(!isWhole && { goesWhole: true as const }) },
    }
  }

  get #retires(): boolean {
    return this.options.retireTimeout !== undefined
  }

  async #swap(staged: Attributes): Promise<void> {
    const old = this.#old?.attributes
    if (await this.renameOver(staged, old ? 'exchange' : 'noreplace', old)) return
    if (old === undefined) return
    const { fs, directory, name, path, names, random } = this
    const found = await giveBackForeign({ fs, directory, name, path, names, random, staged }, old)
    if (found === undefined) return
    this.keep = found.keep
    this.published = found.published
    throw found.error
  }

  /** The first removal of the old content, where it says something: a foreign owner or an immutable flag does not. */
  override async mutate(): Promise<void> {
    if (!(await this.#removeFirst())) await super.mutate()
  }

  async #removeFirst(): Promise<boolean> {
    if (this.#old === undefined) return false
    const { root, tree } = this.#old
    this.#isForeign = !(await isAsRead(this.fs, root, tree))
    if (this.#isForeign || this.#retires) return false
    const first = tree.entries.find(({ type }) => type !== 'directory')
    if (first === undefined || !(await removeInside(this.fs, root, first.path))) return false
    this.#removed = first.path
    return true
  }

  protected override async removeOldContent(): Promise<void> {
    const old = this.#old
    if (old === undefined) return
    await refuseMounted(this.fs, old.root)
    if (this.#adopts)
      this.log.info(
        { path: this.path },
        `holdfast has taken over ${this.path}, and keeps what it held as the content 0`,
      )
    if (this.#isForeign) return quarantineOld(this.area, this.random)
    const retiring = this.content?.exchanged.retiring
    if (retiring && !(await isOver(this.area, retiring))) return
    // It was changed before it was read, and by far too much: all of it is drift.
    if (old.tree.isCut) return void (this.hasRest = true)
    try {
      await removeEntries(this.fs, old.root, old.tree.entries, this.#removed)
      await this.fs.removeDirectory(this.directory, this.names.staging(this.random))
    } catch (error) {
      // Another program has added files since the check.
      if (codeOf(error) !== 'ENOTEMPTY') throw error
      await quarantineOld(this.area, this.random)
    }
  }

  protected async discardContent(): Promise<void> {
    if (this.#made) await remove(this.fs, this.directory, this.names.staging(this.random))
    if (this.#generation) await remove(this.fs, this.directory, this.#generation.name)
  }
}

/*
 * An exchange must take out the directory that the publication has read: otherwise another program has put its own there meanwhile, and
 * gets it back.
 */

/** An exchange that made staged content visible. */
interface Exchange {
  readonly fs: FileSystem
  readonly directory: Descriptor
  readonly name: string
  /** Of the target, for people. */
  readonly path: string
  readonly names: TargetNames
  /** Of the staging name, which what came out has now. */
  readonly random: string
  readonly staged: Attributes
}

/** What became of another program's content that came out. */
interface Foreign {
  readonly error: DurableWriteError
  /** The staged content is still visible. */
  readonly published: boolean
  /** The caller must delete nothing. */
  readonly keep: boolean
}

/** undefined: `old` came out. @internal */
export async function giveBackForeign(exchange: Exchange, old: Attributes): Promise<Foreign | undefined> {
  const { fs, directory, name, path, names, random, staged } = exchange
  const staging = names.staging(random)
  const out = await fs.look(directory, staging)
  if (out?.inode === old.inode && out.device === old.device && out.type === old.type) return undefined
  let published = true
  let failure: Error | undefined
  if (out !== undefined) {
    await fs.rename(directory, staging, directory, name, 'exchange')
    published = !(await isAt(fs, directory, staging, staged))
    // A power cut can leave the first exchange without the second. So sync before the staged content goes: else the target could come back
    // half deleted, with a foreign directory under a staging name.
    if (!published) failure = await syncDirectory(fs, directory)
  }
  const keep = published || failure !== undefined
  return { error: errorFor(path, staging, names.quarantine(random), published, failure), published, keep }
}

async function syncDirectory(fs: FileSystem, directory: Descriptor): Promise<Error | undefined> {
  const owner = 'the target'
  return (await barrier(fs, [{ descriptor: directory, type: 'directory', owners: [owner] }])).get(owner)
}

/** `quarantine`: the name that the next run gives to foreign content under the staging name. */
function errorFor(
  path: string,
  staging: string,
  quarantine: string,
  published: boolean,
  failure: Error | undefined,
): DurableWriteError {
  const back = 'holdfast put its content back'
  const unsure =
    failure &&
    `${back}, but this may not survive a power cut (${failure.message}): if the new content is there after one, that ` +
      `program's content is ${staging} beside the target, and ${quarantine} after the next run; holdfast deleted nothing`
  const state = published
    ? `what it put there is now ${staging} beside the target, and ${quarantine} after the next run; holdfast deleted nothing`
    : (unsure ?? back)
  return foreign(`another program replaced ${path} meanwhile`, path, { published, state })
}
