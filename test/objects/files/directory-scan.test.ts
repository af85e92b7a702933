/** When a file counts as written, by the two clocks, on a machine of any speed. */
import t from 'tap'
import { FileStability } from '../../../src/objects/files/directory-scan.js'

const stamp = (id: string, changedAt: number) => ({ id, changedAt, size: 1, modifiedAt: '0' })
const at = (monotonic: number, wall = 1_000_000 + monotonic) => ({ wall, monotonic })

void t.test('a file that was changed long ago has come to rest', async (t) => {
  const stability = new FileStability(50, 2_000)
  t.equal(stability.state('a', stamp('1', 0), at(0), 0), 'stable')
  t.equal(stability.state('a', stamp('2', 1_000_000), at(49), 49), 'changing')
  t.equal(stability.state('a', stamp('2', 1_000_000), at(50), 50), 'stable')
})

void t.test('a look that took long proves nothing about the time after it began', async (t) => {
  const stability = new FileStability(50, 2_000)
  // Changed 10 ms before the look startedAt; the answer came a second later.
  t.equal(stability.state('a', stamp('1', 999_990), at(0), 1_000), 'changing')
  // The next one begins 20 ms after that, and is as slow.
  t.equal(stability.state('a', stamp('1', 5_000_000), at(1_020), 2_000), 'changing')
  t.equal(stability.state('a', stamp('1', 5_000_000), at(1_051), 2_100), 'stable', 'since the end of the first')
})

void t.test('where the clock was set, the time between two looks counts', async (t) => {
  const stability = new FileStability(50, 2_000)
  const future = stamp('1', 9_000_000)
  t.equal(stability.state('a', future, at(0), 1), 'changing')
  t.equal(stability.state('a', future, at(50), 50), 'changing')
  t.equal(stability.state('a', future, at(51), 51), 'stable')
})

void t.test('a file that never comes to rest stays marked as such until it is gone', async (t) => {
  const stability = new FileStability(50, 2_000)
  for (let now = 0; now < 2_000; now += 40) {
    t.equal(stability.state('a', stamp(String(now), 1_000_000 + now), at(now), now), 'changing')
  }
  t.equal(stability.state('a', stamp('x', 1_002_000), at(2_000), 2_000), 'restless')
  stability.keepOnly([])
  t.equal(stability.state('a', stamp('y', 1_002_040), at(2_040), 2_040), 'changing')
})

void t.test('a file is gone when it was missing at two looks', async (t) => {
  const stability = new FileStability(50, 2_000)
  t.notOk(stability.isGone('a', at(0), 30))
  t.notOk(stability.isGone('a', at(79), 79), 'the first look found it missing at 30')
  t.ok(stability.isGone('a', at(80), 80))
  stability.keepOnly(['a'])
  t.notOk(stability.isGone('a', at(500), 500))
})
