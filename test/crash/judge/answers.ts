/** Whether an answer is true of the disk, and what the runs after a crash are to answer. */

/** Of one target. */
export type Answer =
  { readonly outcome: string } | { readonly error: { readonly message: string; readonly published: boolean } }

/** A call leaves its target as the call asks, or as the target was before; `shown` is the content for people. */
export interface Found {
  readonly isNew: boolean
  readonly isOld: boolean
  readonly shown: string
}

/** The fault of an answer: a success, and a failure that says `published`, leave the new content; any other one leaves the old. */
export function faultOfAnswer(answer: Answer, { isNew, isOld, shown }: Found): string | undefined {
  const isPublished = !('error' in answer) || answer.error.published
  const says = 'error' in answer ? `published: ${isPublished}` : answer.outcome
  if (!(isPublished ? isNew : isOld)) return `says ${says}, and holds ${shown}`
  return says === 'unchanged' && !isOld ? 'says unchanged, and was not the same' : undefined
}

/** One run completes what a crash has left, and the run after that has nothing to do: the fault of this second one. */
export function faultOfRepeat(target: string, answer: Answer): string | undefined {
  const said = 'error' in answer ? answer.error.message : answer.outcome
  return said === 'unchanged' ? undefined : `the run after the next says of ${target}: ${said}`
}
