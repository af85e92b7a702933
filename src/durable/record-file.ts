import type { StagedFiles } from './barrier.js'
import type { Descriptor } from './file-system.js'
import { encodeAppendix, encodeRecord, type RecordBody } from './record.js'
import { remove } from './remove.js'
import type { Scope } from './scope.js'
import { adorn } from './stage.js'

/** The record of a publication that is under way: staged with the content, marked once that is known to be durable. */
export class RecordFile<Owner> {
  #file: Descriptor | undefined
  #staged = false

  constructor(
    readonly scope: Scope,
    readonly parent: Descriptor,
    readonly name: string,
  ) {}

  async stage(body: RecordBody, staged: StagedFiles<Owner>, owner: Owner): Promise<void> {
    const { scope, parent, name } = this
    // A barrier at the bound of staged files may close it: then it is opened again to be marked.
    const file = await staged.create(scope, parent, name)
    this.#staged = true
    this.#file = file
    await scope.fs.write(file, encodeRecord(body))
    await adorn(scope.fs, file, undefined, 0o600, undefined)
    staged.add(scope, file, owner, true)
  }

  /** What it says of is durable from here on. The mark itself is not synced: under another boot nobody needs it. */
  async markSettled(): Promise<void> {
    const { scope, parent, name } = this
    if (this.#file === undefined || !scope.holds(this.#file)) {
      this.#file = await scope.keep(scope.fs.openAppend(parent, name))
    }
    await scope.fs.write(this.#file, encodeAppendix({ settled: true }))
  }

  /** Removes it, if it was made. */
  async discard(): Promise<void> {
    if (this.#staged) await remove(this.scope.fs, this.parent, this.name)
  }
}
