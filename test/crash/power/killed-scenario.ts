/**
 * Processes that are killed at random instants, each followed by a successor which publishes the same content: what the
 * killed one left in memory is still there, so that the successor sees it, and a power cut may take it away.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { canHold, exchanged, heldActor, killHeld } from './held-actor.js'
import { orderOf, type Scenario, type Scene } from './scene.js'
import type { Target } from './targets.js'

/** Of each, one is killed during its first publication and one during a replacement. */
const targets: readonly Target[] = Array.from({ length: 3 }, (_, number) => ({
  path: `killed/in-${number}/target`,
  kind: number === 2 ? 'symlink' : 'directory',
  content: 'few',
}))
/** Milliseconds of a flush, so that there are instants to be killed in while one is under way. */
const flushTime = 6

export const killedScenario: Scenario = {
  name: 'killed, then a successor',
  targets,
  async run(scene) {
    const { disk } = scene.disk
    await disk.flushTime(flushTime)
    for (const [number, target] of targets.entries()) {
      for (const generation of [1, 2]) {
        // Few random instants lie between the exchange and barrier 2, where a successor is tempted most.
        if (number % 2 === 0 && canHold()) await killBehindExchange(scene, target, generation)
        else await killSomewhere(scene, target, generation)
        const successor = scene.actor()
        await scene.publish(successor, [target], generation)
        await successor.end()
      }
    }
    await disk.flushTime(0)
  },
}

async function killBehindExchange({ disk }: Scene, target: Target, generation: number): Promise<void> {
  const victim = heldActor()
  const link = target.kind === 'symlink' && generation > 1 ? '..data' : ''
  const seen = exchanged(join(disk.mountPoint, target.path, link))
  const answered = victim.tryAsk(orderOf(disk, [target], generation))
  await seen
  await killHeld(victim)
  if ((await answered) !== undefined) throw new Error('the process was not killed in time')
}

async function killSomewhere(scene: Scene, target: Target, generation: number): Promise<void> {
  const victim = scene.actor()
  // The library is loaded before the clock runs.
  await victim.ask(orderOf(scene.disk, [], 0))
  await scene.disk.disk.ask('reset')
  const answered = victim.tryAsk(orderOf(scene.disk, [target], generation))
  await Promise.race([answered, instant(scene)])
  await victim.kill()
}

/** While the n-th flush is under way, or at a random time: most instants of a publication are waits for a flush. */
async function instant({ disk: { disk }, random }: Scene): Promise<void> {
  if (random.below(3) === 0) return delay(random.below(6 * flushTime))
  const flush = 1 + random.below(6)
  const deadline = Date.now() + 1000
  while (Date.now() < deadline && (await disk.counts()).flushes < flush) await delay(1)
}
