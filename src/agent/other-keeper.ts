import { readdirSync, readlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { clock } from '../clock.js'
import { endsWithin } from '../deadline.js'
import { flockHolders, readRecord } from '../durable/index.js'
import { DurableWriteError } from '../durable/errors.js'
import { codeOf } from '../errors.js'
import type { Log } from '../log.js'
import type { DirectoryFacts, DirectoryState } from './directory-state.js'
import { readIdentity } from './identity.js'
import { lockName } from './state-lock.js'

/*
 * Two agents with one directory, as of two clusters on one node: the agent that starts later takes the directory over, as when one
 * DaemonSet follows another. The earlier agent then lets it be: it would repair the later one's content, and the later one would repair its
 * content in turn. Once the later agent has gone for good, there are no two any more.
 */

/** Milliseconds to wait for a disk that does not answer. */
const patience = 3_000

/**
 * The other agents of this node, as far as this process sees them: in its PID namespace, and by the locks of their state directories. An agent
 * that was never seen to run never counts as ended.
 */
export class OtherAgents {
  /** When each agent that was seen to run was first missed, by the clock; undefined while it runs. */
  readonly #missed = new Map<string, number | undefined>()

  /** `interval`: milliseconds in which an agent that restarts comes back. */
  constructor(
    private readonly interval: () => number,
    private readonly runs: (agent: string) => Promise<boolean | undefined> = runsHere,
  ) {}

  /** Whether it has ended, and did not come back. */
  async hasEnded(agent: string): Promise<boolean> {
    const runs = await this.runs(agent)
    const isKnown = this.#missed.has(agent)
    const since = runs === false ? (this.#missed.get(agent) ?? clock.now()) : undefined
    if (runs === true || isKnown) this.#missed.set(agent, since)
    return isKnown && since !== undefined && clock.now() - since >= this.interval()
  }
}

/** undefined: a process that may be this agent cannot be looked at. `holders`: the processes that may be. @internal */
export async function runsHere(agent: string, holders = holdersOfLocks()): Promise<boolean | undefined> {
  let isSure = true
  for (const pid of holders) {
    try {
      for (const directory of stateDirectoriesOf(pid)) {
        const reading = readIdentity(`/proc/${pid}/root${directory}`)
        const found = (await endsWithin(reading, patience)) ? await reading : undefined
        if (found === agent) return true
        // The agent's disk does not answer, or its agent.id was removed since it read that.
        if (found === undefined) isSure = false
      }
    } catch (error) {
      // The process has ended meanwhile.
      if (!['ENOENT', 'ESRCH'].includes(codeOf(error) ?? '')) isSure = false
    }
  }
  return isSure ? false : undefined
}

function holdersOfLocks(): number[] {
  return flockHolders().filter((pid) => pid !== process.pid)
}

/** The state directories whose locks a process has open, by the paths that the process sees. */
function stateDirectoriesOf(pid: number): string[] {
  const open = readdirSync(`/proc/${pid}/fd`).map((descriptor) => readlinkSync(`/proc/${pid}/fd/${descriptor}`))
  return open.filter((path) => basename(path) === lockName).map((path) => dirname(path))
}

/** Whether another agent than this one has taken the directory over, by what its record says now. */
export function isOtherAgent(
  { keeps }: Pick<DirectoryFacts, 'keeps'>,
  keeper: string | undefined,
  agent: string | undefined,
): boolean {
  return keeps && keeper !== undefined && agent !== undefined && keeper !== agent
}

/** Why this agent, which has published to the directory, does so no more; undefined: no other agent has taken it over since, or it has ended. */
export async function otherKeeper(
  state: DirectoryState,
  agent: string | undefined,
  { others, log }: { readonly others?: OtherAgents | undefined; readonly log: Log },
): Promise<DurableWriteError | undefined> {
  const { path, facts } = state
  if (!facts.keeps) return undefined
  // The publication itself reports a record that cannot be read.
  const keeper = await readRecord(path).then(
    (said) => said?.keeper,
    () => undefined,
  )
  if (keeper === undefined || !isOtherAgent(facts, keeper, agent)) return undefined
  if (await others?.hasEnded(keeper)) {
    log.info(
      { directory: path },
      `another agent (${keeper}), which published ${path}, has ended: this one publishes it again`,
    )
    state.happened({ kind: 'claimed' })
    return undefined
  }
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
