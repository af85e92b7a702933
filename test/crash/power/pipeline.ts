/** One file system: each scenario is run and recorded, then its crash states are examined, by a process with another boot. */
import { join } from 'node:path'
import type { FileSystem } from '../../disk/disk.js'
import type { Examination, Violation } from './examine.js'
import { FailingDisk } from './failing-disk.js'
import { canHold } from './held-actor.js'
import { LineProcess } from './process-lines.js'
import { record, type RunContext } from './record.js'
import { keepRecording, type Depth, type Recording } from './recording.js'
import { scenarios } from './scenarios.js'

export interface Plan {
  readonly fileSystem: FileSystem
  readonly directory: string
  readonly seed: number
  readonly depth: Depth
  /** Names, or parts of names; empty: all. */
  readonly only: readonly string[]
  /** End at the first violation. */
  readonly bail: boolean
  /** Where the recordings of violations go. */
  readonly keep: string
}

export interface Row {
  readonly fileSystem: FileSystem
  readonly scenario: string
  readonly runs: number
  readonly states: number
  readonly violations: number
  readonly seconds: number
}

export interface Finding {
  readonly fileSystem: FileSystem
  readonly scenario: string
  readonly problem: string
  /** What to give to --replay. */
  readonly kept: string
  readonly violation?: Violation
  readonly note?: string
}

export type Report = { row: Row } | { finding: Finding } | { skipped: string }

const failingDiskName = 'failing disk'
const mostFindings = 3

export class Pipeline {
  readonly #examiner: LineProcess
  #found = 0

  constructor(
    readonly plan: Plan,
    readonly report: (report: Report) => void,
  ) {
    this.#examiner = examinerIn(join(plan.directory, 'examiner'))
  }

  async run(): Promise<void> {
    if (!canHold()) this.report({ skipped: 'without strace nothing can happen between exchange and barrier 2' })
    for (const scenario of scenarios) {
      if (!this.#isWanted(scenario.name)) continue
      await this.#row(scenario.name, async (examine) => {
        await examine(await record(scenario, this.#context))
      })
    }
    if (this.#isWanted(failingDiskName)) await this.#row(failingDiskName, (examine) => this.#failingDisk(examine))
    await this.#examiner.end()
  }

  get #context(): RunContext {
    return this.plan
  }

  get #isOver(): boolean {
    return this.plan.bail && this.#found > 0
  }

  #isWanted(name: string): boolean {
    const { only } = this.plan
    return !this.#isOver && (only.length === 0 || only.some((part) => name.includes(part)))
  }

  async #failingDisk(examine: (recording: Recording, problem?: string) => Promise<void>): Promise<void> {
    const failing = await FailingDisk.create(this.#context)
    try {
      for (const fault of await failing.faults()) {
        if (this.#isOver) return
        const { recording, problem } = await failing.run(fault)
        await examine(recording, problem)
      }
    } finally {
      await failing.destroy()
    }
  }

  async #row(
    scenario: string,
    task: (examine: (recording: Recording, problem?: string) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const { fileSystem, bail } = this.plan
    const began = performance.now()
    let [runs, states, violations] = [0, 0, 0]
    await task(async (recording, problem) => {
      runs++
      if (problem !== undefined) {
        violations++
        this.#reportFinding(recording, problem)
        if (bail) return
      }
      const most = bail ? 1 : mostFindings
      const examination = (await this.#examiner.ask({ recording, most })) as Examination
      states += examination.states
      violations += examination.violations.length
      for (const violation of examination.violations) this.#reportFinding(recording, violation.problem, violation)
    })
    const seconds = (performance.now() - began) / 1000
    this.report({ row: { fileSystem, scenario, runs, states, violations, seconds } })
  }

  #reportFinding(recording: Recording, problem: string, violation?: Violation): void {
    const { fileSystem, scenario, note } = recording
    this.#found++
    const kept = keepRecording(recording, join(this.plan.keep, `${fileSystem}-${this.#found}`))
    const more = { ...(violation ? { violation } : {}), ...(note === undefined ? {} : { note }) }
    this.report({ finding: { fileSystem, scenario, problem, kept, ...more } })
  }
}

export function examinerIn(directory: string): LineProcess {
  const prefix = ['unshare', '--mount', '--propagation', 'private', '--']
  return LineProcess.node('examiner-program', [directory], prefix)
}
