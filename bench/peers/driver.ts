/**
 * A peer as a process: it answers each line of JSON with a line. An order names the peer, a directory in memory, and the targets, each of
 * which is to get that directory's content; an empty answer is a success, `error` says what went wrong.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { LineProcess } from '../../test/crash/power/process-lines.js'
import type { Peer } from './peers.js'

export interface Order {
  readonly peer: string
  /** Files without subdirectories. */
  readonly from: string
  readonly targets: readonly string[]
  /** Only makes ready what a user of the peer would have had ready: the commit that git-sync fetches. */
  readonly prepare?: boolean
}

/** Ticks of a processor's clock, in which /proc counts. */
const ticksInSecond = Number(execFileSync('getconf', ['CLK_TCK']).toString())

export class Driver {
  readonly #process: LineProcess

  constructor(
    readonly peer: Peer,
    command: readonly string[],
  ) {
    this.#process = new LineProcess(command)
  }

  get pid(): number {
    return this.#process.pid
  }

  async prepare(from: string, targets: readonly string[]): Promise<void> {
    if (this.peer.prepares) await this.#ask({ peer: this.peer.name, from, targets, prepare: true })
  }

  /** @throws Error with what the peer complains of */
  async publish(from: string, targets: readonly string[]): Promise<void> {
    await this.#ask({ peer: this.peer.name, from, targets })
  }

  /** Milliseconds of processor that it and the programs it ran have had, in steps of 10. */
  processorTime(): number {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // utime, stime, cutime and cstime: fields 14 to 17 of proc(5), the third of which is the first here.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return (1000 * ticks) / ticksInSecond
  }

  async end(): Promise<void> {
    await this.#process.end()
  }

  async #ask(order: Order): Promise<void> {
    const answer = (await this.#process.ask(order)) as { error?: string }
    if (answer.error !== undefined && answer.error !== '') throw new Error(`${this.peer.name}: ${answer.error}`)
  }
}
