/**
 * A replacement on a disk that fails: the n-th write or flush is answered with EIO, once or from then on. Checked at once: what the
 * program says of the failure is true, and a restart after a publication of unknown durability never says that nothing is to
 * do. Then the disk is healed and mounted again, in every state that it may be in, and examined like after a power cut:
 * `published: false` means that the old content is there for certain.
 */
import { mkdtempSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Answer } from './actor-program.js'
import { publishBesideFailingFsync } from './bystander.js'
import { canHold } from './held-actor.js'
import { LoggedDisk, sizes } from './logged-disk.js'
import { difference } from './observe.js'
import { LineProcess } from './process-lines.js'
import { Random } from '../../random.js'
import type { RunContext } from './record.js'
import type { Depth, Recording } from './recording.js'
import { orderOf } from './scene.js'
import type { Target } from './targets.js'

interface Case {
  readonly target: Target
  /** Its first content; the program publishes the next one to the failing disk. */
  readonly from: 0 | 1
}

export interface Fault extends Case {
  readonly what: 'write' | 'flush'
  /** From 1. 0: the flush of another process's fsync, between the exchange and barrier 2. */
  readonly at: number
  readonly times: number
}

/** More operations than any run makes. */
const forGood = 1_000_000
/** How many writes fail, each once and for good. */
const sampledWrites: Record<Depth, number> = { few: 2, default: 2, exhaustive: Infinity }

const cases: readonly Case[] = [
  { target: { path: 'certs/target', kind: 'directory', content: 'many' }, from: 1 },
  { target: { path: 'certs/first', kind: 'directory', content: 'few' }, from: 0 },
  { target: { path: 'volume/target', kind: 'symlink', content: 'few' }, from: 1 },
  { target: { path: 'manifests/pod.yaml', kind: 'file', content: 'few' }, from: 1 },
]

export class FailingDisk {
  readonly #place: string
  #setUp = ''
  #image = ''
  /** Published the first content and has nothing to forget; a restart is another process. */
  #actor: LineProcess | undefined
  #successor: LineProcess | undefined
  #number = 0

  private constructor(
    readonly disk: LoggedDisk,
    readonly context: RunContext,
  ) {
    this.#place = disk.directory
  }

  static async create(context: RunContext): Promise<FailingDisk> {
    const place = mkdtempSync(join(context.directory, 'failing-'))
    const failing = new FailingDisk(await LoggedDisk.create(context.fileSystem, place), context)
    try {
      await failing.#prepare()
      return failing
    } catch (error) {
      await failing.destroy()
      throw error
    }
  }

  async destroy(): Promise<void> {
    await this.#actor?.kill()
    await this.#successor?.kill()
    await this.disk.disk.destroy()
  }

  /** The first content, published and unmounted in good order: where every run begins. */
  async #prepare(): Promise<void> {
    const { disk } = this.disk
    this.#setUp = await this.disk.logTo('set-up')
    await this.disk.prepare(cases.map(({ target }) => target))
    this.#actor = LineProcess.node('actor-program')
    this.#successor = LineProcess.node('actor-program')
    for (const { target, from } of cases) {
      if (from === 0) continue
      const answer = (await this.#actor.ask(orderOf(this.disk, [target], 1))) as Answer
      if (answer.some((result) => 'error' in result)) throw new Error(`set-up: ${JSON.stringify(answer)}`)
    }
    await disk.unmount()
    await disk.ask('log off')
    this.#image = join(this.#place, 'set-up.image')
    await disk.ask(`save ${this.#image}`)
  }

