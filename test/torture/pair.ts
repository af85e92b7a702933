/** `holdfast witness` and `holdfast torture` beside each other, over TCP, in this process. */
import { EventEmitter } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { main } from '../../src/cli/main.js'
import type { LedgerState } from '../../torture/ledger.js'
import type { Ended } from '../cli/holdfast.js'
import { scratch } from '../durable/scratch.js'
import { testIo } from '../cli/in-process.js'
import { until } from '../until.js'

/** A command that runs until a signal ends it. */
export class Running {
  readonly #events = new EventEmitter()
  readonly #io = testIo({ events: this.#events })
  readonly ended: Promise<number>

  constructor(...args: string[]) {
    this.ended = main(args, this.#io.io)
  }

  get written(): { stdout: string; stderr: string } {
    return this.#io.written
  }

  async end(): Promise<Ended> {
    this.#events.emit('SIGTERM', 'SIGTERM')
    return { code: await this.ended, signal: null, ...this.written }
  }
}

export class Pair {
  readonly directory: string
  readonly disk: string
  readonly state: string
  witness: Running | undefined
  port = 0

  constructor(
    readonly t: Test,
    parent?: string,
  ) {
    this.directory = scratch(t, parent)
    this.disk = join(this.directory, 'disk')
    this.state = join(this.directory, 'state.json')
    mkdirSync(this.disk)
  }

  get keyFile(): string {
    return `${this.state}.key`
  }

  async startWitness(): Promise<void> {
    const witness = new Running('witness', '--listen', '127.0.0.1:0', '--state', this.state, '-o', 'json')
    this.witness = witness
    this.t.teardown(() => witness.end())
    const { stdout } = await until(
      'the witness listens',
      () => witness.written.stdout.endsWith('}\n') && witness.written,
    )
    this.port = (JSON.parse(stdout) as { address: { port: number } }).address.port
  }

  torture(...more: string[]): string[] {
    return ['torture', this.disk, '--witness', `127.0.0.1:${this.port}`, '--key-file', this.keyFile, ...more]
  }

  get ledger(): LedgerState {
    return JSON.parse(readFileSync(this.state, 'utf8')) as LedgerState
  }

  /** Publishes until so many generations are on the disk, and ends in good order. */
  async publish(generations: number): Promise<Ended> {
    const running = new Running(...this.torture('--log-level', 'debug', '-o', 'json'))
    const durable = (): boolean => running.written.stderr.split('is durable').length > generations
    await until(`${generations} generations`, () => durable())
    return running.end()
  }
}
