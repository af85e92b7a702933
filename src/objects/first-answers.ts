import { objectName } from '../message-text.js'
import type { ObjectReference, Source } from './types.js'

/** A source that calls back after each change of an observation: both of ours do. */
export interface ObservableSource extends Source {
  /** @returns a function that ends the subscription */
  subscribe(changed: () => void): () => void
}

export interface FirstAnswersOptions {
  /** Milliseconds. */
  readonly timeout: number
  /**
   * Milliseconds that a denial has to last to be definitive, default 5,000: an API server that has just started denies every request,
   * until it has read its roles.
   */
  readonly denialGrace?: number
  readonly signal?: AbortSignal
}

/**
 * Waits until the source has said something definitive of every reference: present, absent, denied for a while, invalid, or out of
 * reach until a person corrects the configuration. For one pass: an unreachable object may still come, so this waits for it.
 * The references may change with an answer: a selection brings those that it matches.
 * @returns the references that have no such answer when the time is over; empty when all have
 * @throws the signal's reason when it aborts
 */
export function firstAnswers(
  source: ObservableSource,
  references: () => readonly ObjectReference[],
  { timeout, signal, denialGrace = 5_000 }: FirstAnswersOptions,
): Promise<ObjectReference[]> {
  const deniedSince = new Map<string, number>()
  const isOpen = (reference: ObjectReference): boolean => {
    const observation = source.latest(reference)
    if (observation?.state !== 'unknown') return observation === undefined
    if (observation.permanent || observation.reason === 'ObjectInvalid') return false
    if (observation.reason !== 'AccessDenied') return true
    const name = objectName(reference)
    const since = deniedSince.get(name) ?? performance.now()
    deniedSince.set(name, since)
    return performance.now() - since < denialGrace
  }
  const open = () => references().filter(isOpen)
  return new Promise((resolve, reject) => {
    const end = (answer: () => void) => {
      clearTimeout(timer)
      clearTimeout(again)
      unsubscribe()
      signal?.removeEventListener('abort', abandon)
      answer()
    }
    let again: NodeJS.Timeout | undefined
    const look = () => {
      if (open().length === 0) end(() => resolve([]))
      // Nothing else may show that a denial has lasted.
      else if (deniedSince.size > 0) again ??= setTimeout(lookAgain, denialGrace + 1)
    }
    const lookAgain = () => {
      again = undefined
      look()
    }
    const abandon = () => end(() => reject(asError(signal?.reason)))
    const timer = setTimeout(() => end(() => resolve(open())), timeout)
    const unsubscribe = source.subscribe(look)
    signal?.addEventListener('abort', abandon)
    if (signal?.aborted) abandon()
    else look()
  })
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('abandoned', { cause: reason })
}
