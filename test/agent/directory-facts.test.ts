/** What an agent knows of a directory, after any row of events in a drawn world: nothing else than the disk and the source say. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import {
  unknownFacts,
  isCurrent,
  next,
  type DirectoryEvent,
  type DirectoryFacts,
} from '../../src/agent/directory-state.js'
import type { PassOutcome } from '../../src/agent/outcome.js'
import { freshness } from '../../src/agent/report/freshness-tracker.js'
import type { Hold, Publication } from '../../src/durable/types.js'
import type { ObservedState } from '../../src/objects/types.js'
import { directoryOf, secret, whole } from '../directories/objects.js'
import { holds } from '../property.js'
import { published } from './outcome-scene.js'

const configuration = directoryOf([whole(secret('a'))], { path: '/srv/a' })
const objectOf = (version: number) => ({ ...secret('a'), uid: 'u', resourceVersion: String(version), paths: ['a'] })
/** Two versions have the same content. */
const digestOf = (version: number): string => `sha256:${Math.floor(version / 2)}`
const held: Hold = { since: 0, until: null, reason: '' }

/** A record on the disk. */
interface Recorded {
  readonly version: number
  readonly sequence: number
  readonly hold: Hold | undefined
  readonly hooks: readonly string[]
}

/** The source and the disk, with the agent between them. */
class World {
  facts: DirectoryFacts = unknownFacts(configuration)
  /** What the source has, and what it has told the agent. */
  newest = 10
  told: number | undefined
  /** It knows of a newer version than it has told. */
  isBehind = false
  record: Recorded | undefined
  disk: 'whole' | 'differs' | 'gone' = 'gone'
  /** A pass of the agent: the version that it took from the source, and the news before. */
  pass: { readonly version: number; readonly news: object | undefined } | undefined
  /** What the agent itself has published since its start. */
  own: number | undefined
  #now = 1_000

