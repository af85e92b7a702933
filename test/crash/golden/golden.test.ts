/**
 * Disks that an earlier build has left, after a kill, a power cut or the end of a call: the present build answers of each what that build has
 * answered, but for the differences that differences.ts allows. `make.ts` has drawn them from the engines of the crash suite.
 */
import t from 'tap'
import { asked } from './asked.js'
import { differences } from './differences.js'
import { type Answer, file, type Golden, readGolden } from './disk.js'

const needsRoot = process.geteuid?.() === 0 ? false : 'needs root'
/** Enough to see what kind of difference it is. */
const shown = 5

/** What this build must answer. */
function expected(golden: Golden): Answer[] {
  return golden.answers.map((answer) => differences.reduce((so, { now }) => now(so, golden), answer))
}

await t.test('each golden disk', { skip: needsRoot }, async (t) => {
  const disks = readGolden()
  const answers = await asked(file, disks)
  const engines = [...new Set(disks.map(({ name }) => name.split(/[: ]/)[0] ?? ''))]
  for (const engine of engines) {
    const ofEngine = disks.flatMap((disk, index) =>
      disk.name.startsWith(engine) ? [{ disk, now: answers[index] ?? [] }] : [],
    )
    await t.test(`${ofEngine.length} disks of the engine "${engine}" are answered as they were`, (t) => {
      const before = ofEngine.map(({ disk }) => ({ disk: disk.name, answers: expected(disk) }))
      const now = ofEngine.map(({ disk, now }) => ({ disk: disk.name, answers: now }))
      const differing = before.flatMap(({ disk, answers }, index) =>
        answers.flatMap((was, at) => {
          const is = now[index]?.answers[at]
          return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ disk, was, is }]
        }),
      )
      for (const one of differing.slice(0, shown)) t.strictSame(one.is, one.was, one.disk)
      t.equal(differing.length, 0, 'answers that differ')
      t.end()
    })
  }
})

await t.test('each allowed difference is one', (t) => {
  const disks = readGolden()
  for (const { why, now } of differences) {
    const isSeen = disks.some((disk) =>
      disk.answers.some((answer) => JSON.stringify(now(answer, disk)) !== JSON.stringify(answer)),
    )
    t.ok(isSeen, why)
  }
  t.ok(disks.length >= 300, 'and the disks are all there')
  t.end()
})
