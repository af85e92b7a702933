/** The model disk as the ground of a history. */
import { ModelError, type ModelDisk } from '../model/model-disk.js'
import { ModelProcess } from '../model/model-process.js'
import { powerCut } from '../model/power-cut.js'
import type { Answer } from './judge.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import type { Random } from '../../random.js'
import { type Change, type Publication, onModel } from './operations.js'
import { call, clockStart, type Ground, Interruption } from './play.js'
import { type Snapshot, snapshotOfModel } from './snapshot.js'

export class ModelGround implements Ground {
  now = clockStart
  #running = 0

  constructor(public disk: ModelDisk) {}

  change(operation: Change): void {
    try {
      onModel(this.disk, operation)
    } catch (error) {
      if (!(error instanceof ModelError)) throw error
    }
  }

  async publish(publication: Publication, killedBefore = Infinity): Promise<Answer | undefined> {
    const interruption = new Interruption(this, publication, killedBefore)
    const answer = await this.run(
      (fs, base) => call(fs, base, publication),
      (call) => interruption.before(call),
    )
    return interruption.isKilled ? undefined : { ...answer, meanwhile: interruption.meanwhile }
  }

  async run<T>(
    work: (fs: FileSystem, base: string) => Promise<T>,
    before?: (call: string) => void | Promise<void>,
  ): Promise<T> {
    const process = new ModelProcess(this.disk)
    process.now = () => this.now
    process.before = before
    this.#running += 1
    try {
      return await work(process, '/')
    } finally {
      this.#running -= 1
      // A process that is killed leaves its locks. Another one inside its calls is on the same disk.
      if (this.#running === 0) this.disk = this.disk.fork()
    }
  }

  losePower(random: Random): void {
    const share = random.pick([0, 0.5, 1])
    this.disk = powerCut(this.disk, (options) => (random.next() < share ? 0 : random.below(options)))
  }

  fork(): ModelGround {
    const copy = new ModelGround(this.disk.fork())
    copy.now = this.now
    return copy
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
