/** Real file systems as the ground of a history. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { intercepted } from '../../durable/intercepted.js'
import { textOfBystander } from './generate.js'
import type { Answer } from './judge.js'
import type { Random } from '../../random.js'
import type { MountedPair } from './mounted-pair.js'
import { type Change, type Publication, onReal } from './operations.js'
import { bystanders, initialDirectories } from './places.js'
import { call, clockStart, type Ground, Interruption } from './play.js'
import { type Snapshot, snapshotOfDirectory } from './snapshot.js'

/** The power is lost before this call of the FileSystem interface. */
export interface Cut {
  readonly before: number
  readonly lose: () => void
}

/** Each boot of each ground has another ID. */
let boots = 0

export class RealGround implements Ground {
  #boot = ++boots
  /** Meant for the next call of the program. */
  cut: Cut | undefined
  /** Whether it has been made. */
  isCut = false
  now = clockStart

  constructor(
    readonly disks: MountedPair,
    readonly lose?: (random: Random) => void,
  ) {}

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
      onReal(this.disks.root, operation)
    } catch {
      // It cannot be done here: see operations.ts.
    }
  }

  async publish(publication: Publication, killedBefore = Infinity): Promise<Answer | undefined> {
    const { cut } = this
    const interruption = new Interruption(this, publication, killedBefore)
    let calls = 0
    const before = (name: string): void => {
      if (cut && ++calls === cut.before) {
        cut.lose()
        this.isCut = true
      }
      interruption.before(name)
    }
    const answer = await this.run((fs, base) => call(fs, base, publication), before)
    return interruption.isKilled ? undefined : { ...answer, meanwhile: interruption.meanwhile }
  }

  async run<T>(
    work: (fs: FileSystem, base: string) => Promise<T>,
    before?: (call: string) => void | Promise<void>,
  ): Promise<T> {
    const { fs } = intercepted((name) => before?.(name))
    // Nobody uses it; and on machines of tests, process 1 may be somebody else's, which may not be looked at.
    fs.userOf = () => Promise.resolve(undefined)
    fs.bootId = () => Promise.resolve(`boot ${this.#boot}`)
    fs.now = () => this.now
    return work(fs, this.disks.root)
  }

  losePower(random: Random): void {
    this.lose?.(random)
    this.reboot()
  }

  sync(): void {
    this.disks.sync()
  }

  /** In good order, or after a loss of power. */
  reboot(): void {
    this.#boot = ++boots
    this.isCut = false
    this.cut = undefined
    this.disks.boot()
  }

  look(): Snapshot {
    return snapshotOfDirectory(this.disks.root)
  }
}
