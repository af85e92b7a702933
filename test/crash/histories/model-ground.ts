/** The model disk as the ground of a history. */
import { ModelError, type ModelDisk } from '../model/model-disk.js'
import { ModelProcess } from '../model/model-process.js'
import { powerCut } from '../model/power-cut.js'
import type { Answer } from './judge.js'
import { type Change, type Publication, rowOf } from './operations.js'
import { call, type Ground, Interruption } from './play.js'
import { type Snapshot, snapshotOfModel } from './snapshot.js'

export class ModelGround implements Ground {
  constructor(public disk: ModelDisk) {}

  change(operation: Change): void {
    try {
      rowOf(operation).onModel?.(this.disk, operation)
    } catch (error) {
      if (!(error instanceof ModelError)) throw error
    }
  }

  async publish(publication: Publication, killedBefore = Infinity): Promise<Answer | undefined> {
    const process = new ModelProcess(this.disk)
    const interruption = new Interruption(this, publication, killedBefore)
    process.before = (call) => interruption.before(call)
    const answer = await call(process, '/', publication)
    // A killed process leaves its locks.
    this.disk = this.disk.fork()
    return interruption.isKilled ? undefined : { ...answer, meanwhile: interruption.meanwhile }
  }

  sync(): void {
    this.disk.syncAll()
  }

  reboot(): void {
    this.disk.syncAll()
    this.disk = powerCut(this.disk, () => 0)
  }

  look(): Snapshot {
    return snapshotOfModel(this.disk)
  }
}
