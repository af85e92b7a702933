/* What two callers come to, as if one had come after the other: the judge of a scene that meets another publisher. */
import { errorsIn, partsOf } from './judge-answers.js'
import { play, type Played } from './play.js'
import { lastingOf, saidOf, targetsOn, viewOf } from './readers.js'
import { directory, type Scene } from './scene.js'
import { diskFor } from './play.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { codeOf } from '../../../src/errors.js'

/** Another publisher, as a second process: so many publications, one after the other. Answers the outcome of the last. */
export async function another(scene: Scene, disk: ModelDisk, times: number): Promise<string> {
  const publishes = scene.another ?? ((fs, text) => directory({ files: { other: text } })(fs))
  let answer = ''
  for (let time = 1; time <= times; time++) {
    const value = await publishes(new ModelProcess(disk), `by another ${time}`)
    answer = keyOf({ value })
  }
  return answer
}

/** An answer without what differs from run to run. */
export function keyOf(answer: Played['answer']): string {
  const parts = partsOf(answer)
  if (parts.length === 0) return 'value' in answer ? JSON.stringify(answer.value ?? null) : String(answer.thrown)
  return parts
    .map((part) => (part instanceof Error ? (codeOf(part) ?? part.name) : `${part.outcome} ${part.digest}`))
    .join()
}

/** The answers that all readers of the disk get in the end. */
export async function stateOf(disk: ModelDisk, user: ModelProcess['user']): Promise<string> {
  const said: unknown[] = []
  for (const path of targetsOn(disk)) said.push(lastingOf(await saidOf(disk, path, user)))
  return JSON.stringify([[...viewOf(disk)].sort(), said])
}

/** An end as if one caller had come after the other. `scene`, `other`: their answers; undefined: an error of the one that had to wait. */
interface Order {
  readonly name: string
  readonly scene: string | undefined
  readonly other: string | undefined
  readonly state: string
}

export async function ordersOf(scene: Scene, undisturbed: Played, times: number): Promise<Order[]> {
  const { user } = undisturbed
  const first = undisturbed.end.fork()
  const otherSecond = await another(scene, first, times)
  const second = await diskFor(scene)
  const otherFirst = await another(scene, second, times)
  const afterOther = await stateOf(second, user)
  const then = await play(scene, { disk: second.fork() })
  const key = keyOf(undisturbed.answer)
  return [
    { name: 'scene, other', scene: key, other: otherSecond, state: await stateOf(first, user) },
    { name: 'other, scene', scene: keyOf(then.answer), other: otherFirst, state: await stateOf(then.end, user) },
    { name: 'scene alone', scene: key, other: undefined, state: await stateOf(undisturbed.end, user) },
    { name: 'other alone', scene: undefined, other: otherFirst, state: afterOther },
  ]
}

/** The answer to a caller that finds the lock held: it is to come again. */
const waits = /^(EAGAIN|ESTALE)(,|$)/

/** Which order a disturbed scene is as; undefined: it is as none of them. */
export async function orderOf(orders: readonly Order[], played: Played, other: string): Promise<string | undefined> {
  const scene = keyOf(played.answer)
  const state = await stateOf(played.end, played.user)
  return orders.find(
    (order) =>
      order.state === state &&
      (order.scene === undefined ? errorsIn(played.answer).length > 0 && waits.test(scene) : order.scene === scene) &&
      (order.other === undefined ? waits.test(other) : order.other === other),
  )?.name
}
