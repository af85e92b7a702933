/** What an agent reports of each directory, from its own state and the source's. */
import t from 'tap'
import { DirectoryState } from '../../../src/agent/directory-state.js'
import { reportSnapshot } from '../../../src/agent/report/node-report.js'
import type { ObservedState } from '../../../src/objects/types.js'
import { directoryOf, present, secret, whole } from '../../directories/objects.js'
import { published } from '../outcome-scene.js'

const object = { kind: 'Secret', namespace: secret('a').namespace, name: 'a', uid: 'u', resourceVersion: '7' }

/** A directory that holds the newest version of its Secret, proven. */
function current(unproven = false): DirectoryState {
  const state = new DirectoryState(directoryOf([whole(secret('a'))], { path: '/a' }))
  state.happened({ kind: 'passed', outcome: { ...published, objects: [{ ...object, paths: ['a'] }], unproven } })
  state.happened(
    { kind: 'judged', type: 'Published', condition: { status: 'True', reason: 'Published', message: '' } },
    new Date(),
  )
  return state
}

const observed = (resourceVersion: string): ObservedState => {
  const [, state] = present(secret('a'), { key: 'a' })
  return { ...state, object: { ...(state as { object: object }).object, uid: 'u', resourceVersion } } as ObservedState
}

function reported(states: readonly DirectoryState[], latest: ObservedState | undefined, isLate = false) {
  const options = { version: '1', configuration: () => 'c', states }
  return reportSnapshot({ latest: () => latest }, options, isLate)?.directories
}

await t.test(
  'a directory is Current with the newest version on a proven file system, and Waiting behind it',
  async (t) => {
    t.match(reported([current()], observed('7')), [{ state: 'Current', objects: [object], confirmed: true }])
    t.notOk(reported([current()], observed('7'))?.[0]?.unproven)
    t.match(reported([current()], observed('8')), [
      { state: 'Waiting', objects: [object], pending: [{ resourceVersion: '8' }] },
    ])
    t.match(reported([current(true)], observed('7')), [{ unproven: true }])
  },
)

await t.test('a disk that could not be read at the last comparison is Failed', async (t) => {
  const state = current()
  state.happened({ kind: 'unreadable', error: Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }) })
  t.match(reported([state], observed('7')), [{ state: 'Failed', objects: [object] }])
})

await t.test(
  'a directory that an operator has rolled back is Held, and its older version is no reason to wait',
  async (t) => {
    const state = current()
    state.happened(
      { kind: 'judged', type: 'Published', condition: { status: 'False', reason: 'RolledBack', message: 'by hand' } },
      new Date(),
    )
    t.match(reported([state], undefined), [{ state: 'Held', confirmed: true }])
    t.match(reported([current()], undefined), [{ confirmed: false }], 'no source has said anything')
  },
)

await t.test('a directory whose disk hangs keeps the others from being reported for a minute alone', async (t) => {
  const hung = new DirectoryState(directoryOf([], { path: '/hung' }))
  t.equal(reported([current(), hung], observed('7')), undefined)
  t.match(reported([current(), hung], observed('7'), true), [
    { path: '/a', state: 'Current' },
    { path: '/hung', state: 'Failed', reason: 'NotConfirmed', objects: [] },
  ])
})

await t.test('an old path of a directory that moves is not reported', async (t) => {
  const old = new DirectoryState(directoryOf([], { path: '/old', follows: '/a' }))
  t.equal(reported([current(), old], observed('7'))?.length, 1)
})
