import { objectName } from '../message-text.js'
import type { KubernetesObject, LoadedState, ObjectReference, SelectedState } from '../objects/types.js'
import type { ContentFinding, KeptObject } from './types.js'

/** Whether an object can be published now. `kept`: its published part, if any. */
export type Availability = { readonly reference: ObjectReference; readonly kept: KeptObject | undefined } & (
  | { readonly state: 'present'; readonly object: KubernetesObject }
  /** It is being deleted: its published part stays, and nothing newer is published. */
  | { readonly state: 'leaving' }
  /** It certainly does not exist. */
  | { readonly state: 'absent' }
  /** It could not be read, for the reason of the finding: that is never absence. */
  | { readonly state: 'unknown'; readonly finding: ContentFinding }
)

export function availabilityOf(
  reference: ObjectReference,
  observation: LoadedState | SelectedState | undefined,
  kept: KeptObject | undefined,
): Availability {
  const name = objectName(reference)
  if (observation === undefined || observation.state === 'selected') {
    const message = `${name}: the source has not answered yet`
    return { reference, kept, state: 'unknown', finding: { reason: 'SourceUnavailable', message, reference } }
  }
  switch (observation.state) {
    case 'absent':
      return { reference, kept, state: 'absent' }
    case 'unknown': {
      const { reason, permanent } = observation
      const message = observation.message.includes(name) ? observation.message : `${name}: ${observation.message}`
      return {
        reference,
        kept,
        state: 'unknown',
        finding: { reason, message, reference, ...(permanent && { misconfigured: true as const }) },
      }
    }
    case 'present':
      return observation.object.terminating
        ? { reference, kept, state: 'leaving' }
        : { reference, kept, state: 'present', object: observation.object }
  }
}

/** Why a required object stops the directory that it belongs to; `places` are the contents that ask for it. */
export function missingFinding({ reference, state }: Availability, places: readonly string[]): ContentFinding {
  const place = places.join(' and ')
  const name = objectName(reference)
  const message =
    state === 'leaving'
      ? `${name} is being deleted, and nothing that is asked for in ${place} is published of it: create it again`
      : `${name} does not exist: create it, or make ${place} optional`
  return { reason: 'ObjectMissing', message, reference }
}

export function missingKey(reference: ObjectReference, key: string, place: string): ContentFinding {
  const message = `${objectName(reference)} has no key ${key}: add it, or make ${place} optional`
  return { reason: 'ObjectMissing', message, reference }
}
