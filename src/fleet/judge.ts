/**
 * Judges whether a node has an object on its disk: `done` is a proof, by the node's own report. Each reason against it has a name, and each
 * sentence of docs/fleet.md about the proof is one rule here.
 */
import { listed } from '../message-text.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import { heartbeat, isSameObject, namesObject, type ReportedDirectory, type ReportedObject } from './types.js'

/** The object that each node shall have: this one or a newer version of it. */
export type WantedObject = ReportedObject

/** A Node, as far as a verdict needs it. */
export interface FleetNode {
  readonly name: string
  readonly uid: string
  readonly bootID: string
}

/** A report, as far as a verdict needs it. */
export interface FleetReport {
  readonly name: string
  readonly nodeUID: string
  readonly bootID: string
  /** When the API server took it, by the server's clock, in milliseconds since the epoch; 0: it does not say. */
  readonly takenAt: number
  /** Those that name the wanted object, or may do so. */
  readonly directories: readonly ReportedDirectory[]
}

/** @internal */
export const obstacles = [
  'NoReport',
  'OtherNode',
  'OtherBoot',
  'Silent',
  'NotConfigured',
  'OtherObject',
  'Older',
  'Failed',
  'Unproven',
  'Held',
  'HooksPending',
  'Truncated',
] as const
export type Obstacle = (typeof obstacles)[number]

export interface NodeVerdict {
  /** undefined: the node has it. */
  readonly obstacle: Obstacle | undefined
  /** For people; the empty string where the node has it. */
  readonly message: string
}

export interface JudgeOptions {
  /** Now, by the server's clock, in milliseconds since the epoch. */
  readonly now: number
  /** A node that has not reported for long is no obstacle by that alone. */
  readonly ignoreSilent: boolean
}

/** A node whose last report is older than this is silent: it writes one each hour, up to a tenth later, and a tenth more for a slow server. */
export const longestQuiet = 1.2 * heartbeat

const done: NodeVerdict = { obstacle: undefined, message: '' }

export function judgeNode(
  node: FleetNode,
  report: FleetReport | undefined,
  wanted: WantedObject,
  { now, ignoreSilent }: JudgeOptions,
): NodeVerdict {
  if (report === undefined)
    return {
      obstacle: 'NoReport',
      message:
        'the node has no report: the log of its agent says why (ReportRefused), if report: true is set; one that was deleted comes again within the hour, or by "holdfast reload" there',
    }
  if (report.nodeUID !== node.uid)
    return {
      obstacle: 'OtherNode',
      message: `the report is of an earlier Node of this name: if it stays, run "kubectl delete npub ${node.name}", then "holdfast reload" there`,
    }
  if (report.bootID !== node.bootID)
    return { obstacle: 'OtherBoot', message: 'the node has started anew, and has not reported since' }
  const age = now - report.takenAt
  if (age > longestQuiet && !ignoreSilent) {
    const message =
      report.takenAt > 0
        ? `the last report is ${Math.round(age / 60_000)} minutes old`
        : 'its metadata.managedFields, which a proxy or another program may have dropped, do not say when its agent last reported'
    return { obstacle: 'Silent', message }
  }
  const naming = report.directories.filter((each) => namesObject(each, wanted))
  const cut = report.directories.find((each) => each.truncated === true && !naming.includes(each))
  if (cut) return { obstacle: 'Truncated', message: `${cut.path}: its report is too large to name each object` }
  if (naming.length === 0) return { obstacle: 'NotConfigured', message: 'no directory of the node has the object' }
  for (const directory of naming) {
    const verdict = judgeDirectory(directory, wanted)
    if (verdict.obstacle !== undefined) return verdict
  }
  return done
}

/** For people. */
export function hooksNotRun(names: readonly string[]): string {
  return `hooks have not run: ${listed(names)}`
}

function judgeDirectory(directory: ReportedDirectory, wanted: WantedObject): NodeVerdict {
  const { path, state, reason, message, objects, unproven, hooksPending = [] } = directory
  const against = (obstacle: Obstacle, words: string): NodeVerdict => ({ obstacle, message: `${path}: ${words}` })
  const said = `${reason}${message === undefined || message === '' ? '' : `, ${message}`}`
  // An operator may take a held directory back to older content, and after a failed pass the disk may differ from the record.
  if (state === 'Held' || state === 'Failed') return against(state, said)
  const published = objects.find((object) => isSameObject(object, wanted))
  if (published === undefined) return against('Older', said)
  if (published.uid !== wanted.uid)
    return against('OtherObject', 'it has an earlier object of this name, which was deleted since')
  const order = compareResourceVersions(published.resourceVersion, wanted.resourceVersion)
  const isSame = published.resourceVersion === wanted.resourceVersion
  if (!isSame && (order === undefined || order < 0))
    return against('Older', `it has version ${published.resourceVersion}`)
  if (unproven === true) return against('Unproven', 'its file system proves no durability')
  if (hooksPending.length > 0) return against('HooksPending', hooksNotRun(hooksPending))
  return done
}
