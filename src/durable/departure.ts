import { codeOf, failureOf } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'
import type { Present } from './quarantine.js'
import { renameError } from './refusals.js'
import { placeTaken } from './removal-errors.js'
import type { Site } from './site.js'
import { isAt } from './visible-rename.js'

/**
 * A target leaves its place for a name under which nobody finds it, and may come back: see removal.ts. With a link, which is staged under
 * that name, the two change places in one exchange: the path leads to the one or the other at each instant.
 */
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

  /** Makes the link, not durably: its directory is synced with the record that names it. */
  async stageLink(staging: string, text: string): Promise<Attributes> {
    await this.fs.createLink(this.#parent, staging, text)
    const link = await this.fs.look(this.#parent, staging)
    if (link === undefined) throw new Error(`${staging} is gone in the instant in which it was made`)
    return link
  }

  /** `confirm`: looks at what left, and throws where it has to come back. */
  async leave(
    staging: string,
    { attributes }: Present,
    link: Attributes | undefined,
    confirm: (isIt: boolean) => Promise<void>,
  ): Promise<void> {
    const { fs, site } = this
    this.gone = true
    const mode = link === undefined ? 'noreplace' : 'exchange'
    const failure = await failureOf(fs.rename(this.#parent, site.name, this.#parent, staging, mode))
    if (failure !== undefined && (await isAt(fs, this.#parent, site.name, attributes))) {
      this.gone = false
      throw link === undefined ? failure : renameError(site.path, site.mount, mode, failure)
    }
    try {
      // Somebody may have put his own into its place.
      await confirm(await isAt(fs, this.#parent, staging, attributes))
    } catch (error) {
      await this.comeBack(staging, link)
      throw error
    }
  }

  /** `link`: what has its place now. */
  async comeBack(staging: string, link: Attributes | undefined): Promise<void> {
    const { fs, site } = this
    const mode = link === undefined ? 'noreplace' : 'exchange'
    const rename = () => fs.rename(this.#parent, staging, this.#parent, site.name, mode)
    const failure = await failureOf(rename())
    if (codeOf(failure) === 'EEXIST') throw placeTaken(site.path, staging)
    if (failure !== undefined) throw failure
    // Nobody keeps a link's inode from being given to what replaces it.
    if (link !== undefined && (await fs.look(this.#parent, staging))?.type !== 'symlink') {
      await rename()
      throw placeTaken(site.path, staging)
    }
    this.gone = false
  }
}
