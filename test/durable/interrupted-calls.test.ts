/*
 * Before every call of the scenes marked so, another process publishes at the same path, once and twice, another user puts a link above the
 * target, or the caller aborts. The end of two callers must be as if one had come after the other, and an aborted caller gets the truth.
 * `npm test` draws a sixth of these plays, `npm run test:crash` has all.
 */
import t from 'tap'
import { drawn, playEach, playsDrawn } from './calls/faults.js'
import { replaceByLink } from './calls/links.js'
import { another, keyOf, orderOf, ordersOf, stateOf } from './calls/orders.js'
import { play, type Played } from './calls/play.js'
import { breachesOfRules, type RuleName, shown } from './calls/rules.js'
import { scenes } from './calls/scenes.js'

/** Rules that hold in spite of another publisher. */
const alone: readonly RuleName[] = [
  'each descriptor is closed',
  'the lock is held at each change',
  'records are read under the lock',
  'staged content is durable before it is visible',
  'what readers see is never taken apart',
]

t.comment(playsDrawn)

for (const scene of scenes.filter(({ meets }) => meets)) {
  for (const times of [1, 2]) {
    await t.test(`another process publishes ${times} times before each call of "${scene.name}"`, async (t) => {
      const undisturbed = await play(scene)
      const orders = await ordersOf(scene, undisturbed, times)
      await playEach(t, scene, drawn(undisturbed.calls), async ({ index }) => {
        let other = ''
        const act = async (disk: Played['end']): Promise<void> => void (other = await another(scene, disk, times))
        const played = await play(scene, { meanwhile: { index, act }, undisturbed })
        // Another publisher cannot come between synchronous calls.
        if (other === '') return []
        const order = await orderOf(orders, played, other)
        const what = `it answers ${keyOf(played.answer)}, the other ${other}, and the end is as after neither order\n${await stateOf(played.end, played.user)}\n${orders.map((one) => `${one.name}: ${one.scene} ${one.other} ${one.state}`).join('\n')}`
        const strange = order === undefined ? shown('one comes after the other', played, { what }) : undefined
        return [strange, ...(await breachesOfRules(played, alone))]
      })
    })
  }

  await t.test(`another user puts a link above before each call of "${scene.name}"`, async (t) => {
    const undisturbed = await play(scene)
    await playEach(t, scene, drawn(undisturbed.calls), async ({ index }) => {
      const played = await play(scene, { meanwhile: { index, act: replaceByLink }, undisturbed })
      return breachesOfRules(played, ['each descriptor is closed', 'nothing is opened through a link of others'])
    })
  })

  await t.test(`the caller aborts before each call of "${scene.name}"`, async (t) => {
    const undisturbed = await play(scene)
    await playEach(t, scene, drawn(undisturbed.calls), async ({ index }) => {
      const caller = new AbortController()
      const act = (): void => caller.abort()
      const played = await play(scene, { meanwhile: { index, act }, signal: caller.signal, undisturbed })
      // An abort changes nothing on the disk: the rules judge the answer as without an interruption.
      const breaches = await breachesOfRules({ ...played, meanwhile: undefined })
      return breaches.map((breach) => breach && `before call ${index}: ${breach}`)
    })
  })
}
