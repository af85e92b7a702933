/** Reads Nodes and reports from answers of the API server. Another program may have written a report, so each field is checked. */
import { field } from '../kubernetes/reads/api-error.js'
import type { FleetNode, FleetReport } from './judge.js'
import {
  directoryStates,
  managerOf,
  namesObject,
  type ObjectNamed,
  type ReportedDirectory,
  type ReportedObject,
  type ReportSummary,
} from './types.js'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const itemsIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const count = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0)

/** undefined: it is no Node. */
export function fleetNode(object: unknown): FleetNode | undefined {
  const metadata = field(object, 'metadata')
  const [name, uid] = [text(field(metadata, 'name')), text(field(metadata, 'uid'))]
  if (name === '') return undefined
  return { name, uid, bootID: text(field(field(field(object, 'status'), 'nodeInfo'), 'bootID')) }
}

/** The object in question; undefined: all. */
type Sought = ObjectNamed | undefined

/** A report, with the directories that name the object or may do so. undefined: the object has no status, since no agent has reported yet. */
export function reportFor(object: unknown, sought: Sought): FleetReport | undefined {
  const status = field(object, 'status')
  const name = text(field(field(object, 'metadata'), 'name'))
  if (name === '' || typeof status !== 'object' || status === null) return undefined
  const directories = itemsIn(field(status, 'directories')).map(reportedDirectory)
  const isCut =
    field(status, 'truncated') === true && count(field(field(status, 'summary'), 'directories')) > directories.length
  const kept = directories.filter(
    (each) => sought === undefined || each.truncated === true || namesObject(each, sought),
  )
  return {
    name,
    nodeUID: text(field(status, 'nodeUID')),
    bootID: text(field(status, 'bootID')),
    takenAt: takenAt(object, text(field(status, 'agentID'))),
    directories: isCut ? [...kept, leftOut] : kept,
  }
}

/** Stands for the directories that a report had no room for: any object may be in one. */
const leftOut: ReportedDirectory = {
  path: '(further directories)',
  state: 'Waiting',
  reason: '',
  sequence: 0,
  objects: [],
  truncated: true,
}

export function isLeftOut(directory: ReportedDirectory): boolean {
  return directory === leftOut
}

function reportedDirectory(value: unknown): ReportedDirectory {
  const state = directoryStates.find((word) => word === field(value, 'state')) ?? 'Failed'
  const message = text(field(value, 'message'))
  const since = text(field(value, 'since'))
  const publishedAt = text(field(value, 'publishedAt'))
  const notAfter = text(field(value, 'notAfter'))
  const hooksPending = itemsIn(field(value, 'hooksPending')).map(text)
  const pending = itemsIn(field(value, 'pending')).map(reportedObject)
  return {
    path: text(field(value, 'path')),
    state,
    reason: text(field(value, 'reason')),
    sequence: count(field(value, 'sequence')),
    objects: itemsIn(field(value, 'objects')).map(reportedObject),
    ...(message !== '' && { message }),
    ...(since !== '' && { since }),
    ...(publishedAt !== '' && { publishedAt }),
    ...(notAfter !== '' && { notAfter }),
    ...(field(value, 'unproven') === true && { unproven: true }),
    ...(field(value, 'truncated') === true && { truncated: true }),
    ...(hooksPending.length > 0 && { hooksPending }),
    ...(pending.length > 0 && { pending }),
  }
}

function reportedObject(value: unknown): ReportedObject {
  return {
    kind: text(field(value, 'kind')),
    namespace: text(field(value, 'namespace')),
    name: text(field(value, 'name')),
    uid: text(field(value, 'uid')),
    resourceVersion: text(field(value, 'resourceVersion')),
  }
}

/**
 * When the API server last took a change by the agent, by its own clock: a node's clock may be wrong by hours, and another program may
 * have written something beside it. 0 where it does not say, as where a proxy drops managedFields.
 */
function takenAt(object: unknown, agentID: string): number {
  const entries = itemsIn(field(field(object, 'metadata'), 'managedFields'))
  const times = entries
    .filter((entry) => field(entry, 'subresource') === 'status' && field(entry, 'manager') === managerOf(agentID))
    .map((entry) => Date.parse(text(field(entry, 'time'))))
  return Math.max(0, ...times.filter((time) => !Number.isNaN(time)))
}

/** What `fleet status` sums up. */
export interface ReportFacts extends FleetReport {
  readonly agentVersion: string
  readonly configuration: string
  readonly summary: ReportSummary
}

export function reportFacts(object: unknown): ReportFacts | undefined {
  const report = reportFor(object, undefined)
  if (report === undefined) return undefined
  const status = field(object, 'status')
  const summary = field(status, 'summary')
  const expires = text(field(summary, 'expires'))
  return {
    ...report,
    agentVersion: text(field(status, 'agentVersion')),
    configuration: text(field(status, 'configuration')),
    summary: {
      directories: count(field(summary, 'directories')),
      current: count(field(summary, 'current')),
      waiting: count(field(summary, 'waiting')),
      held: count(field(summary, 'held')),
      failed: count(field(summary, 'failed')),
      ...(expires !== '' && { expires }),
    },
  }
}
