/**
 * Another process's fsync between the exchange and barrier 2: while strace holds the program under test there, this process writes and
 * syncs another file, and meets the failing flush.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Answer, Order } from './actor-program.js'
import { exchanged, heldActor, release } from './held-actor.js'
import type { LoggedDisk } from './logged-disk.js'

/** Publishes the order's one target. Throws if the fault could not be brought about. */
export async function publishBesideFailingFsync(disk: LoggedDisk, order: Order, times: number): Promise<Answer> {
  const [target] = order.targets
  const actor = heldActor()
  let file: FileHandle | undefined
  try {
    file = await open(join(disk.mountPoint, 'bystander'), 'w')
    await file.write('before')
    await file.sync()
    // The generation is renamed over in symlink mode; elsewhere the target itself.
    const swapped = join(disk.mountPoint, target?.path ?? '', target?.kind === 'symlink' ? '..data' : '')
    const seen = exchanged(swapped)
    const answered = actor.ask(order)
    await seen
    await disk.disk.ask('reset')
    await disk.disk.ask(`fail flush 1 ${times}`)
    await file.write(' after')
    const failure = await file.sync().then(
      () => undefined,
      (error: unknown) => error,
    )
    release(actor)
    const answer = (await answered) as Answer
    if (failure === undefined) throw new Error("the bystander's fsync did not meet the failing flush")
    return answer
  } finally {
    await file?.close().catch(() => undefined)
    // Where it is still held, since something else went wrong.
    release(actor)
    await actor.end()
  }
}
