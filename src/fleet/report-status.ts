/** Makes a report from what the agent knows of its directories, and keeps it small. */
import {
  directoryStates,
  type ReportedDirectory,
  type ReportStatus,
  type ReportSummary,
  type ReportCondition,
} from './types.js'

/** What the agent knows now. */
export interface NodeSnapshot {
  readonly agentVersion: string
  readonly configuration: string
  readonly directories: readonly SnapshotDirectory[]
}

export interface SnapshotDirectory extends ReportedDirectory {
  /** The source has confirmed since the start of the agent that nothing is newer than this. */
  readonly confirmed: boolean
}

/** Who reports. */
export interface ReportIdentity {
  readonly nodeUID: string
  readonly bootID: string
  readonly agentID: string
}

/** Characters. */
const longestMessage = 256
const longestShortMessage = 64
/** Bytes of a report's JSON. etcd takes 1.5 MiB, and a list of 5,000 of them has to be read. @internal */
export const largestReport = 256 * 1024
/** Objects of a directory in a report that would be larger. */
const fewObjects = 4

/** The report, but for its time. `before`: the last one, whose condition and directories keep the times at which their states began. */
export function reportOf(
  { agentVersion, configuration, directories }: NodeSnapshot,
  identity: ReportIdentity,
  now: Date,
  before?: Pick<ReportStatus, 'conditions' | 'directories'>,
): ReportStatus {
  const summary = summaryOf(directories)
  const report = (shown: readonly ReportedDirectory[], cut: boolean): ReportStatus => ({
    observedAt: rfc3339(now),
    ...identity,
    agentVersion,
    configuration,
    summary,
    conditions: [readyOf(summary, now, before)],
    directories: shown,
    ...(cut && { truncated: true }),
  })
  const whole = directories.map((each) => withMessage(shownOf(each, now, before), longestMessage))
  const isCut = whole.some(({ message }, index) => message !== directories[index]?.message)
  const full = report(whole, isCut)
  if (size(full) <= largestReport) return full
  const short = report(
    whole.map((each) => withMessage(each, longestShortMessage)),
    true,
  )
  if (size(short) <= largestReport) return short
  return fitting(
    short.directories.map((each) => withFewObjects(each, fewObjects)),
    (shown) => report(shown, true),
  )
}

/** Thousands of directories: the ones that are not Current stay, and as many of the others as fit. */
function fitting(
  directories: readonly ReportedDirectory[],
  report: (shown: readonly ReportedDirectory[]) => ReportStatus,
): ReportStatus {
  const inOrder = [...directories].sort((a, b) => Number(a.state === 'Current') - Number(b.state === 'Current'))
  // No comma follows the last one.
  let left = largestReport - size(report([])) + 1
  const kept = inOrder.filter((each) => (left -= size(each) + 1) >= 0)
  return report(directories.filter((each) => kept.includes(each)))
}

function shownOf(
  { confirmed: _, ...directory }: SnapshotDirectory,
  now: Date,
  before: Pick<ReportStatus, 'directories'> | undefined,
): ReportedDirectory {
  const { path, state } = directory
  if (state === 'Current') return directory
  const known = before?.directories.find((each) => each.path === path && each.state === state)
  return { ...directory, since: known?.since ?? rfc3339(now) }
}

function withMessage(directory: ReportedDirectory, longest: number): ReportedDirectory {
  const { message } = directory
  if (message === undefined || message.length <= longest) return directory
  return { ...directory, message: `${message.slice(0, longest - 1)}…` }
}

function withFewObjects(directory: ReportedDirectory, most: number): ReportedDirectory {
  const { objects, pending = [] } = directory
  if (objects.length <= most && pending.length <= most) return directory
  return {
    ...directory,
    objects: objects.slice(0, most),
    ...(pending.length > 0 && { pending: pending.slice(0, most) }),
    truncated: true,
  }
}

function summaryOf(directories: readonly ReportedDirectory[]): ReportSummary {
  const [current, waiting, held, failed] = directoryStates.map(
    (state) => directories.filter((each) => each.state === state).length,
  ) as [number, number, number, number]
  const ends = directories.flatMap(({ notAfter }) => notAfter ?? []).sort()
  return { directories: directories.length, current, waiting, held, failed, ...(ends[0] && { expires: ends[0] }) }
}

function readyOf(
  { directories, current, waiting, held, failed }: ReportSummary,
  now: Date,
  before: Pick<ReportStatus, 'conditions'> | undefined,
): ReportCondition {
  const status = current === directories ? 'True' : 'False'
  const reason = status === 'True' ? 'AllCurrent' : failed > 0 ? 'Failed' : waiting > 0 ? 'Waiting' : 'Held'
  const known = (before?.conditions as readonly ReportCondition[] | undefined)?.[0]
  return {
    type: 'Ready',
    status,
    reason,
    message: `${current} of ${directories} directories are current; waiting ${waiting}, held ${held}, failed ${failed}`,
    lastTransitionTime: known?.status === status ? known.lastTransitionTime : rfc3339(now),
  }
}

/** Whether both reports say the same, but for their time. */
export function isSameReport(a: ReportStatus, b: ReportStatus): boolean {
  const timeless = ({ observedAt: _, ...rest }: ReportStatus): string => JSON.stringify(rest)
  return timeless(a) === timeless(b)
}

/** metav1.Time: whole seconds. */
function rfc3339(date: Date): string {
  return date.toISOString().replace(/\.\d{3}Z$/, 'Z')
}

function size(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
