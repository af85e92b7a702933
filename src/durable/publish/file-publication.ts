import {
  type StagedEntries,
  disinheritFile,
  identityOf,
  remove,
  setMetadata,
  type Current,
  readFileTree,
} from '../path/index.js'
import type { PlannedContent } from './content.js'
import { codeOf } from '../../errors.js'
import { unfit } from '../errors.js'
import type { Attributes, FileSystem } from '../file-system.js'
import { type StagedContent, TargetPublication } from './publication.js'
import { PlannedTree } from './planned-tree.js'
import { mountedFileError } from '../target/index.js'
import { stageFiles } from './stage.js'
import type { Owner, PublicationOptions } from '../types.js'

export interface FilePlan {
  readonly target: string
  readonly content: PlannedContent
  readonly mode: number
  readonly owner: Owner
}

/**
 * A single file, renamed over the old one: never exchanged, never removed first. kubelet reads every file of its manifest
 * directory whose name has no leading dot, and would take the second half of an exchange for a deletion (pkg/kubelet/config/file_linux.go).
 */
export class FilePublication extends TargetPublication {
  readonly kind = 'file'
  readonly planned: PlannedTree
  #old: Attributes | undefined

  constructor(
    fs: FileSystem,
    readonly plan: FilePlan,
    options: PublicationOptions,
  ) {
    super(fs, plan.target, options)
    this.planned = PlannedTree.ofFile(plan.content, plan.mode, plan.owner)
  }

  protected refuseKind({ type }: Attributes): void {
    const { path } = this
    if (type === 'file') return
    const code = type === 'symlink' ? 'ELOOP' : type === 'directory' ? 'EISDIR' : 'EINVAL'
    const what = { symlink: 'a symbolic link', directory: 'a directory', other: 'not a regular file' }[type]
    throw unfit(`${path} is ${what}`, { code, syscall: 'lstat', path, advice: 'name a regular file' })
  }

  protected async readCurrent(): Promise<Current | undefined> {
    const attributes = await this.fs.look(this.directory, this.name)
    this.#old = attributes
    if (attributes === undefined) return undefined
    this.refuseKind(attributes)
    try {
      const tree = await readFileTree(this.fs, this.directory, this.name, this.bound)
      return { attributes, tree }
    } catch (error) {
      throw codeOf(error) === 'EXDEV' ? mountedFileError(this.path, error) : error
    }
  }

  protected async isComplete(): Promise<boolean> {
    return Promise.resolve(true)
  }

  protected async stageContent(staged: StagedEntries<TargetPublication>): Promise<StagedContent> {
    const name = this.names.staging(this.random)
    const file = await staged.create(this.scope, this.directory, name)
    await stageFiles(this.fs, this.planned, (_, write) => write(file))
    const metadata = this.oldMetadata(
      await disinheritFile(this.fs, file, this.directory),
      this.site.parent.attributes.uid,
    )
    const { mode, owner } = this.planned.root
    const kept = metadata.of('', 'file', mode)
    const attributes = await setMetadata(this.fs, file, { target: this.path, mode, owner, ...kept })
    staged.add(this.scope, file, this)
    return {
      identity: identityOf(attributes),
      attributes: metadata.digest(this.planned.heads),
      open: [],
      exchanged: {},
      swap: async () => {
        await this.renameOver(attributes, this.#old === undefined ? 'noreplace' : 'replace')
      },
      swapped: this.parentDirectory,
    }
  }

  protected async discardContent(): Promise<void> {
    await remove(this.fs, this.directory, this.names.staging(this.random))
  }
}
