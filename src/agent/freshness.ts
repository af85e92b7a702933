import { describeReference, type Observation, type ObjectReference } from '../objects/types.js'
import type { Verdict } from './conditions.js'
import type { Confirmations, Moment } from './confirmations.js'
import { referencesOf } from '../config/references.js'
import type { DirectoryState } from './directory-state.js'

/**
 * Milliseconds without a confirmation after which a directory is not called fresh any more, although no fault was told. An API
 * server sends a bookmark each minute, and a watch is begun anew after ten minutes at most.
 */
const longestSilence = 15 * 60_000

/** Milliseconds that a lost watch has to come back before anybody is told: most do within a second. */
export const lossGrace = 3_000

export interface Freshness {
  readonly verdict: Verdict
  /** When all of what is published was last confirmed as the newest; undefined: not since the start. */
  readonly confirmedAt: Date | undefined
}

/**
 * Whether what a directory has published is confirmed as current: the publication must hold the newest objects, and the source must
 * have confirmed each of them lately.
 */
export function freshness(
  state: DirectoryState,
  latest: (reference: ObjectReference) => Observation | undefined,
  moment: Moment,
  confirmations: Pick<Confirmations, 'lastOf' | 'lossOf'>,
): Freshness {
  const unconfirmed = (reason: Verdict['reason'], message: string): Freshness => ({
    verdict: { status: 'False', reason, message },
    confirmedAt: undefined,
  })
  let oldest: Moment | undefined
  for (const reference of referencesOf(state.configuration)) {
    const name = describeReference(reference)
    const observation = latest(reference)
    if (observation?.state === 'unknown') return unconfirmed(observation.reason, observation.message)
    const confirmation = confirmations.lastOf(reference)
    const loss = confirmations.lossOf(reference)
    if (loss && moment.monotonic - loss.since.monotonic >= lossGrace) {
      const since = loss.since.wall.toISOString()
      return unconfirmed(loss.reason, `the watch of ${name} was lost at ${since}, and has not come back`)
    }
    if (observation === undefined || confirmation === undefined) {
      return unconfirmed('SourceUnavailable', `the source has not told of ${name} yet`)
    }
    if (oldest === undefined || confirmation.monotonic < oldest.monotonic) oldest = confirmation
  }
  if (state.published?.status !== 'True') {
    return unconfirmed(state.published?.reason ?? 'SourceUnavailable', 'the newest objects are not published')
  }
  if (oldest === undefined) return unconfirmed('SourceUnavailable', 'nothing was confirmed yet')
  if (moment.monotonic - oldest.monotonic > longestSilence) {
    const message = `the source has confirmed nothing for ${Math.round(longestSilence / 60_000)} minutes`
    return { verdict: { status: 'False', reason: 'SourceUnavailable', message }, confirmedAt: oldest.wall }
  }
  return {
    verdict: {
      status: 'True',
      reason: 'Published',
      message: 'the source has confirmed that nothing is newer',
    },
    confirmedAt: oldest.wall,
  }
}
