/**
 * One round: programs publish while foreign ones keep the file system busy; then the file system shuts down, or its disk fails all writes,
 * or only the programs die. A new mount finds all content that the programs acknowledged. As xfstests generic/388 and 475 do with a file
 * system.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Disk, FileSystem } from '../../disk/disk.js'
import { readLog } from '../../disk/write-log.js'
import { shutDown } from '../histories/libc.js'
import type { Answer, Order } from '../power/actor-program.js'
import { appendMark, Expectations, type Expected, type Mark } from '../power/marks.js'
import { LineProcess } from '../power/process-lines.js'
import type { Random } from '../../random.js'
import type { Target } from '../power/targets.js'

const run = promisify(execFile)

const deaths = ['shutdown', 'errors', 'kill'] as const
export type Death = (typeof deaths)[number]

/** What each program publishes, in one call. */
const groups: readonly (readonly Target[])[] = [
  [
    { path: 'certs/target', kind: 'directory', content: 'many' },
    { path: 'volume/target', kind: 'symlink', content: 'few' },
  ],
  [{ path: 'certs/pod.yaml', kind: 'file', content: 'few' }],
]
const targets = groups.flat()
const bystander = 'certs/theirs'
const foreignPrograms = 2
/** More operations than any round makes. */
const forGood = 1_000_000_000

export interface Round {
  readonly death: Death
  readonly answers: number
  readonly failures: number
  readonly problem: string | undefined
}

export class Loop {
  /** What each target holds for certain. */
  #generation = 0
  #number = 0

  constructor(
    readonly disk: Disk,
    readonly fileSystem: FileSystem,
    readonly directory: string,
    readonly random: Random,
  ) {}

  /** An empty file system with a foreign file in it. */
  async prepare(): Promise<void> {
    await this.disk.format(this.fileSystem)
    await this.disk.mount()
    mkdirSync(join(this.disk.mountPoint, 'certs'))
    writeFileSync(join(this.disk.mountPoint, bystander), bystander)
    await this.disk.unmount()
  }

  async round(): Promise<Round> {
    const { disk, random } = this
    const { mountPoint } = disk
    const number = ++this.#number
    const log = join(this.directory, `${number}.log`)
    appendMark(log, { event: 'targets', targets: [...targets] })
    const paths = targets.map(({ path }) => path)
    appendMark(log, { event: 'acknowledged', paths, generation: this.#generation })
    await disk.mount()
    const load = await Promise.all(Array.from({ length: foreignPrograms }, (_, one) => this.#load(one)))
    const programs = groups.map((group) => new Program(group, { mountPoint, log, generation: this.#generation }))
    const possible = this.fileSystem === 'btrfs' ? deaths.filter((one) => one !== 'shutdown') : deaths
    const death = possible[random.below(possible.length)] ?? 'kill'
    const isKilledFirst = random.below(2) === 0
    // Each has answered a few times; then any instant of its next call.
    const waitFor = random.below(4)
    await Promise.all(programs.map((program) => program.answered(waitFor)))
    await delay(random.below(30))
    if (death === 'kill' || isKilledFirst) await Promise.all(programs.map((program) => program.kill()))
    await this.#die(death)
    // What a program says of a disk that has died is true, too.
    await Promise.all(programs.map((program) => program.stop()))
    await Promise.all(load.map((end) => end()))
    await disk.unmount()
    await disk.ask('reset')
    const expectations = new Expectations()
    for (const { kind, data } of readLog(log))
      if (kind === 'mark') expectations.apply(JSON.parse(data.toString()) as Mark)
    await disk.mount()
    const problem = await this.#examine(expectations.all, number)
    await disk.unmount()
    const sum = (of: (program: Program) => number): number => programs.reduce((all, program) => all + of(program), 0)
    return { death, answers: sum(({ answers }) => answers), failures: sum(({ failures }) => failures), problem }
  }

  async #load(one: number): Promise<() => Promise<void>> {
    const path = new URL('./load-program.js', import.meta.url).pathname
    const directory = join(this.disk.mountPoint, `load-${one}`)
    mkdirSync(directory, { recursive: true })
    const child = spawn(process.execPath, [path, directory, `${this.random.below(2 ** 31)}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'close')
    await once(child.stdout, 'data')
    return async () => {
      child.kill('SIGKILL')
      await ended
    }
  }

  async #die(death: Death): Promise<void> {
    const { disk } = this
    if (death === 'errors') {
      await disk.ask('reset')
      await disk.ask(`fail write 1 ${forGood}`)
      await disk.ask(`fail flush 1 ${forGood}`)
    }
    if (death !== 'shutdown') return
    const descriptor = openSync(disk.mountPoint, 'r')
    try {
      if (!shutDown(descriptor)) throw new Error(`${disk.mountPoint} cannot be shut down`)
    } finally {
      closeSync(descriptor)
    }
  }

  /** The next run publishes the newest generation of all, or something newer. */
  async #examine(expected: readonly Expected[], number: number): Promise<string | undefined> {
    const { mountPoint } = this.disk
    if (readFileSync(join(mountPoint, bystander), 'utf8') !== bystander)
      return `${bystander}, which is somebody else's, is gone`
    const program = new URL('./examine-program.js', import.meta.url).pathname
    const question = JSON.stringify({ mountPoint, expected, number })
    const command = ['--mount', '--propagation', 'private', '--', process.execPath, program, question]
    const { stdout } = await run('unshare', command, { env: { ...process.env, TMPDIR: this.directory } })
    this.#generation = Math.max(1, ...expected.map(({ newest }) => newest)) + (number % 2)
    return (JSON.parse(stdout) as { problem?: string }).problem
  }
}

/** A process that publishes one generation after the other, until its order to stop. */
class Program {
  answers = 0
  failures = 0
  readonly #process = LineProcess.at(new URL('../power/actor-program.js', import.meta.url).pathname)
  readonly #over: Promise<void>
  #heard: (() => void) | undefined
  #isStopped = false

  constructor(
    readonly group: readonly Target[],
    order: Pick<Order, 'mountPoint' | 'log' | 'generation'>,
  ) {
    this.#over = this.#publish(order)
  }

  async #publish({ generation: first, ...order }: Pick<Order, 'mountPoint' | 'log' | 'generation'>): Promise<void> {
    for (let generation = first + 1; !this.#isStopped; generation++) {
      const asked: Order = { ...order, targets: this.group, generation }
      const answer = (await this.#process.tryAsk(asked)) as Answer | undefined
      if (answer === undefined) break
      this.answers += 1
      if (answer.some((result) => 'error' in result)) this.failures += 1
      this.#heard?.()
    }
    this.#isStopped = true
    this.#heard?.()
  }

  /** Resolves once it has answered so often. */
  async answered(times: number): Promise<void> {
    while (this.answers < times && !this.#isStopped) await new Promise<void>((resolve) => (this.#heard = resolve))
  }

  async kill(): Promise<void> {
    await this.#process.kill()
    await this.#over
  }

  /** After its present answer. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#over
    await this.#process.end()
  }
}
