/** Runs one target in a thread with limits of memory and of stack, and watches that it goes on. */
import { Worker } from 'node:worker_threads'
import type { LoopData, LoopMessage } from './loop.js'
import { SharedInput } from './shared-input.js'

export interface Finding {
  readonly input: Buffer
  readonly message: string
}

export interface Run {
  readonly inputs: number
  /** Of the target's own files, 0 to 1; undefined where the run was cut. */
  readonly share: number | undefined
  readonly findings: readonly Finding[]
  /** Inputs that reached something new, and were not among the given ones. */
  readonly fresh: readonly Buffer[]
}

export interface Limits {
  /** Milliseconds of processor time that one input may take, the least of three runs. */
  readonly slowest: number
  /** Milliseconds after which an input that has not ended never will. */
  readonly endless: number
  /** MiB of the heap. */
  readonly heap: number
  /** MiB of the stack. */
  readonly stack: number
}

/** An agent of one node has 192 MiB in all; its main thread has a stack of a MiB. */
export const limits: Limits = { slowest: 1_000, endless: 30_000, heap: 128, stack: 1 }

/** Bytes of the longest input of any target. */
const longest = 128 * 1024

export type Asked = Pick<LoopData, 'target' | 'seed' | 'corpus' | 'time' | 'inputs' | 'findings' | 'go'>

export function runTarget(asked: Asked, { slowest, endless, heap, stack }: Limits = limits): Promise<Run> {
  const memory = SharedInput.memoryFor(longest)
  const shared = new SharedInput(memory)
  const findings: Finding[] = []
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./loop.js', import.meta.url), {
      workerData: { ...asked, slowest, memory } satisfies LoopData,
      resourceLimits: { maxOldGenerationSizeMb: heap, stackSizeMb: stack },
    })
    const cut = (message: string): void => {
      findings.push({ input: shared.get(), message })
      resolve({ inputs: shared.count, share: undefined, findings, fresh: [] })
      void worker.terminate()
    }
    let before = -1
    const watchdog = setInterval(() => {
      if (shared.count === before && shared.count > 0) cut(`no end within ${endless} ms`)
      before = shared.count
    }, endless)
    worker.on('message', (message: LoopMessage) => {
      if (message.type === 'finding') findings.push({ input: Buffer.from(message.input), message: message.message })
      else resolve({ ...message, findings, fresh: message.corpus.map((input) => Buffer.from(input)) })
    })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') cut(`more than ${heap} MiB of heap`)
      else reject(error)
    })
    worker.on('exit', () => {
      clearInterval(watchdog)
      reject(new Error(`the thread of ${asked.target} ended before its run`))
    })
  })
}
