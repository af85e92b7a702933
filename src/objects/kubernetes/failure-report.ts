import type { Log } from '../../log.js'
import type { StoredObject } from '../stored-object.js'
import { describeReference } from '../types.js'
import type { ApiError } from './api-error.js'
import type { Recovery } from './recovery.js'
import type { WatchTiming } from './timing.js'

/**
 * What the failures of one object's watch say of the object, and to the log. What is known of it stays so, whatever fails,
 * except that a denial which lasts is told: somebody has to do something about it.
 */
export class FailureReport {
  /** performance.now() of the first denial in a row. */
  #deniedSince: number | undefined

  constructor(
    private readonly stored: StoredObject,
    private readonly context: {
      readonly log: Log
      readonly recovery: Recovery
      readonly timing: Pick<WatchTiming, 'denialGrace'>
    },
  ) {}

  /** A request was answered as it should be. */
  answered(): void {
    this.#deniedSince = undefined
  }

  /** @param first whether it is the first of its kind in a row */
  tell(failure: ApiError, first: boolean): void {
    const { log, recovery } = this.context
    const fields = { object: describeReference(this.stored.reference), restart: failure.reason }
    const lasting = this.#isLastingDenial(failure)
    // Of a server that is away, one watch speaks for all.
    const news = failure.serverAway ? recovery.failed() : first
    if (this.#isKnown() && !lasting) {
      const expected = failure.reason === 'expired'
      log[news && !expected ? 'warn' : 'debug'](fields, `${failure.message}; holdfast keeps what it knows of it`)
      return
    }
    const { latest } = this.stored
    const told = failure.observation
    const again = latest?.state === 'unknown' && told.state === 'unknown' && latest.reason === told.reason
    log[again ? 'debug' : 'warn'](fields, failure.message)
    this.stored.say(told)
  }

  /** An object that was seen to be invalid is known, too. */
  #isKnown(): boolean {
    const { latest } = this.stored
    return latest !== undefined && (latest.state !== 'unknown' || latest.reason === 'ObjectInvalid')
  }

  #isLastingDenial(failure: ApiError): boolean {
    if (!failure.denied) this.#deniedSince = undefined
    else this.#deniedSince ??= performance.now()
    const { denialGrace } = this.context.timing
    return this.#deniedSince !== undefined && performance.now() - this.#deniedSince >= denialGrace
  }
}
