import { objectName } from '../object-name.js'
import type { SelectedContent } from '../config/types.js'
import type { LoadedState, SelectedState } from '../objects/types.js'
import type { Availability } from './availability.js'
import type { Draft } from './draft.js'

/**
 * Whether the objects of a selection may be published: each has a separate content beside it. An unread selection is never "none"; and
 * an object that is gone already, although the selection has not said so yet, is none.
 */
export function renderSelection(
  draft: Draft,
  { reference, place, optional }: SelectedContent,
  state: LoadedState | SelectedState | undefined,
  members: readonly Availability[],
): void {
  const name = objectName(reference)
  if (state?.state === 'selected') {
    if (optional || members.some(isThere)) return
    const { kind, namespace, selector } = reference
    const todo = `create one, set its label, or make ${place} optional`
    draft.find({
      reason: 'ObjectMissing',
      message: `no ${kind} in namespace ${namespace} matches ${selector}: ${todo}`,
    })
  } else if (state?.state === 'unknown') {
    draft.find({ reason: state.reason, message: `${name}: ${state.message}` })
  } else draft.find({ reason: 'SourceUnavailable', message: `${name}: the source has not answered yet` })
}

function isThere({ state, kept }: Availability): boolean {
  return state === 'leaving' ? kept !== undefined : state !== 'absent'
}
