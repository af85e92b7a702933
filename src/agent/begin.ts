import type { Log } from '../log.js'
import type { DirectoryState } from './directory-state.js'
import type { Metrics } from './metrics.js'
import { publishOperation } from './operations.js'
import { notice } from './publisher.js'

/**
 * Begins to keep a directory: compares it with its record, and sets the conditions that hold until the source has told something.
 * What an earlier run knew (`state.restore`) stays where it still holds.
 */
export async function begin(
  state: DirectoryState,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): Promise<void> {
  const { path, configuration } = state
  const now = new Date()
  metrics.follow(
    path,
    configuration.afterPublish.map(({ name }) => name),
  )
  await notice(state, publishOperation(path), { log, metrics })
  if (state.publishedAt) metrics.publishedAt(path, state.publishedAt)
  if (state.confirmedAt) metrics.confirmed(path, state.confirmedAt)
  if (!state.whole) {
    const message =
      state.drift === undefined
        ? 'nothing is published yet'
        : `the disk differs from what was published: ${state.drift}`
    state.setPublished({ status: 'False', reason: 'SourceUnavailable', message }, now)
  } else if (state.published?.status !== 'True') {
    const message = 'the disk holds what was published before the agent started'
    state.setPublished({ status: 'True', reason: 'Published', message }, now)
  }
  if (!state.fresh) {
    const message = 'the source has told nothing yet'
    state.setFresh({ status: 'False', reason: 'SourceUnavailable', message }, now)
  }
}