  happened(event: DirectoryEvent): void {
    const before = this.facts
    this.facts = next(before, event, new Date((this.#now += 1_000)))
    const { notCurrentSince } = this.facts
    if (isCurrent(this.facts) !== (notCurrentSince === undefined)) throw new Error('what is not current has no date')
    if (
      before.notCurrentSince &&
      notCurrentSince &&
      event.kind !== 'restored' &&
      notCurrentSince > before.notCurrentSince
    )
      throw new Error('a failure that goes on has begun anew')
  }

  /** Fresh only where nothing newer is known; asked once the agent has judged what it found. */
  checkFreshness(): void {
    const moment = { monotonic: this.#now, wall: new Date(this.#now) }
    const latest = (): ObservedState | undefined =>
      this.told === undefined
        ? undefined
        : ({ state: 'unloaded', object: objectOf(this.told) } as unknown as ObservedState)
    const heartbeats = { lastConfirmed: () => moment, lossOf: () => undefined }
    const { condition } = freshness(this.facts, latest, moment, heartbeats)
    if (condition.status !== 'True') return
    if (this.isBehind) throw new Error('fresh, and the source has something newer')
    const [object] = this.facts.objects
    const version = Number(object?.resourceVersion ?? NaN)
    // Newer than what was told only in its version: the content is the same.
    if (this.told === undefined || !(version >= this.told) || digestOf(version) !== digestOf(this.told))
      throw new Error(
        `fresh with ${object?.resourceVersion ?? 'nothing'}, and the source has told ${String(this.told)}`,
      )
  }

  hears(isBehind: boolean): void {
    this.isBehind = isBehind
    this.happened({ kind: 'told', behind: isBehind ? 'Secret ns/a' : undefined })
  }

  publication(): Publication | undefined {
    const { record, disk } = this
    if (record === undefined) return undefined
    const digest = digestOf(record.version)
    return {
      ...{ path: '/srv/a', digest, sequence: record.sequence, actual: disk === 'gone' ? undefined : digest },
      ...{ settled: true, durable: true, publishedAt: new Date(record.sequence), pendingHooks: [...record.hooks] },
      objects: [objectOf(record.version)],
      differences: disk === 'whole' ? [] : [{ path: 'a', problem: disk === 'gone' ? 'missing' : 'content' }],
      ...(record.hold && { hold: record.hold }),
    }
  }

  /** As reconcile.ts: a comparison that finds a difference ends Published=True. */
  compare(): void {
    const publication = this.publication()
    this.happened({ kind: 'compared', publication })
    const { record, unread, intact, drift, objects, missingSince } = this.facts
    const said = (one: Publication | DirectoryFacts['record']) =>
      one && [one.digest, one.sequence, one.hold, one.pendingHooks]
    if (unread || !isDeepStrictEqual(said(publication), said(record))) throw new Error('the record is another one')
    const isMissing = publication !== undefined && publication.actual === undefined
    if (isMissing !== (missingSince !== undefined)) throw new Error('the directory is there, or is not')
    const isWhole = this.record !== undefined && this.disk === 'whole'
    const isOlder =
      this.record !== undefined &&
      this.own !== undefined &&
      Math.floor(this.record.version / 2) < Math.floor(this.own / 2)
    if (intact !== (isWhole && !isOlder)) throw new Error(`intact is ${String(intact)} (${drift ?? 'no drift'})`)
    if (record && intact === (drift !== undefined)) throw new Error(`drift is ${drift ?? 'none'}`)
    const version = Number(objects[0]?.resourceVersion)
    if (this.record && version < this.record.version) throw new Error('an older version than the record names')
    if (record && digestOf(version) !== record.digest) throw new Error('a version of other content')
    if (drift !== undefined && this.facts.published?.status === 'True') this.judge('False')
  }

  judge(status: 'True' | 'False'): void {
    const condition = { status, reason: status === 'True' ? 'Published' : 'PublishFailed', message: '' } as const
    this.happened({ kind: 'judged', type: 'Published', condition })
  }

  ended(outcome: PassOutcome): void {
    this.happened({ kind: 'passed', outcome })
    if (outcome.kind === 'published') this.judge('True')
    if (outcome.kind === 'failed') this.judge('False')
    if (outcome.kind === 'published') this.happened({ kind: 'taken', news: this.pass?.news })
    this.pass = undefined
  }
}

const failed = (reason: 'Held' | 'NoSpace', isVisible: boolean): PassOutcome => {
  return { kind: 'failed', reason, terminal: false, published: isVisible, error: new Error(reason) }
}

/** Whatever may happen, to a program or to the agent. */
const actions: Readonly<Record<string, (world: World) => void>> = {
  'the source gets a newer version': (world) => (world.newest += 1),
  'the source gets other content': (world) => (world.newest += 2),
  'the source reports': (world) => {
    world.told = world.newest
    world.happened({ kind: 'reported' })
    world.hears(false)
  },
  'a watch tells of a newer version': (world) => {
    if (world.told !== undefined) world.hears(world.newest > world.told)
  },
  'a pass begins': (world) => {
    if (world.told !== undefined) world.pass ??= { version: world.told, news: world.facts.news }
  },
  'the pass publishes': (world) => {
    if (world.pass === undefined) return
    const { record, disk, pass } = world
    if (record?.hold) {
      world.ended(failed('Held', false))
      world.compare()
      return
    }
    const { version } = pass
    const isSame = record !== undefined && disk === 'whole' && digestOf(record.version) === digestOf(version)
    const sequence = (record?.sequence ?? 0) + (isSame ? 0 : 1)
    const hooks = isSame ? record.hooks : ['reload']
    if (isSame && world.facts.record?.digest !== digestOf(version)) world.compare()
    if (!isSame) world.record = { version, sequence, hold: undefined, hooks }
    world.disk = 'whole'
    world.own = version
    const change = isSame ? 'unchanged' : 'replaced'
    world.ended({ ...published, change, digest: digestOf(version), sequence, objects: [objectOf(version)], hooks })
    if (!isSame && world.facts.record?.pendingHooks.join() !== 'reload') throw new Error('a hook is not due')
  },
  'the pass fails': (world) => {
    if (world.pass) world.ended(failed('NoSpace', false))
  },
  'the pass cannot tell whether it is durable': (world) => {
    if (world.pass === undefined) return
    world.record = {
      version: world.pass.version,
      sequence: (world.record?.sequence ?? 0) + 1,
      hold: undefined,
      hooks: [],
    }
    world.disk = 'whole'
    world.ended(failed('NoSpace', true))
    if (world.facts.intact) throw new Error('intact, and perhaps not durable')
  },
  'another program publishes the newest': (world) => {
    world.record = {
      version: world.newest,
      sequence: (world.record?.sequence ?? 0) + 1,
      hold: undefined,
      hooks: ['reload'],
    }
    world.disk = 'whole'
  },
  'a backup is restored': (world) => {
    if (world.record && world.record.version > 10) world.record = { ...world.record, version: world.record.version - 1 }
  },
  'another program writes to the directory': (world) => {
    if (world.record) world.disk = 'differs'
  },
  'the directory is removed': (world) => (world.disk = 'gone'),
  'the record is removed': (world) => (world.record = undefined),
  'an operator holds it': (world) => {
    if (world.record) world.record = { ...world.record, hold: held }
  },
  'an operator releases it': (world) => {
    if (world.record) world.record = { ...world.record, hold: undefined }
  },
  'a hook has run': (world) => {
    const [key] = world.facts.record?.pendingHooks ?? []
    if (key === undefined || world.record === undefined) return
    world.record = { ...world.record, hooks: world.record.hooks.filter((one) => one !== key) }
    world.happened({ kind: 'hook ran', key })
    if (world.facts.record?.pendingHooks.includes(key)) throw new Error('a hook that has run is due')
  },
  'the agent compares': (world) => world.compare(),
  'the agent cannot read the disk': (world) => {
    world.happened({ kind: 'unreadable', error: new Error('EIO') })
    if (world.facts.intact) throw new Error('intact, and not readable')
    world.judge('False')
  },
  'the agent starts again': (world) => {
    const { published: before, fresh, objects, record } = world.facts
    world.isBehind = false
    world.pass = undefined
    world.own = undefined
    world.told = undefined
    world.facts = unknownFacts(configuration)
    const conditions = [before, fresh].filter((one) => one !== undefined)
    world.happened({
      kind: 'restored',
      status: { conditions, confirmedAt: null, objects, digest: record?.digest ?? null },
    })
    world.compare()
    const [known, now] = [objects, world.facts.objects].map(([one]) => Number(one?.resourceVersion))
    if (
      record &&
      record.digest === world.facts.record?.digest &&
      known !== undefined &&
      now !== undefined &&
      now < known
    )
      throw new Error('the restart has forgotten a version')
  },
}

await t.test('whatever happens, the agent says of a directory what the disk and the source say', async (t) => {
  const names = Object.keys(actions)
  const property = fc.property(fc.array(fc.constantFrom(...names), { maxLength: 40, size: 'max' }), (row) => {
    const world = new World()
    for (const step of [...row.map((name) => actions[name]), actions['the agent compares']]) {
      step?.(world)
      world.checkFreshness()
    }
  })
  await holds(t, 'no row of events leaves the facts other than the disk and the source', property, { runs: 4_000 })
})
