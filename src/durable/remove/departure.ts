import { codeOf, failureOf } from '../../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import type { Present } from '../keep/index.js'
import type { Site } from '../target/index.js'
import { placeTaken } from './removal-errors.js'
import { isAt } from '../publish/index.js'

/** A target leaves its place for a staging name, and may come back: see removal.ts. */
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

  /** `confirm`: looks at what left, and throws where it has to come back. */
  async leave(staging: string, { attributes }: Present, confirm: (isIt: boolean) => Promise<void>): Promise<void> {
    const { fs, site } = this
    this.gone = true
    const failure = await failureOf(fs.rename(this.#parent, site.name, this.#parent, staging, 'noreplace'))
    if (failure !== undefined && (await isAt(fs, this.#parent, site.name, attributes))) {
      this.gone = false
      throw failure
    }
    try {
      // Another program may have put its own entry in its place.
      await confirm(await isAt(fs, this.#parent, staging, attributes))
    } catch (error) {
      await this.comeBack(staging)
      throw error
    }
  }

  async comeBack(staging: string): Promise<void> {
    const { fs, site } = this
    const failure = await failureOf(fs.rename(this.#parent, staging, this.#parent, site.name, 'noreplace'))
    if (codeOf(failure) === 'EEXIST') throw placeTaken(site.path, staging)
    if (failure !== undefined) throw failure
    this.gone = false
  }
}
