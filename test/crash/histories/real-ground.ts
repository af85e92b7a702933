/** Real file systems as the ground of a history. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { intercepted } from '../../durable/intercepted.js'
import { textOfBystander } from './generate.js'
import type { Answer } from './judge.js'
import { type Change, type Publication, rowOf } from './operations.js'
import { bystanders, initialDirectories } from './places.js'
import { call, type Ground, Interruption } from './play.js'
import type { Loss, RealDisks } from './real-disks.js'
import { type Snapshot, snapshotOfDirectory } from './snapshot.js'

/** The power is lost before this call of the FileSystem interface. */
export interface Cut {
  readonly before: number
  readonly loss: Loss
}

export class RealGround implements Ground {
  #boot = 1
  /** Meant for the next call of the program. */
  cut: Cut | undefined
  /** Whether it has been made. */
  isCut = false
  /** Whether the target's name had been changed by then. */
  calls = 0

  constructor(readonly disks: RealDisks) {}

  /** Where every history begins. */
  begin(): void {
    this.disks.begin()
    const { root } = this.disks
    for (const path of initialDirectories) mkdirSync(join(root, path))
    for (const path of bystanders) writeFileSync(join(root, path), textOfBystander(path))
    this.disks.sync()
  }

  change(operation: Change): void {
    try {
      rowOf(operation).onReal?.(this.disks.root, operation)
    } catch {
      // It cannot be done here: see operations.ts.
    }
  }

  async publish(publication: Publication, killedBefore = Infinity): Promise<Answer | undefined> {
    const { cut } = this
    const interruption = new Interruption(this, publication, killedBefore)
    this.calls = 0
    const { fs } = intercepted((name) => {
      if (cut && ++this.calls === cut.before) this.lose(cut.loss)
      interruption.before(name)
    })
    fs.bootId = () => Promise.resolve(`boot ${this.#boot}`)
    const answer = await call(fs, this.disks.root, publication)
    return interruption.isKilled ? undefined : { ...answer, meanwhile: interruption.meanwhile }
  }

  lose(loss: Loss): void {
    this.disks.lose(loss)
    this.isCut = true
  }

  /** After a loss. */
  boot(): void {
    this.#boot += 1
    this.isCut = false
    this.cut = undefined
    this.disks.boot()
  }

  sync(): void {
    this.disks.sync()
  }

  reboot(): void {
    this.#boot += 1
    this.disks.unmount()
    this.disks.mountAgain()
  }

  look(): Snapshot {
    return snapshotOfDirectory(this.disks.root)
  }
}
