import { isSourceAway, type Attempt } from './attempt.js'
import type { Verdict as ConditionVerdict } from './conditions.js'
import type { Verdict as QueueVerdict } from './queue.js'

/** Whether to try again: what waits for the source or for a person is tried when that changes, everything else with a delay. */
export function queueVerdict(attempt: Attempt): QueueVerdict {
  switch (attempt.kind) {
    case 'published':
      return 'done'
    case 'waiting':
    case 'incomplete':
    case 'abandoned':
      return 'wait'
    case 'failed':
      return attempt.terminal ? 'wait' : 'retry'
  }
}

/**
 * The condition Published after an attempt; undefined: it stays what it is. A source that does not answer takes nothing away from
 * what is whole on the disk.
 */
export function publishedVerdict(attempt: Attempt, whole: boolean): ConditionVerdict | undefined {
  if (isSourceAway(attempt) && whole) return wholeVerdict
  switch (attempt.kind) {
    case 'published': {
      const [warning] = attempt.warnings
      return warning ? { status: 'True', reason: warning.reason, message: warning.message } : wholeVerdict
    }
    case 'waiting':
      return { status: 'False', reason: 'SourceUnavailable', message: attempt.message }
    case 'incomplete': {
      const [first, ...others] = attempt.findings
      if (first === undefined) return undefined
      const messages = [first, ...others].map(({ message }) => message)
      return { status: 'False', reason: first.reason, message: messages.join('; ') }
    }
    case 'failed':
      return {
        status: attempt.published ? 'Unknown' : 'False',
        reason: attempt.reason,
        message: attempt.error.message,
      }
    case 'abandoned':
      return undefined
  }
}

const wholeVerdict: ConditionVerdict = {
  status: 'True',
  reason: 'Published',
  message: 'the disk holds what was published last',
}
