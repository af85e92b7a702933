/*
 * Watches a revision that was just installed. Ready in time: it is recorded as the last known good one. Not in time: the
 * manifest of the last known good one takes its place. Everything that it decides, it decides under the manifest lock, from
 * what the manifest directory says at that moment; so it may be killed at any instant and started again.
 */
import { codeOf, messageOf } from '../../errors.js'
import type { HeldLock } from '../../durable/path/index.js'
import { DurableWriteError } from '../../durable/errors.js'
import {
  fallBack,
  fallbackForRevision,
  lastKnownGood,
  lastKnownGoodPath,
  liveManifestPath,
  manifestCopyPath,
  monitorManifestPath,
  recordLastKnownGood,
  intactRevision,
  warnUnwritten,
  type StaticPodPlaces,
} from './last-known-good.js'
import type { Manifest } from '../pod/manifest.js'
import { holding, readManifest } from '../node-files.js'
import { watch, type Proof, type Watched, type WatchMeans } from '../ready/watch.js'
import type { OperatorStatus } from './operator-status.js'
import { WatchStart } from './watch-start.js'

export interface MonitorRequest extends StaticPodPlaces, Proof {
  readonly revision: number
  /** undefined: the monitor takes no manifest lock. */
  readonly manifestLock: string | undefined
  /** Whether the monitor's own manifest stays. */
  readonly keepOwnManifest: boolean
  /** Hears when the revision is ready; undefined: the monitor reports to no operator. */
  readonly operator?: OperatorStatus | undefined
}

export type MonitorOutcome =
  | { readonly outcome: 'ready'; readonly revision: number }
  | {
      readonly outcome: 'fell-back'
      readonly revision: number
      readonly to: number
      readonly message: string
    }
  | {
      /**
       * `not-installed`: the manifest is of another revision. `not-recorded`: ready, but its copy on the disk is not intact.
       * `unknown`: no probe could ask in time; the revision stays.
       */
      readonly outcome: 'nothing-to-fall-back-to' | 'not-installed' | 'not-recorded' | 'unknown'
      readonly revision: number
      readonly message: string
    }

/** @throws DurableWriteError where a decision could not be written; the signal's reason when it aborts in between */
export async function monitor(request: MonitorRequest, means: WatchMeans): Promise<MonitorOutcome> {
  return watch(new MonitoredRevision(request, means), means)
}

/** The lock file's directory takes no writes: it is read-only, immutable or full, or its disk fails; or another user made the file. */
const unwritable = new Set(['EROFS', 'EPERM', 'EACCES', 'ENOSPC', 'EDQUOT', 'EIO', 'EUCLEAN'])

class MonitoredRevision implements Watched<MonitorOutcome> {
  readonly proof: Proof
  readonly fields: object
  #isLockMissing = false
  readonly #startedAt: number
  readonly #start: WatchStart

  constructor(
    private readonly request: MonitorRequest,
    private readonly means: WatchMeans,
  ) {
    this.proof = request
    this.fields = { revision: request.revision }
    this.#startedAt = means.durable.fs.uptime()
    this.#start = new WatchStart(request, request.revision, means.durable.fs, means.log)
  }

