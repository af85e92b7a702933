import { giveBackForeign } from './came-out.js'
import type { Attributes } from '../file-system.js'
import { TargetPublication } from './publication.js'
import { readRecords, isLeftLink, leftLinks } from '../record/index.js'
import { refuseOtherThanDirectory } from '../target/index.js'

/** What both forms of directories have in common. Each takes the place of a link that a removal has left, in one exchange. */
export abstract class DirectoryFormPublication extends TargetPublication {
  protected override async refuseKind(found: Attributes): Promise<void> {
    if (!(await this.isLeftLink(found))) refuseOtherThanDirectory(this.path, found)
  }

  protected async isLeftLink({ type }: Attributes): Promise<boolean> {
    if (type !== 'symlink') return false
    return isLeftLink(this.fs, this.directory, this.name, await this.#leftLinks())
  }

  async #leftLinks(): Promise<string[]> {
    return leftLinks((await readRecords(this.fs, this.directory, this.name, this.names)).valid)
  }

  /** Exchanges what is staged with `old`. */
  protected async exchangeWith(old: Attributes, staged: Attributes): Promise<void> {
    const links = old.type === 'symlink' ? await this.#leftLinks() : []
    // Nobody keeps a link's inode from being given to what replaces it.
    if ((await this.renameOver(staged, 'exchange', old)) && old.type !== 'symlink') return
    const { fs, directory, name, path, names, random } = this
    const found = await giveBackForeign({ fs, directory, name, path, names, random, staged, links }, old)
    if (found === undefined) return
    this.keep = found.keep
    this.published = found.published
    throw found.error
  }
}
