import type { Descriptor, Mount } from '../../src/durable/file-system.js'
import { setHold } from '../../src/durable/operator/hold.js'
import { readPublication } from '../../src/durable/look/inspect.js'
import { namesFor } from '../../src/durable/path/names.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { messageOf } from '../../src/errors.js'
import { find } from '../crash/model/content.js'
import { ModelDisk } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { makeDirectory } from '../crash/model/scenario.js'

/* A published target on the model disk, for tests of later calls on it. */

export const target = '/etc/certs'
export const names = namesFor('certs')

/** On a disk on which no durability is proven. */
export class Unproven extends ModelProcess {
  override async mount(descriptor: Descriptor): Promise<Mount> {
    return { ...(await super.mount(descriptor)), proven: false, lasting: false }
  }
}

/** Tries the target's lock, in this process, before each close of a descriptor while it is locked. */
export class Asked extends ModelProcess {
  /** The answers, to the first semicolon; 'nothing' where it got the lock. */
  readonly told: string[] = []
  #watches = false
  #isLocked = false

  async during(work: () => Promise<unknown>): Promise<unknown> {
    this.#isLocked = false
    this.#watches = true
    const refused = await refusal(work())
    this.#watches = false
    return refused
  }

  override tryLock(descriptor: Descriptor): boolean {
    this.#isLocked = true
    return super.tryLock(descriptor)
  }

  override async close(descriptor: Descriptor): Promise<void> {
    if (this.#watches && this.#isLocked) {
      this.#watches = false
      const refused = await refusal(setHold(this, target, undefined, {}))
      this.told.push(refused === undefined ? 'nothing' : (messageOf(refused).split(';')[0] ?? ''))
      this.#watches = true
    }
    await super.close(descriptor)
  }
}

/** The calls are those that come after it. */
export async function published<Process extends ModelProcess = ModelProcess>(
  Process: new (disk: ModelDisk) => Process = ModelProcess as new (disk: ModelDisk) => Process,
  options: PublicationOptions = {},
) {
  const disk = new ModelDisk()
  makeDirectory(disk, '/etc', 0o755)
  const fs = new Process(disk)
  await publish([directoryPublication(fs, { target, files: { a: '1' }, ...options })])
  const calls: string[] = []
  fs.before = (call, name) => void calls.push(`${call} ${name}`.trim())
  const parent = find(disk, '/etc')?.number ?? 0
  const beside = () => [...disk.inode(parent).now.entries.keys()].sort()
  const isHeld = async () => (await readPublication(fs, target))?.hold !== undefined
  return { disk, fs, parent, calls, beside, isHeld }
}

/** The error of a call; undefined without one. Tells a defect of the program from its messages. */
export const refusal = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => (error instanceof TypeError ? 'a mistake' : error),
  )
