/** Schedules the files: in batches, the longest first, so many at a time. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { project } from '../project.js'
import { sharesItsProcess } from './files.js'

/**
 * Seconds that the longest files take, for a clone in which none ran yet: what begins last should not be what takes longest. Files
 * below five seconds need no place here.
 */
export const longest: Readonly<Record<string, number>> = {
  'test/node/kubeadm.test.ts': 200,
  'test/node/systemd.test.ts': 190,
  'test/node/static-pods.test.ts': 150,
  'test/e2e/fleet.test.ts': 150,
  'test/e2e/footprint.test.ts': 140,
  'test/node/rollout.test.ts': 140,
  'test/node/daemon-set.test.ts': 115,
  'test/node/static-agent.test.ts': 85,
  'test/e2e/static-pods.test.ts': 55,
  'test/e2e/access.test.ts': 40,
  'test/e2e/kill.test.ts': 40,
  'test/e2e/large-content.test.ts': 40,
  'test/node/init-container.test.ts': 40,
  'test/static-pods/flushes.test.ts': 40,
  'test/e2e/slow-link.test.ts': 36,
  'test/e2e/events.test.ts': 30,
  'test/agent/hung-disk.test.ts': 30,
  'test/e2e/outage.test.ts': 27,
  'test/e2e/rewind.test.ts': 25,
  'test/e2e/bounds.test.ts': 25,
  'test/e2e/selected-objects.test.ts': 24,
  'test/node/executable.test.ts': 20,
  'test/runner/runner.test.ts': 18,
  'test/check/targets.test.ts': 12,
  'test/cli/agent-pacing.test.ts': 12,
  'test/static-pods/install/preflight.test.ts': 11,
  'test/check/file-systems.test.ts': 10,
  'test/static-pods/monitor/operator-status.test.ts': 10,
  'test/cli/commands/reload.test.ts': 9,
  'test/cli/retire.test.ts': 9,
  'test/durable/keep/retired.test.ts': 9,
  'test/cli/commands/agent.test.ts': 8,
  'test/cli/before-publish.test.ts': 8,
  'test/extension-points.test.ts': 8,
  'test/check/capabilities.test.ts': 7,
  'test/check/node.test.ts': 7,
  'test/cli/agent-state.test.ts': 7,
  'test/cli/program.test.ts': 7,
  'test/durable/mounts-below.test.ts': 7,
  'test/durable/record-fuzz.test.ts': 7,
  'test/cli/agent-hooks.test.ts': 6,
  'test/static-pods/rollout/rollout.test.ts': 6,
  'test/durable/path/open-directories.test.ts': 6,
  'test/static-pods/monitor/monitor-command.test.ts': 6,
  'test/cli/agent-signals.test.ts': 5,
  'test/cli/commands/rollout.test.ts': 5,
  'test/cli/commands/write.test.ts': 5,
  'test/durable/record-properties.test.ts': 5,
  'test/objects/files/source.test.ts': 5,
}

/** Seconds that each file took when it last ran. */
const ledger = join(project, 'dist/.test-times.json')

export type Times = Record<string, number>

function lastTimes(): Times {
  try {
    return JSON.parse(readFileSync(ledger, 'utf8')) as Times
  } catch {
    return {}
  }
}

/** Seconds of the files that ran, or that the list of long files names. */
export function knownTimes(): Times {
  return { ...longest, ...lastTimes() }
}

export function keepTimes(times: Times): void {
  mkdirSync(dirname(ledger), { recursive: true })
  writeFileSync(ledger, JSON.stringify({ ...lastTimes(), ...times }))
}

/** Seconds of work that one process of several files is given. */
const secondsTogether = 15

/**
 * Files that go into one process, at most: a crash takes the time of those behind it twice, and a process more takes 0.3 s of
 * CPU until its first test.
 */
const filesTogether = 32

/** Seconds that a file counts before it ever ran: most files that share a process, and most that have one to themselves. */
const secondsUnknown = 0.5
const secondsAlone = 2

/** Files in batches, the longest first. */
export function batches(files: readonly string[], alone: boolean, last = lastTimes()): string[][] {
  const times = { ...longest, ...last }
  const shared = alone ? [] : files.filter((file) => sharesItsProcess(file))
  const single = files.filter((file) => !shared.includes(file)).map((file) => [file])
  const length = (batch: readonly string[]): number =>
    batch.reduce((sum, one) => sum + (times[one] ?? (shared.includes(one) ? secondsUnknown : secondsAlone)), 0)
  const together: string[][] = []
  for (const file of shared) {
    const fits = (batch: readonly string[]) =>
      batch.length < filesTogether && length([...batch, file]) <= secondsTogether
    const batch = together.find(fits)
    if (batch === undefined) together.push([file])
    else batch.push(file)
  }
  return [...single, ...together].sort((a, b) => length(b) - length(a))
}

/** Works through the queue, `jobs` at a time; what `work` returns is queued, too. */
export async function workThrough<T>(queue: readonly T[], jobs: number, work: (one: T) => Promise<readonly T[]>) {
  const waiting = [...queue]
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) waiting.unshift(...(await work(next)))
  }
  await Promise.all(Array.from({ length: jobs }, worker))
}
