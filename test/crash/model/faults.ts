import { afterSuccess, type Effort, prepared } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { ModelError } from './model-disk.js'
import type { ModelProcess } from './model-process.js'
import type { Step } from './scenario.js'

/** A failure of the disk or of a call, once in a step. */
interface Fault {
  readonly name: string
  readonly prepare: (process: ModelProcess) => void
}

/**
 * Every call of the step fails, and every inode in every sync and write-out, in each way that a disk has: the answer must be true at once,
 * after a power cut, and of the next run on the same kernel and after a reboot.
 */
export async function exploreFaults(explorer: Explorer, effort: Effort): Promise<void> {
  const { scenario } = explorer
  const start = await prepared(explorer)
  for (const fault of await faultsOf(explorer, start)) {
    explorer.counts.faults += 1
    const trail = [...start.trail, fault.name]
    const failed = await explorer.play({ ...start, trail, disk: start.disk.fork() }, scenario.step, 'step', {
      record: true,
      prepare: fault.prepare,
    })
    const untouched = failed.outcomes.every((one) => one === undefined || ('error' in one && !one.error.published))
    // The next run removes the rest.
    const isRemoval = /^EIO from call \d+, remove/.test(fault.name)
    if (untouched && !isRemoval && !failed.disk.aborted) explorer.tidy(failed, scenario.step)
    explorer.cut(failed, effort.fewer)
    for (const instant of failed.instants) {
      if (explorer.random.below(effort.second) === 0) {
        explorer.cut(explorer.at({ ...start, trail }, instant, scenario.step), effort.fewer)
      }
    }
    for (const successor of scenario.successors) await goOn(explorer, failed, successor, effort)
  }
}

/** The next run on the same kernel; and, always where the disk has failed for good, after a power cut. */
async function goOn(explorer: Explorer, failed: Position, successor: Step, effort: Effort): Promise<void> {
  const disk = failed.disk.fork()
  const next = await explorer.play({ ...failed, disk }, successor, 'next run', { record: true })
  if (disk.aborted) {
    if (next.success && !failed.disk.aborted) explorer.report('succeeds on an aborted journal', next.trail)
    explorer.cut(next, effort.fewer)
  } else {
    await afterSuccess(explorer, next, successor, effort)
  }
  const survivors: Position[] = []
  explorer.cut(next, effort.fewer, (survivor) => survivors.push(survivor))
  if (survivors.length === 0) return
  const survivor = explorer.random.pick(survivors)
  const step = explorer.random.pick(explorer.scenario.successors)
  const last = await explorer.play({ ...survivor, disk: survivor.disk.fork() }, step, 'after the reboot')
  await afterSuccess(explorer, last, step, effort)
}

async function faultsOf(explorer: Explorer, start: Position): Promise<Fault[]> {
  const calls: string[] = []
  const syncs: { call: 'sync' | 'startWriteOut'; path: string; isDirectory: boolean }[] = []
  await explorer.play({ ...start, disk: start.disk.fork() }, explorer.scenario.step, 'step', {
    prepare: (process) => {
      process.before = (call, name) => {
        calls.push(`${call} ${name}`)
      }
      process.syncFault = (call, path, isDirectory) => {
        syncs.push({ call, path, isDirectory })
        return undefined
      }
    },
  })
  return [
    ...calls.flatMap((call, index) => callFaults(call, index)),
    ...syncs.flatMap(({ call, path, isDirectory }, index) =>
      waysToFail(call, isDirectory).map((way) => ({
        name: `${call} of ${path} fails (${way})`,
        prepare: (process: ModelProcess) => {
          let count = 0
          process.syncFault = () => (count++ === index ? way : undefined)
        },
      })),
    ),
  ]
}

/**
 * A file's failed pages are dropped, or stay dirty. A directory's failed blocks are the journal's: it is aborted (ext4
 * errors=, xfs shutdown, btrfs transaction abort), or the call failed before it came to that.
 */
function waysToFail(call: 'sync' | 'startWriteOut', isDirectory: boolean): readonly ('drop' | 'keep' | 'abort')[] {
  if (call === 'startWriteOut') return ['drop']
  return isDirectory ? ['abort', 'keep'] : ['drop', 'keep', 'abort']
}

function callFaults(call: string, index: number): Fault[] {
  const atCall = (act: (process: ModelProcess) => void) => (process: ModelProcess) => {
    let count = 0
    process.before = () => {
      if (count++ === index) act(process)
    }
  }
  const faults: Fault[] = [
    {
      name: `EIO from call ${index}, ${call}`,
      prepare: atCall(() => {
        throw new ModelError('EIO', call, '')
      }),
    },
    {
      name: `the journal is aborted before call ${index}, ${call}: the flush of another process's fsync has failed`,
      prepare: atCall((process) => {
        process.disk.aborted = true
      }),
    },
    {
      name: `the write-out of all that is dirty fails before call ${index}, ${call}`,
      prepare: atCall(({ disk }) => {
        for (const { number } of disk.dirtyFiles()) disk.drop(number)
      }),
    },
  ]
  if (call.startsWith('rename')) {
    faults.push({
      name: `${call} is done, and fails`,
      prepare: (process) => {
        const rename = process.rename.bind(process)
        process.rename = async (...args) => {
          await rename(...args)
          throw new ModelError('EIO', 'renameat2', '')
        }
      },
    })
  }
  return faults
}
