import t from 'tap'
import { compareResourceVersions } from '../../src/objects/resource-version.js'
import { ObjectStore } from '../../src/objects/store.js'
import { StoredObject, type ObservedVersion } from '../../src/objects/stored-object.js'
import type { KubernetesObject } from '../../src/objects/types.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { Recorder, reference } from './recorder.js'

const cert = reference('serving-cert')

function present(version: number | string, uid = 'u', content = String(version)): ObservedVersion {
  const resourceVersion = String(version)
  const data = new Map([['a', Buffer.from(content)]])
  const object: KubernetesObject = { reference: cert, uid, resourceVersion, terminating: false, data }
  return { observation: { state: 'present', object }, resourceVersion, uid }
}

function absent(version: number | string): ObservedVersion {
  return { observation: { state: 'absent' }, resourceVersion: String(version), uid: undefined }
}

void t.test('resource versions compare as numbers of any length', async (t) => {
  const cases: [string, string, number | undefined][] = [
    ['9', '10', -1],
    ['10', '9', 1],
    ['10', '10', 0],
    ['9007199254740993', '9007199254740992', 1],
    ['18446744073709551616', '18446744073709551615', 1],
    ['0', '1', undefined],
    ['01', '1', undefined],
    ['-1', '1', undefined],
    ['1.5', '1', undefined],
    ['sha256:1', '1', undefined],
    ['', '1', undefined],
  ]
  for (const [a, b, expected] of cases) {
    const actual = compareResourceVersions(a, b)
    t.equal(actual === undefined ? undefined : Math.sign(actual), expected, `${a} and ${b}`)
  }
})

void t.test('offer accepts newer versions, and leaves older ones to a fresh read', async (t) => {
  const cases: [name: string, known: ObservedVersion[], offered: ObservedVersion, 'accepted' | 'stale'][] = [
    ['the first', [], present(5), 'accepted'],
    ['a newer one', [present(5)], present(6), 'accepted'],
    ['the same again', [present(5)], present(5), 'accepted'],
    ['an older one', [present(5)], present(4), 'stale'],
    ['more digits are newer', [present(9)], present(10), 'accepted'],
    ['an absence that is newer', [present(5)], absent(6), 'accepted'],
    ['an absence as of an older list', [present(5)], absent(4), 'stale'],
    ['an absence at the very version of the object', [present(5)], absent(5), 'stale'],
    ['an object from before it was deleted', [present(5), absent(9)], present(7), 'stale'],
    ['an object at the version of its deletion', [present(5), absent(9)], present(9), 'stale'],
    ['an object made after it was deleted', [present(5), absent(9)], present(10, 'v'), 'accepted'],
    ['another object at the same version', [present(5)], present(5, 'v'), 'stale'],
    ['other content at the same version', [present(5)], present(5, 'u', 'other'), 'stale'],
    ['an object of no version that could be compared', [], present('abc'), 'stale'],
    ['an absence without a version', [], { ...absent(1), resourceVersion: undefined }, 'stale'],
  ]
  for (const [name, known, offered, expected] of cases) {
    const stored = new StoredObject(cert, new Recorder())
    for (const observed of known) t.equal(stored.offer(observed), 'accepted')
    const { latest } = stored
    t.equal(stored.offer(offered), expected, name)
    if (expected === 'stale') t.equal(stored.latest, latest, `${name}: nothing has changed`)
  }
})

void t.test('published versions are a floor, if they can be compared', async (t) => {
  const stored = new StoredObject(cert, new Recorder())
  stored.published({ uid: '', resourceVersion: 'sha256:abc' })
  t.equal(stored.offer(present(5)), 'accepted')
  stored.published({ uid: 'u', resourceVersion: '8' })
  stored.published({ uid: 'u', resourceVersion: '3' })
  t.equal(stored.offer(present(7)), 'stale')
  t.equal(stored.offer(present(8)), 'accepted')
})

void t.test('after a rewind, only versions beyond the lost history are a floor', async (t) => {
  const recorder = new Recorder()
  const stored = new StoredObject(cert, recorder)
  stored.offer(present(100))
  stored.confirm(present(50, 'u', 'restored'))
  t.match(recorder.reported.at(-1), { rewound: true })
  stored.published({ uid: 'u', resourceVersion: '100' })
  t.equal(stored.offer(present(51)), 'accepted')
  stored.published({ uid: 'u', resourceVersion: '120' })
  t.equal(stored.offer(present(110)), 'stale')
})

void t.test('a confirmation as new as the known version is no rewind', async (t) => {
  const recorder = new Recorder()
  const stored = new StoredObject(cert, recorder)
  stored.offer(present(100))
  stored.confirm(present(100))
  stored.confirm(present(101))
  stored.confirm(absent(102))
  stored.confirm({ ...absent(1), resourceVersion: undefined })
  t.ok(recorder.reported.every(({ rewound }) => !rewound))
  t.equal(recorder.reported.length, 3)
})

void t.test('any order of observed versions, out of any number of lagging caches, ends with the newest', async (t) => {
  const random = new Random(seed)
  t.comment(replay)
  for (let run = 0; run < 300; run++) {
    // One true history: at each revision, the object is there, as last written, or it is not.
    const history: ObservedVersion[] = [absent(1)]
    let uid = 0
    for (let revision = 2; revision < 60; revision++) {
      const before = history.at(-1)?.observation
      if (random.chance(0.2)) history.push(absent(revision))
      else if (random.chance(0.3) && before) history.push(reread(before, revision))
      else history.push(present(revision, `u${before?.state === 'present' ? uid : (uid += 1)}`))
    }
    const recorder = new Recorder()
    const stored = new StoredObject(cert, recorder)
    let now = 0
    for (let step = 0; step < 200; step++) {
      if (random.chance(0.3)) now = Math.min(now + random.below(5), history.length - 1)
      // A cache that lags by anything.
      const seen = history[random.below(now + 1)] ?? t.fail('no such revision')
      if (stored.offer(seen as ObservedVersion) === 'stale') stored.confirm(history[now] as ObservedVersion)
    }
    let highest = 0
    for (const { observation, rewound } of recorder.reported) {
      if (rewound) t.fail('reported as rewound')
      if (observation.state !== 'present') continue
      const version = Number(observation.object.resourceVersion)
      if (version < highest) t.fail(`run ${run}: back from ${highest} to ${version}`)
      highest = version
    }
  }
  t.pass('no run tells of anything older than it has reported')
})

/** A list's answer as of a later revision, where nothing has changed. */
function reread(observation: ObservedVersion['observation'], revision: number): ObservedVersion {
  if (observation.state !== 'present') return absent(revision)
  const { resourceVersion, uid } = observation.object
  return { observation, resourceVersion, uid }
}

void t.test('a store knows the floors of the ten thousand objects that went last', async (t) => {
  const store = new ObjectStore(new Recorder())
  const wanted = Array.from({ length: 10_001 }, (_, index) => ({
    reference: reference(`cert-${index}`),
    published: { resourceVersion: '9', uid: 'u' },
  }))
  store.follow(wanted)
  store.follow([])
  const { added } = store.follow(wanted.slice(0, 2).map((one) => ({ reference: one.reference })))
  t.strictSame(
    added.map(({ floor }) => floor?.resourceVersion),
    [undefined, '9'],
  )
})
