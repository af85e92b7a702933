/** What an agent costs its node, as agent.ts measures it. */
import { median } from './measure.js'

/** Milliseconds of a window without a change. */
export const window = 20_000

export interface Footprint {
  /** Secrets that it keeps. */
  readonly watched: number
  /** Mebibytes, once all updates are there and what follows from them is done. */
  readonly anonymous: number
  readonly resident: number
  /** To the API server. */
  readonly connections: number
  /** Of each window without a change: milliseconds of processor time, and how often a thread of it woke up. */
  readonly idle: readonly { readonly processor: number; readonly wakeups: number }[]
  /** Milliseconds of processor time for one change of a Secret, with its event, its status and the sync of the removal. */
  readonly change: number
}

export function describeFootprint({ watched, anonymous, resident, idle, change }: Footprint): string[] {
  const all = (figure: 'processor' | 'wakeups'): string => idle.map((each) => each[figure].toFixed(0)).join(', ')
  return [
    `agent, ${watched} Secrets: anonymous ${anonymous.toFixed(1)} MiB, resident ${resident.toFixed(1)} MiB`,
    `in windows of ${window / 1000} s without a change: ${all('processor')} ms of processor time, ${all('wakeups')} wakeups`,
    `a change: ${change.toFixed(0)} ms of processor time, with its event, its status and the sync of what was removed`,
  ]
}

/** Milliseconds of processor time in a window without a change. */
export const idleProcessor = ({ idle }: Footprint): number => median(idle.map(({ processor }) => processor))
/** Wakeups a second without a change. */
export const idleWakeups = ({ idle }: Footprint): number => median(idle.map(({ wakeups }) => wakeups)) / (window / 1000)
