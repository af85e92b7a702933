/** A node's report to its cluster: the object NodePublication (npub) of holdfast.dev/v1alpha1, as deploy/fleet defines it. */

export const reportApi = {
  apiVersion: 'holdfast.dev/v1alpha1',
  kind: 'NodePublication',
  group: 'holdfast.dev',
  resource: 'nodepublications',
} as const

/** Where the API server has all reports; with a slash and a name, one node's. */
export const reportsPath = `/apis/${reportApi.apiVersion}/${reportApi.resource}`

/** An object in one version. Of a file's object (source `files`) the versions have no order. */
export interface ReportedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/**
 * `Current`: the newest objects that the agent knows are on the disk, durable, and each hook has run. `Waiting`: something newer is known, a
 * hook is still to run, or the agent has not compared the disk yet. `Held`: an operator holds it or has rolled it back. `Failed`: the newest
 * objects could not be published, or their durability is unknown.
 */
export const directoryStates = ['Current', 'Waiting', 'Held', 'Failed'] as const
export type ReportedState = (typeof directoryStates)[number]

export interface ReportedDirectory {
  readonly path: string
  readonly state: ReportedState
  /** Of the condition Published. */
  readonly reason: string
  /** Only where the state is not Current. */
  readonly message?: string
  /** When the state began, by the node's clock, RFC 3339; only where it is not Current. */
  readonly since?: string
  /** Names the published content, as `holdfast history` does; 0: nothing is published. */
  readonly sequence: number
  /** RFC 3339. */
  readonly publishedAt?: string
  /** The earliest end of a published certificate, RFC 3339. */
  readonly notAfter?: string
  /** The file system proves no durability. */
  readonly unproven?: true
  /** Names of hooks that have not run to success for this content. */
  readonly hooksPending?: readonly string[]
  /** The versions that are published. */
  readonly objects: readonly ReportedObject[]
  /** Newer versions that the agent knows and has not published. */
  readonly pending?: readonly ReportedObject[]
  /** Objects were left out, so that the report stays small. */
  readonly truncated?: true
}

/** How many directories there are, and how many are in each state. */
export interface ReportSummary {
  readonly directories: number
  readonly current: number
  readonly waiting: number
  readonly held: number
  readonly failed: number
  /** The earliest end of a published certificate, RFC 3339. */
  readonly expires?: string
}

/** What an agent reports. It holds no digest of content: a short secret can be found from one. */
export interface ReportStatus {
  /** When the agent made it, RFC 3339. */
  readonly observedAt: string
  readonly nodeUID: string
  /** Of the kernel, as in the Node's status.nodeInfo. */
  readonly bootID: string
  /** The random name of the agent: another agent on this node has another one. */
  readonly agentID: string
  readonly agentVersion: string
  /** Digest of the configuration file. */
  readonly configuration: string
  readonly summary: ReportSummary
  readonly conditions: readonly [ReportCondition]
  readonly directories: readonly ReportedDirectory[]
  /** Texts or objects were cut, so that the report stays small. */
  readonly truncated?: true
}

/** `Ready`: each directory is Current. */
export interface ReportCondition {
  readonly type: 'Ready'
  readonly status: 'True' | 'False'
  readonly reason: 'AllCurrent' | 'Waiting' | 'Held' | 'Failed'
  readonly message: string
  /** RFC 3339. */
  readonly lastTransitionTime: string
}

/** Milliseconds between two reports of a node on which nothing changes; each is up to a tenth earlier or later. */
export const heartbeat = 60 * 60_000

/** The Nodes of `holdfast fleet` without --nodes: kubelet sets this label. */
export const linuxNodes = 'kubernetes.io/os=linux'

/** The field manager of an agent, for server-side apply. */
export function managerOf(agentID: string): string {
  return `holdfast-${agentID}`
}

export type ObjectNamed = Pick<ReportedObject, 'kind' | 'namespace' | 'name'>

export function isSameObject(a: ObjectNamed, b: ObjectNamed): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name
}

/** The directory has the object, or is to get it. */
export function namesObject({ objects, pending = [] }: ReportedDirectory, object: ObjectNamed): boolean {
  return [...objects, ...pending].some((each) => isSameObject(each, object))
}
