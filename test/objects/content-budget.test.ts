import t from 'tap'
import { ContentBudget } from '../../src/objects/content-budget.js'
import { StoredObject, type ObservedVersion } from '../../src/objects/stored-object.js'
import { Recorder, reference } from './recorder.js'

function present(version: number, content: string): ObservedVersion {
  const resourceVersion = String(version)
  const data = new Map([['a', Buffer.from(content)]])
  const object = { reference: reference('x'), uid: 'u', resourceVersion, terminating: false, data }
  return { observation: { state: 'present', object }, resourceVersion, uid: 'u' }
}

function stored(budget: ContentBudget, recorder = new Recorder()): StoredObject {
  return new StoredObject(reference('x'), recorder, budget)
}

void t.test('the oldest published content goes first, then the oldest', async (t) => {
  const budget = new ContentBudget(524)
  const [first, second, third, fourth] = [1, 2, 3, 4].map(() => stored(budget))
  const states = () => [first, second, third, fourth].map((each) => each?.latest?.state)
  first?.offer(present(1, '1234'))
  second?.offer(present(1, '1234'))
  second?.published({ uid: 'u', resourceVersion: '1' })
  third?.offer(present(1, '1234'))
  t.strictSame(states(), ['present', 'unloaded', 'present', undefined])
  fourth?.offer(present(1, '1234'))
  t.strictSame(states(), ['unloaded', 'unloaded', 'present', 'present'])
  third?.forget()
  second?.offer(present(2, '123456'))
  t.strictSame(states(), ['unloaded', 'present', 'present', 'present'], 'what is forgotten takes no room')
})

void t.test('an object without its content is the same object', async (t) => {
  const recorder = new Recorder()
  const object = stored(new ContentBudget(0), recorder)
  object.offer(present(5, 'content'))
  t.match(object.latest, { state: 'unloaded', object: { resourceVersion: '5' } })
  t.equal(object.offer(present(5, 'content')), 'accepted')
  t.equal(recorder.reported.length, 1, 'the same again is no news')
  t.equal(object.offer(present(5, 'other')), 'stale', 'other content at the same version is another history')
  t.equal(object.offer(present(6, 'other')), 'accepted')
  t.equal(recorder.reported.length, 2)
})
