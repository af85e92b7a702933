import { readRecord } from '../durable/index.js'
import { DurableWriteError } from '../durable/errors.js'
import type { DirectoryState } from './directory-state.js'

/*
 * Two agents with one directory, as of two clusters on one node: the agent that starts later takes the directory over, as when one
 * DaemonSet follows another. The earlier agent then lets it be: it would repair the later one's content, and the later one would repair its
 * content in turn.
 */

/** Whether another agent than this one has taken the directory over, by what its record says now. */
export function isOther(
  { keeps }: Pick<DirectoryState, 'keeps'>,
  keeper: string | undefined,
  agent: string | undefined,
): boolean {
  return keeps && keeper !== undefined && agent !== undefined && keeper !== agent
}

/** Why this agent, which has published to the directory, does so no more; undefined: no other agent has taken it over since. */
export async function otherKeeper(
  state: Pick<DirectoryState, 'path' | 'keeps'>,
  agent: string | undefined,
): Promise<DurableWriteError | undefined> {
  const { path, keeps } = state
  if (!keeps) return undefined
  // The publication itself reports a record that cannot be read.
  const keeper = await readRecord(path).then(
    (said) => said?.keeper,
    () => undefined,
  )
  if (!isOther(state, keeper, agent)) return undefined
  return new DurableWriteError(`another agent (${keeper}) publishes ${path} now`, {
    code: 'EEXIST',
    syscall: 'none',
    path,
    reason: 'TargetForeign',
    state: `holdfast left ${path} as it was`,
    advice:
      'take the directory out of the configuration of one of the two; if it is to be this one, run "holdfast reload" here then',
  })
}
