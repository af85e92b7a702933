/**
 * A pair whose every write and flush is logged, in one log and so in one order; and a second pair, which becomes what a power cut in any
 * instant of that log could have left.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FileSystem } from '../../disk/disk.js'
import { type LogRecord, readLog } from '../../disk/write-log.js'
import { type Choice, drawnChoice } from '../power/cuts.js'
import { Image } from '../power/image.js'
import { LoggedDisk, sizes } from '../power/logged-disk.js'
import { LoopMount } from '../power/loop-mount.js'
import type { Random } from '../../random.js'
import { MountedPair } from './mounted-pair.js'

type Two<Item> = readonly [Item, Item]

/** Where the second disk begins in the log of both. */
const secondBase = 2 ** 40

export class LoggedDisks extends MountedPair {
  readonly mountPoints: Two<string>
  #log: string | undefined
  #logs = 0

  private constructor(
    readonly fileSystem: FileSystem,
    readonly directory: string,
    readonly disks: Two<LoggedDisk>,
  ) {
    super()
    this.mountPoints = [disks[0].mountPoint, disks[1].mountPoint]
  }

  static async create(fileSystem: FileSystem, directory: string): Promise<LoggedDisks> {
    mkdirSync(directory, { recursive: true })
    const first = await LoggedDisk.create(fileSystem, directory)
    const second = await LoggedDisk.create(fileSystem, directory)
    await second.disk.ask(`log-base ${secondBase}`)
    const disks = new LoggedDisks(fileSystem, directory, [first, second])
    await disks.startLog()
    for (const { disk } of disks.disks) await disk.format(fileSystem)
    return disks
  }

  /** Nothing may be mounted, so that nothing is written between two logs. */
  async startLog(): Promise<void> {
    const name = `${++this.#logs}`
    for (const disk of this.disks) this.#log = await disk.logTo(name)
  }

  mark(text: string): void {
    this.disks[0].mark(text)
  }

  /** Ends the log, and answers its records. Without any mount. */
  async endLog(): Promise<LogRecord[]> {
    for (const { disk } of this.disks) await disk.ask('log off')
    const path = this.#log ?? ''
    const records = [...readLog(path)]
    rmSync(path)
    return records
  }

  mount(): void {
    for (const { disk, mountPoint } of this.disks) execFileSync('mount', [disk.device, mountPoint])
  }

  async close(): Promise<void> {
    for (const { disk } of this.disks) await disk.destroy()
  }
}

/** The disks after a power cut: of each, the certain writes, and of the rest the lucky ones. */
export interface PairCut {
  /** Index in the log of the record before which the power goes. */
  readonly at: number
  readonly disks: Two<Choice & { readonly certain: number }>
}

/** The records of one disk, at the places that they have in the log of both. */
function recordsOf(records: readonly LogRecord[], disk: 0 | 1): LogRecord[] {
  return records.map((record) => {
    const isOurs = record.kind !== 'mark' && record.offset >= secondBase === (disk === 1)
    return isOurs ? { ...record, offset: record.offset - disk * secondBase } : none
  })
}

const none: LogRecord = { kind: 'mark', number: 0, offset: 0, length: 0, data: Buffer.alloc(0) }

/** So many cuts between two indices, in the order of the log; mostly just before a flush ends, where most is uncertain. */
export function drawCuts(
  records: readonly LogRecord[],
  [from, to]: Two<number>,
  count: number,
  random: Pick<Random, 'below'>,
): PairCut[] {
  const own = [recordsOf(records, 0), recordsOf(records, 1)] as const
  const flushes = records.flatMap(({ kind: what }, index) =>
    what === 'flush-ended' && index > from && index <= to ? [index] : [],
  )
  const instants = Array.from({ length: count }, () => {
    const flush = random.below(4) > 0 ? flushes[random.below(flushes.length)] : undefined
    return flush ?? from + 1 + random.below(to - from)
  })
  return instants
    .sort((a, b) => a - b)
    .map((at) => ({ at, disks: [cutOf(own[0], at, random), cutOf(own[1], at, random)] as const }))
}

function cutOf(own: readonly LogRecord[], at: number, random: Pick<Random, 'below'>): PairCut['disks'][number] {
  const begun = new Map<number, number>()
  let certain = 0
  for (const [index, { kind: what, number }] of own.slice(0, at).entries()) {
    if (what === 'flush-begun') begun.set(number, index)
    if (what === 'flush-ended') certain = Math.max(certain, begun.get(number) ?? 0)
  }
  const uncertain: number[] = []
  for (let index = certain; index < at; index++) {
    if (own[index]?.kind === 'write' || own[index]?.kind === 'discard') uncertain.push(index)
  }
  return { certain, ...drawnChoice(own, uncertain, random) }
}

export class ReplayedDisks extends MountedPair {
  readonly mountPoints: Two<string>
  readonly #images: Two<Image>
  readonly #loops: Two<LoopMount>

  constructor(
    readonly fileSystem: FileSystem,
    directory: string,
  ) {
    super()
    this.mountPoints = [join(directory, 'first'), join(directory, 'second')]
    const made = this.mountPoints.map((mountPoint) => {
      const path = `${mountPoint}.image`
      mkdirSync(mountPoint, { recursive: true })
      writeFileSync(path, '')
      truncateSync(path, sizes[fileSystem])
      return { image: new Image(path, sizes[fileSystem], []), loop: new LoopMount(path, mountPoint) }
    }) as [{ image: Image; loop: LoopMount }, { image: Image; loop: LoopMount }]
    this.#images = [made[0].image, made[1].image]
    this.#loops = [made[0].loop, made[1].loop]
  }

  /** The earlier records are all on the disks; these come next. */
  follow(records: readonly LogRecord[]): void {
    for (const disk of [0, 1] as const) this.#images[disk].continueWith(recordsOf(records, disk))
  }

  /** Cuts come in the order of the log. Nothing may be mounted. */
  become({ disks }: PairCut): void {
    for (const disk of [0, 1] as const) this.#images[disk].become(disks[disk])
  }

  protected mount(): void {
    for (const loop of this.#loops) loop.mount(this.fileSystem)
  }

  /** Those that are mounted: of a file system that is lost, none is. */
  override unmount(): void {
    for (const mountPoint of this.mountPoints) {
      execFileSync('sh', ['-c', '! mountpoint --quiet "$1" || umount --recursive "$1"', 'sh', mountPoint])
    }
  }

  close(): void {
    for (const loop of this.#loops) loop.close()
    for (const image of this.#images) image.close()
  }
}
