/** What ends the pin of a directory that was rolled back. */
import t from 'tap'
import { isNewer } from '../../src/agent/rolled-back.js'

const object = (resourceVersion: string, { uid = 'u', name = 'web' } = {}) => ({
  kind: 'Secret',
  namespace: 'demo',
  name,
  uid,
  resourceVersion,
  paths: [],
})
const pin = { reason: '', since: 0, until: 'newer', digest: 'sha256:' } as const
const from = (...objects: ReturnType<typeof object>[]) => ({ ...pin, from: objects })
const nothing = () => undefined

await t.test('a newer version, another object by its name, none, or one more', async (t) => {
  t.equal(isNewer([object('10')], from(object('10')), nothing), false, 'the same')
  t.equal(isNewer([object('9')], from(object('10')), nothing), false, 'an older one, of a list that lags')
  t.equal(isNewer([object('11')], from(object('10')), nothing), true)
  t.equal(isNewer([object('9', { uid: 'v' })], from(object('10')), nothing), true)
  t.equal(isNewer([], from(object('10')), nothing), true)
  t.equal(isNewer([object('10'), object('1', { name: 'more' })], from(object('10')), nothing), true)
  t.equal(
    isNewer([object('10')], from(object('10')), () => ({ state: 'absent' })),
    true,
    'kept, though it is gone',
  )
})

await t.test('versions of files have no order: another one is newer', async (t) => {
  t.equal(isNewer([object('file:1')], from(object('file:1')), nothing), false)
  t.equal(isNewer([object('file:0')], from(object('file:1')), nothing), true)
})
