/** Which earlier contents stay, as a rule on what the records say; history.test.ts has what becomes of them on a disk. */
import t from 'tap'
import { generationFor, historyAfter, limitsBeside, limitsOf, sift, within } from '../../src/durable/keep/history.js'
import type { Judgement } from '../../src/durable/record/judge.js'
import type { Generation, HistoryLimits } from '../../src/durable/types.js'
import { forever, objectOf, without } from './history-scene.js'
import { drifted, found, treeOf, valueOf } from './judgements.js'

const now = 10_000
const pin = { reason: '', until: 'released' } as const

/** An earlier content, by the name of its copy; replaced so long ago. */
const past = (sequence: number, ago = 100, objects: string[] = []): Generation => ({
  name: `copy ${sequence}`,
  sequence,
  digest: `${sequence}`,
  publishedAt: 0,
  replacedAt: now - ago,
  why: sequence === 0 ? 'adopted' : 'published',
  objects: objects.map(objectOf),
})

const sequences = (some: readonly Generation[]) => some.map(({ sequence }) => sequence)

void t.test('so many, so young, and of objects that are there', async (t) => {
  const stay = (limits: HistoryLimits, some = [past(3), past(2, 200), past(1, 300)]) =>
    sequences(within(limits, some, now))
  t.strictSame(stay(forever(2)), [3, 2], 'the newest')
  t.strictSame(stay(forever(0)), [])
  t.strictSame(stay({ keep: 3, maxAge: 200 }), [3], 'a content goes at its age')
  t.strictSame(stay({ keep: 3, maxAge: 201 }), [3, 2])
  t.strictSame(stay({ keep: 3, maxAge: 50 }, [past(1, -1000)]), [1], 'a clock that was set back makes nothing older')
  const made = [past(3, 0, ['a', 'b']), past(2, 0, ['b']), past(1)]
  t.strictSame(stay(without('a', forever(1)), made), [2], 'what goes makes room')
  t.strictSame(stay(without('b', forever(3)), made), [1])
  t.strictSame(stay(without('c', forever(3)), made), [3, 2, 1])
})

void t.test(
  'limits come from the request, or from the last one; a rollback that may be lost keeps one more',
  async (t) => {
    const history = { ...forever(3), generations: [] }
    const limits = (seen: Judgement | undefined, asked?: HistoryLimits) => valueOf(() => limitsOf(asked, seen))
    t.strictSame(limits(undefined), forever(0), 'none for a new target')
    t.strictSame(limits(found()), forever(0))
    t.strictSame(limits(found({ history }), forever(1)), forever(1))
    t.match(limits(found({ history })), forever(3))
    t.match(limits(drifted({ history })), forever(3), 'beside drift, those of the newest record')
    t.strictSame(limits(drifted({ history, removing: { since: 0 } })), forever(0), 'what was taken away has none')
    t.strictSame(limits({ ...drifted({ history }), recorded: false }), forever(0), "neither has somebody else's")
    t.match(limits({ ...found({ history }), recorded: false, known: false }), forever(3), 'if that is known')
    const gone = { ...objectOf('a'), uid: '', gone: true }
    const going = (seen: Judgement, asked: HistoryLimits) => {
      const { keep, mayStay } = limitsOf(asked, seen)
      return [keep, ...['a', 'b', 'c'].filter((name) => mayStay?.(objectOf(name)) === false)]
    }
    t.strictSame(going(found({ objects: [gone, objectOf('b')] }), forever(1)), [1, 'a'])
    t.strictSame(going(drifted({ objects: [gone] }), without('b', forever(1))), [1, 'a', 'b'])
    const aborted = { ...found(), newest: drifted({ history }).newest }
    t.strictSame(limits(aborted), forever(0), 'what is there has a record of its own')

    const beside = (why: 'rolledBack' | 'published', trusted: boolean, keep = 3) =>
      limitsBeside({ why, trusted }, forever(keep)).keep
    t.equal(beside('rolledBack', false), 4)
    t.equal(beside('rolledBack', true), 3)
    t.equal(beside('published', false), 3)
    t.equal(beside('rolledBack', false, 0), 0)
    t.equal(limitsBeside(undefined, forever(3)).keep, 3)
  },
)