  /** The faults that a replacement can meet: each flush, some of the writes, and the flush of a bystander. */
  async faults(): Promise<Fault[]> {
    const { depth, seed, fileSystem } = this.context
    const { disk } = this.disk
    const random = Random.for(seed, `faults on ${fileSystem}`)
    const faults: Fault[] = []
    const add = (one: Case, what: Fault['what'], at: number): void => {
      faults.push({ ...one, what, at, times: 1 }, { ...one, what, at, times: forGood })
    }
    for (const one of depth === 'few' ? cases.slice(0, 2) : cases) {
      await this.#begin('counting')
      await disk.ask('reset')
      await this.#actor?.ask(orderOf(this.disk, [one.target], one.from + 1))
      const { writes, flushes } = await disk.counts()
      await disk.unmount()
      for (let at = 1; at <= flushes; at++) add(one, 'flush', at)
      for (let at = 1; at <= writes; at++) {
        if (random.next() * writes < sampledWrites[depth]) add(one, 'write', at)
      }
      if (canHold()) add(one, 'flush', 0)
    }
    return faults
  }

  /** One replacement that meets the fault; problems that show at once, and the recording to examine. */
  async run(fault: Fault): Promise<{ recording: Recording; problem: string | undefined }> {
    const { fileSystem, seed, depth } = this.context
    const { disk } = this.disk
    const note = describe(fault)
    const log = await this.#begin(`fault-${++this.#number}`)
    await disk.ask('reset')
    let problem: string | undefined
    try {
      const answer = await this.#meet(fault)
      problem = this.#judge(fault, answer)
      if (wasVisible(answer)) problem ??= await this.#restart(fault)
    } finally {
      await disk.ask('reset')
      await disk.unmount()
    }
    const recording: Recording = {
      fileSystem,
      scenario: 'failing disk',
      size: sizes[fileSystem],
      logs: [this.#setUp, log],
      cuts: 'said',
      seed,
      depth,
      note,
    }
    return { recording, problem }
  }

  async #begin(name: string): Promise<string> {
    const { disk } = this.disk
    await disk.ask('log off')
    await disk.load(this.#image)
    const log = await this.disk.logTo(name)
    await disk.mount()
    return log
  }

  async #meet({ target, from, what, at, times }: Fault): Promise<Answer> {
    const order = orderOf(this.disk, [target], from + 1)
    if (at === 0) return publishBesideFailingFsync(this.disk, order, times)
    await this.disk.disk.ask(`fail ${what} ${at} ${times}`)
    return (await this.#actor?.ask(order)) as Answer
  }

  /**
   * The visible content must be the one that the program reported. Not where the file system has given up: an xfs that has shut down shows
   * nothing, and a btrfs that has aborted forgets the entries of directories that it had not written.
   */
  #judge({ target, from }: Case, [result]: Answer): string | undefined {
    if (!result) return 'no answer'
    const visible = 'error' in result && !result.error.published ? from : from + 1
    const { mountPoint } = this.disk
    try {
      utimesSync(mountPoint, new Date(), new Date())
    } catch {
      return undefined
    }
    const found = difference(mountPoint, target, visible)
    return found === undefined ? undefined : `the program said ${JSON.stringify(result)}, but of ${visible}: ${found}`
  }

  async #restart({ target, from }: Case): Promise<string | undefined> {
    // A file system takes a moment to find out that it is broken; the worst is a restart at once, and one later.
    for (const wait of [0, 20]) {
      await delay(wait)
      const [result] = (await this.#successor?.ask(orderOf(this.disk, [target], from + 1))) as Answer
      if (!result) return 'no answer'
      if (!('error' in result)) {
        return result.outcome === 'unchanged' ? 'a restart after a failed barrier says unchanged' : undefined
      }
    }
    return undefined
  }
}

function wasVisible([result]: Answer): boolean {
  return result !== undefined && 'error' in result && result.error.published
}

function describe({ target, from, what, at, times }: Fault): string {
  const when = `${times === 1 ? 'once' : 'for good'}, while ${target.path} is ${from === 0 ? 'created' : 'replaced'}`
  if (at === 0) return `a flush of another process's fsync between exchange and barrier 2 fails, ${when}`
  return `${what} ${at} fails, ${when}`
}
