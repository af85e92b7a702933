import type { StagedFiles } from './barrier.js'
import { foreign, unfit } from './errors.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'
import { dataLink } from './generation.js'
import { Publication, type SharedDirectory } from './publication.js'
import { empty, makeWritable, remove, removeInside } from './remove.js'
import type { DirectoryPlan } from './request.js'
import { Labels, stageTree } from './stage.js'
import { readTree, type Tree, treeOf } from './tree.js'
import type { PublicationOptions } from './types.js'

/** A directory that is exchanged as a whole. */
export class DirectoryPublication extends Publication {
  readonly kind = 'exchange'
  protected readonly wanted: Tree
  /** The target as it was when it was read. */
  #old: Attributes | undefined
  /** The same, open: it stays the same directory under whatever name. */
  #oldDirectory: Descriptor | undefined
  #staged: Attributes | undefined
  #made = false
  /** Somebody else's entry is under the staging name: nothing may be deleted. */
  #keep = false

  constructor(
    fs: FileSystem,
    readonly plan: DirectoryPlan,
    options: PublicationOptions,
  ) {
    super(fs, plan.target, options)
    this.wanted = treeOf(plan, fs.user)
  }

  protected refuseKind(found: Attributes): void {
    refuseOtherThanDirectory(this.path, found)
  }

  protected async readCurrent(): Promise<Tree | undefined> {
    const { directory, attributes } = this.parent
    this.#old = await this.fs.look(directory, this.name)
    if (this.#old === undefined) return undefined
    this.refuseKind(this.#old)
    if (this.#oldDirectory !== undefined) await this.scope.close(this.#oldDirectory)
    const opened = await this.scope.keep(this.fs.openDirectory(directory, this.name))
    this.#oldDirectory = opened
    await refuseOtherMount(this.fs, this.path, opened, this.mount.id, attributes.device)
    const tree = await readTree(this.fs, opened, (await this.fs.label(opened)) !== undefined)
    this.#refuseOtherForm(tree)
    return tree
  }

  /** A target whose consumers go through `..data` would lose them with an exchange. */
  #refuseOtherForm(tree: Tree): void {
    if (!tree.entries.some(({ path, type }) => path === dataLink && type === 'symlink')) return
    throw unfit(
      `${this.path} was published with publish: symlink; nothing was changed; changing the form would break those who mount ` +
        `it: keep publish: symlink, or remove the directory first`,
      { code: 'EEXIST', syscall: 'lstat', path: this.path },
    )
  }

  protected async isComplete(): Promise<boolean> {
    return Promise.resolve(true)
  }

  protected async stageContent(staged: StagedFiles<Publication>): Promise<Descriptor[]> {
    const { directory } = this.parent
    const name = this.names.staging(this.random)
    await this.fs.createDirectory(directory, name)
    this.#made = true
    const root = await staged.room(() => this.scope.keep(this.fs.openDirectory(directory, name)))
    const labels = new Labels(this.recovery?.tree)
    const tree = await stageTree(this.scope, root, this.plan, labels, staged, this)
    this.#staged = tree.root
    return [...tree.directories]
  }

  async swap(): Promise<void> {
    if (!this.#staged) throw new Error('stage() comes first')
    await this.renameOver(this.#staged, this.#old === undefined ? 'noreplace' : 'exchange')
    if (this.#old !== undefined) await this.#checkWhatCameOut(this.#old, this.#staged)
  }

  /** What the exchange took out must be what was read: otherwise another program has put its own there meanwhile. */
  async #checkWhatCameOut(old: Attributes, staged: Attributes): Promise<void> {
    const { directory } = this.parent
    const name = this.names.staging(this.random)
    const out = await this.fs.look(directory, name)
    if (out?.inode === old.inode && out.device === old.device) return
    this.#keep = true
    if (out !== undefined) {
      await this.fs.rename(directory, name, directory, this.name, 'exchange')
      const back = await this.fs.look(directory, name)
      if (back?.inode === staged.inode && back.device === staged.device) {
        this.published = false
        this.#keep = false
      }
    }
    throw foreign(
      this.published
        ? `another program replaced ${this.path} meanwhile; what it put there is in ${name} beside it, and nothing was deleted`
        : `another program replaced ${this.path} meanwhile; its content was left alone`,
      this.path,
      this.published,
    )
  }

  get swapped(): SharedDirectory {
    return this.parentDirectory
  }

  /** The first removal of the old content, where it says something: a foreign owner or an immutable flag does not. */
  override async mutate(): Promise<void> {
    const first = this.recovery?.tree?.entries.find(({ type }) => type !== 'directory')
    const old = this.#oldDirectory
    if (first && old !== undefined && (await removeInside(this.fs, old, first.path))) return
    await super.mutate()
  }

  protected async retireContent(): Promise<void> {
    if (this.#oldDirectory === undefined || this.#keep) return
    await makeWritable(this.fs, this.#oldDirectory)
    await empty(this.fs, this.#oldDirectory)
    await this.fs.removeDirectory(this.parent.directory, this.names.staging(this.random))
  }

  protected async discardContent(): Promise<void> {
    if (this.#made && !this.#keep) {
      await remove(this.fs, this.parent.directory, this.names.staging(this.random))
    }
  }
}

/** Only a directory can be exchanged with one; a symbolic link would be exchanged itself. */
export function refuseOtherThanDirectory(path: string, found: Attributes): void {
  if (found.type === 'symlink') {
    throw unfit(
      `${path} is a symbolic link, which would be replaced itself; nothing was changed; name the directory that it leads to`,
      { code: 'ELOOP', syscall: 'lstat', path },
    )
  }
  if (found.type !== 'directory') {
    throw unfit(
      `${path} is not a directory; nothing was changed; name a directory, or remove what is there`,
      { code: 'ENOTDIR', syscall: 'lstat', path },
    )
  }
}

/** A mount point can be neither exchanged nor removed, and removing what it covers would detach it. */
export async function refuseOtherMount(
  fs: FileSystem,
  path: string,
  opened: Descriptor,
  parentMount: number,
  parentDevice: number,
): Promise<void> {
  if ((await fs.mount(opened)).id !== parentMount) {
    throw unfit(
      `${path} is a mount point; nothing was changed; name a directory inside it, or mount its parent instead`,
      { code: 'EBUSY', syscall: 'lstat', path },
    )
  }
  if ((await fs.attributes(opened)).device !== parentDevice) {
    throw unfit(
      `${path} is on another device than its parent (a btrfs subvolume); nothing was changed; name a directory inside it`,
      { code: 'EXDEV', syscall: 'lstat', path },
    )
  }
}