void t.test('sift tells generations that stay, that exceed the limits, and leftovers', async (t) => {
  const history = { ...forever(2), generations: [past(4), past(3), past(2), past(1)] }
  const names = ['copy 4', 'copy 2', 'copy 1', 'copy of nobody']
  const sifted = (seen: Judgement | undefined, asked?: HistoryLimits, there = names) =>
    valueOf(() => {
      const { stays, over, leftovers } = sift(there, seen, asked, now)
      return [sequences(stays), over, leftovers]
    })
  t.strictSame(sifted(found({ history })), [[4, 2], ['copy 1'], ['copy of nobody']], 'what is gone leaves room')
  t.strictSame(sifted(found({ history }), forever(1)), [[4], ['copy 2', 'copy 1'], ['copy of nobody']])
  t.strictSame(sifted(found()), [[], [], names])
  t.strictSame(sifted(undefined), [[], [], names])
  const rolledBack = { history, why: 'rolledBack', trusted: false } as const
  t.strictSame(sifted(found(rolledBack)), [[4, 2, 1], [], ['copy of nobody']], 'a rollback that may be lost')
  t.strictSame(sifted(drifted(rolledBack)), [[4, 2, 1], [], ['copy of nobody']], 'the same, beside drift')
  const adopted = { ...forever(0), generations: [past(0)] }
  t.strictSame(sifted(found({ history: adopted }), undefined, ['copy 0']), [[0], [], []], 'what was taken over stays')
})

void t.test('the next record says what stays beside it', async (t) => {
  const after = (asked: {
    limits?: HistoryLimits
    stays?: Generation[]
    added?: Generation
    options?: Parameters<typeof historyAfter>[4]
    found?: Judgement
    desired?: string
  }) => {
    const { limits = forever(2), stays = [past(2), past(1)], added, options = {}, desired = 'new' } = asked
    const history = historyAfter(limits, stays, added, now, options, asked.found, treeOf(desired))
    return history && { ...history, generations: sequences(history.generations) }
  }
  t.strictSame(
    valueOf(() => after({ added: past(3) })),
    { ...forever(2), generations: [3, 2] },
  )
  t.strictSame(after({}), { ...forever(2), generations: [2, 1] })
  t.strictSame(after({ limits: { keep: 2, maxAge: 500 }, stays: [] }), { keep: 2, maxAge: 500, generations: [] })
  t.equal(after({ limits: forever(0) }), undefined, 'nothing, where nothing is to stay')
  const kept = after({ added: past(3), options: { pin } })
  t.strictSame(kept?.generations, [3, 2, 1], 'a rollback keeps one more: the content that it goes back to')

  t.strictSame(after({ options: { hooks: ['reload'] } })?.hooks, ['reload'])
  const history = { ...forever(2), hooks: ['earlier'], generations: [] }
  t.strictSame(after({ found: found({ history }) })?.hooks, ['earlier'], 'those of the last one, where none are named')
  t.notOk('hooks' in (after({ found: found({ history }), options: { hooks: [] } }) ?? {}))

  const takenOver = { limits: forever(0), stays: [past(0)] }
  t.strictSame(after({ limits: forever(0), stays: [], added: past(0) })?.generations, [0], 'taken over with this one')
  t.equal(after(takenOver), undefined, 'something else is published after it')
  t.strictSame(after({ ...takenOver, found: found(), desired: 'a' })?.generations, [0], 'the same is published again')
  t.strictSame(after({ ...takenOver, options: { pin } })?.generations, [0], 'whoever goes back to it may do so twice')
})

void t.test('a content that is replaced becomes an earlier one, if it was published and may stay', async (t) => {
  const objects = [objectOf('web')]
  const becomes = (seen: Judgement | undefined, limits = forever(1), desired = 'new') =>
    valueOf(() => generationFor(seen, treeOf(desired), limits, (sequence) => `copy ${sequence}`, now))
  const content = { name: 'copy 1', sequence: 1, digest: 'a', publishedAt: 5, replacedAt: now, objects }
  const published = found({ publishedAt: 5, objects })
  t.strictSame(becomes(published), { ...content, why: 'published' })
  t.strictSame(becomes(found({ publishedAt: 5, objects, why: 'rolledBack' })), { ...content, why: 'rolledBack' })
  t.equal(becomes(published, forever(0)), undefined, 'none is to stay')
  t.equal(becomes(published, forever(1), 'a'), undefined, 'it is only published again')
  t.equal(becomes(published, { keep: 1, maxAge: 0 }), undefined, 'it may not stay at all')
  t.equal(becomes(published, without('web', forever(1))), undefined, 'its object is gone')
  t.equal(becomes(drifted()), undefined, 'drift')
  t.equal(becomes(found({}, { tree: undefined })), undefined, 'nothing is there')
  t.equal(becomes(undefined), undefined, 'nothing was found')
})
