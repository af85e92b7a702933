import type { AgentConfiguration, SourceConfiguration } from '../config/types.js'
import type { Log } from '../log.js'
import type { Source, SourceListener } from '../objects/types.js'
import type { AgentEvents } from './report/agent-events.js'
import type { Metrics } from './report/report-metrics.js'

export type OpenSource = (configuration: SourceConfiguration, listener: SourceListener) => Promise<Source>

export interface AgentOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly openSource: OpenSource
  /** This node's name in the cluster, for events; the empty string where neither flag nor environment names it. */
  readonly node: string
  /** holdfast's own. */
  readonly version: string
  /** The random name of this agent; undefined where its state directory could not keep one. */
  readonly identity: () => string | undefined
  /** Called when a move (`movedFrom`) is done: a configuration that was refused because of it may come into force. */
  readonly moved: () => void
  /** Called when something that the status shows has changed. */
  readonly changed: () => void
}

/** What is in force now: the agent alone puts one thing in the place of another. */
export interface InForce {
  configuration: AgentConfiguration
  /** undefined until the first one is open: until then nothing is published. */
  source: Source | undefined
  events: AgentEvents
}
