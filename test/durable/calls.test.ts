/* What holds in every scene in which nothing fails: the rules of calls/rules.ts over all calls of the FileSystem interface. */
import t from 'tap'
import { play, type Played } from './calls/play.js'
import { breachOf, ruleNames, rules } from './calls/rules.js'
import { scenes } from './calls/scenes.js'
import { shownScenes, steps } from './calls/steps.js'

const played: Played[] = []
for (const scene of scenes) played.push(await play(scene))

for (const rule of ruleNames) {
  await t.test(`${rule}: else ${rules[rule].protects}`, async (t) => {
    const wrong: string[] = []
    for (const one of played) {
      const breach = await breachOf(rule, one)
      const exempt = one.scene.exempt?.[rule]
      if (breach !== undefined && exempt === undefined) wrong.push(breach)
      if (breach === undefined && exempt !== undefined)
        wrong.push(`the rule holds in "${one.scene.name}", which is exempt from it: ${exempt}`)
    }
    t.equal(wrong[0], undefined, `${wrong.length} scenes break it`)
  })
}

await t.test('steps.txt shows people what these scenes do', async (t) => {
  const { now, kept } = steps(played)
  t.equal(kept.match(/^# /gm)?.length, shownScenes.length)
  t.ok(kept.split('\n').length <= 400, 'a person can read it')
  t.equal(kept, now, 'HOLDFAST_WRITE_STEPS=1 writes it anew')
})
