import { isLeftLink, leftLinks } from '../record/index.js'
import { codeOf, failureOf } from '../../errors.js'
import { fsyncAll } from '../path/index.js'
import { foreign } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import type { Present } from '../keep/index.js'
import type { StoredRecord } from '../record/index.js'
import { renameError, type Site } from '../target/index.js'
import { placeTaken } from './removal-errors.js'
import { isAt } from '../publish/index.js'

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

  /** `link`: the text of the link that is staged. `confirm`: looks at what left, and throws where it has to come back. */
  async leave(
    staging: string,
    { attributes }: Present,
    link: string | undefined,
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
      await this.comeBack(staging, link === undefined ? [] : [link])
      throw error
    }
  }

  /** `links`: what may be the text of the link that has its place now; none where there is no link. */
  async comeBack(staging: string, links: readonly string[]): Promise<void> {
    const { fs, site } = this
    const mode = links.length === 0 ? 'noreplace' : 'exchange'
    const rename = () => fs.rename(this.#parent, staging, this.#parent, site.name, mode)
    const failure = await failureOf(rename())
    if (codeOf(failure) === 'EEXIST') throw placeTaken(site.path, staging)
    if (failure !== undefined) throw failure
    if (mode === 'exchange' && !(await isLeftLink(fs, this.#parent, staging, links))) {
      await rename()
      throw placeTaken(site.path, staging)
    }
    this.gone = false
  }

  /** Removes the link that was left in its place. What another program has put there in the last instant goes back. */
  async removeLink(records: readonly StoredRecord[]): Promise<void> {
    const { fs, site } = this
    const parent = this.#parent
    // The name of which its record says what may be there: nobody who goes on after a crash takes somebody else's for his own.
    const { staging: claim } = records.find(({ removing }) => removing?.link !== undefined) ?? {}
    const staging = claim?.name ?? site.names.staging(fs.random())
    const failure = await failureOf(fs.rename(parent, site.name, parent, staging, 'noreplace'))
    if (codeOf(failure) === 'ENOENT') return
    if (failure !== undefined) throw failure
    if (await isLeftLink(fs, parent, staging, leftLinks(records))) return fs.removeFile(parent, staging)
    await this.comeBack(staging, [])
    await fsyncAll(fs, [parent])
    throw foreign(`another program replaced ${site.path} meanwhile`, site.path, {
      state: 'holdfast put its content back',
      advice: 'see what it holds',
    })
  }
}