  /** All that one look decides, it decides under the manifest lock. */
  around<T>(look: () => Promise<T>): Promise<T> {
    const { manifestLock } = this.request
    return holding(manifestLock === undefined ? undefined : this.#lock(manifestLock), look)
  }

  async find(): ReturnType<Watched<MonitorOutcome>['find']> {
    const { revision } = this.request
    const live = await this.#live()
    if (typeof live === 'string') return this.#notInstalled(live)
    if (live.annotations[fallbackForRevision] === String(revision)) {
      await this.#leave()
      const message = 'the monitor had fallen back before'
      return { outcome: { outcome: 'fell-back', revision, to: Number(live.revision ?? NaN), message } }
    }
    if (live.revision !== String(revision)) {
      return this.#notInstalled(`the manifest is of revision ${live.revision ?? 'unknown'}, not ${revision}`)
    }
    // An earlier run was killed after it recorded this revision: this one has only to go.
    const isRecorded = (await lastKnownGood(this.request, this.means.durable)) === revision
    return isRecorded ? { outcome: await this.ready() } : { manifest: live }
  }

  /** The time runs from when this revision became live, however often the monitor is started. */
  elapsed(): Promise<number> {
    return this.#start.elapsed()
  }

  /** undefined where nobody can take the lock: no installer that wants it can, either. */
  async #lock(path: string): Promise<HeldLock | undefined> {
    const { durable, log } = this.means
    try {
      return await durable.lock(path, 0, undefined)
    } catch (error) {
      if (!(error instanceof DurableWriteError) || !unwritable.has(codeOf(error) ?? '')) throw error
      if (!this.#isLockMissing) warnUnwritten(path, error, `the monitor works without the lock ${path}`, log)
      this.#isLockMissing = true
      return undefined
    }
  }

  /** The monitor does not undo another installation, and one that is to come is not late yet. */
  async #notInstalled(message: string): ReturnType<Watched<MonitorOutcome>['find']> {
    const { revision, timeout } = this.request
    await this.#start.end()
    const isLate = this.means.durable.fs.uptime() - this.#startedAt >= timeout
    return isLate ? { outcome: { outcome: 'not-installed', revision, message } } : { waiting: message }
  }

  async #live(): Promise<Manifest | string> {
    const path = liveManifestPath(this.request)
    try {
      return (await readManifest(this.means.durable.fs, path)) ?? `${path} does not exist`
    } catch (error) {
      return messageOf(error)
    }
  }

  async ready(): Promise<MonitorOutcome> {
    const { request } = this
    const { durable, log } = this.means
    const { revision } = request
    if ((await lastKnownGood(request, durable)) !== revision) {
      if ((await intactRevision(request, revision, durable, log)) === undefined) {
        const message = `the revision is ready, but ${manifestCopyPath(request, revision)} is not intact: the monitor does not record it as good`
        return { outcome: 'not-recorded', revision, message }
      }
    }
    await recordLastKnownGood(request, revision, durable)
    await request.operator?.setCurrent(revision, this.means.signal)
    log.info({ revision }, 'the revision is ready: recorded it as the last known good one')
    await this.#leave()
    return { outcome: 'ready', revision }
  }

  async late({ state, message }: Parameters<Watched<MonitorOutcome>['late']>[0]): Promise<MonitorOutcome> {
    const { request } = this
    const { durable, log } = this.means
    const { revision } = request
    if (state === 'unknown') {
      log.error({ revision, message }, 'could not find out in time whether the revision is ready: it stays')
      return { outcome: 'unknown', revision, message }
    }
    const cause = { reason: 'NotReady', message }
    const to = await fallBack(request, revision, cause, durable, log)
    if (to === undefined) {
      log.error({ revision, message }, 'the revision is not ready in time, and there is no older one to fall back to')
      // Its own manifest stays: started again, it may still find the revision ready.
      return { outcome: 'nothing-to-fall-back-to', revision, message }
    }
    log.warn({ revision, to, message }, 'the revision is not ready in time: fell back')
    await this.#leave()
    return { outcome: 'fell-back', revision, to, message }
  }

  async #leave(): Promise<void> {
    const { durable, log } = this.means
    await this.#start.end()
    const link = lastKnownGoodPath(this.request)
    await durable.tidy(link).catch((error: unknown) => {
      warnUnwritten(link, error, `what an interrupted run left beside ${link} stays`, log)
    })
    await durable.tidy(liveManifestPath(this.request))
    if (this.request.keepOwnManifest) return
    const path = monitorManifestPath(this.request)
    if (await durable.removeFile(path)) log.info({ path }, "removed the monitor's own manifest")
  }
}
