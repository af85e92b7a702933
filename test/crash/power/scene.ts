/** What a scenario has at hand. */
import type { Answer, Order } from './actor-program.js'
import type { LoggedDisk } from './logged-disk.js'
import { LineProcess } from './process-lines.js'
import type { Random } from '../../random.js'
import type { Target } from './targets.js'

export interface Scenario {
  readonly name: string
  readonly targets: readonly Target[]
  /** So many states are drawn where the run does not want all; absent: each is examined. */
  readonly most?: number
  run(scene: Scene): Promise<void>
}

export interface Scene {
  readonly disk: LoggedDisk
  readonly random: Random
  /** Publishes and demands success. */
  readonly publish: (actor: LineProcess, targets: readonly Target[], generation: number) => Promise<void>
  /** The two change places: what each holds then. */
  readonly exchange: (
    actor: LineProcess,
    targets: readonly [Target, Target],
    generations: readonly [number, number],
  ) => Promise<void>
  /** A new process with the library. */
  readonly actor: () => LineProcess
}

export function sceneOf(disk: LoggedDisk, random: Random): Scene {
  return {
    disk,
    random,
    actor: () => LineProcess.node('actor-program'),
    async publish(actor, targets, generation) {
      const answer = (await actor.ask(orderOf(disk, targets, generation))) as Answer
      for (const result of answer) if ('error' in result) throw new Error(result.error.message)
    },
    async exchange(actor, targets, exchanged) {
      await actor.ask({ ...orderOf(disk, targets, 0), exchanged } satisfies Order)
    },
  }
}

export function orderOf(disk: LoggedDisk, targets: readonly Target[], generation: number): Order {
  return { mountPoint: disk.mountPoint, log: disk.log, targets, generation }
}
