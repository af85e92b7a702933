/** Golden disks, drawn from what the engines leave: after a kill, after a power cut, and after the end of a call. */
import { mkdtempSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { Random } from '../../random.js'
import { kindOf, generationsKept, keepsHistory } from '../histories/contents.js'
import { exploreLife } from '../histories/explore-life.js'
import { generate, initialDisk } from '../histories/generate.js'
import { extendedAttribute } from '../histories/libc.js'
import { drawLife } from '../histories/life.js'
import { ModelGround } from '../histories/model-ground.js'
import { otherFileSystem, targets as places } from '../histories/places.js'
import { clockStart, playPast } from '../histories/play.js'
import { entriesAt } from '../judge/directory.js'
import { isKind, ownPrefix } from '../judge/names.js'
import { access, byDefault, decoded } from '../model/access-lists.js'
import { canonical } from '../model/content.js'
import { eachChoice } from '../model/choices.js'
import { prepared } from '../model/explore.js'
import { Explorer } from '../model/explorer.js'
import type { Inode } from '../model/inode.js'
import { ModelDisk, rootInode } from '../model/model-disk.js'
import type { Instant } from '../model/play.js'
import { powerCut } from '../model/power-cut.js'
import { withoutTargets } from '../model/scenario.js'
import { scenarios } from '../model/scenarios.js'
import { run } from '../model/static-pods/explore.js'
import { rollouts } from '../model/static-pods/rollouts.js'
import { podStories } from '../model/static-pods/stories.js'
import { crashStates } from '../power/cuts.js'
import { Image } from '../power/image.js'
import { LoopMount } from '../power/loop-mount.js'
import { record } from '../power/record.js'
import { readRecords } from '../power/recording.js'
import { scenarios as powerScenarios } from '../power/scenarios.js'
import { bootId, type GoldenDisk, type GoldenEntry, type GoldenTarget, signed } from './disk.js'

/** How many of each. */
interface Extent {
  /** Kills and power cuts of each scenario, and of each command on a node with a static pod. */
  readonly each: number
  readonly histories: number
  readonly lives: number
  /** States of each scenario of power cuts. */
  readonly power: number
}

interface Found {
  readonly how: string
  readonly disk: ModelDisk
}

const isRecord = isKind('record')

/** Nothing is mounted but the second file system: what is mounted elsewhere is the kernel's, and no disk's. */
const isPlain = (disk: ModelDisk): boolean => disk.mountsBelow(rootInode).every((path) => path === otherFileSystem)

/** So many of these instants, after a kill and after a power cut in turn, and the disk after the end. */
function ended(instants: readonly Instant[], end: ModelDisk, count: number, random: Random): Found[] {
  const found: Found[] = [{ how: 'ended', disk: end }]
  const pool = random.shuffled(instants)
  for (const [index, { what, disk }] of pool.slice(0, count).entries()) {
    if (index % 2 === 0) found.push({ how: `killed after ${what}`, disk })
    else found.push({ how: `power cut after ${what}`, disk: cut(disk, random) })
  }
  return found
}

function cut(disk: ModelDisk, random: Random): ModelDisk {
  const survivors: ModelDisk[] = []
  eachChoice(6, random, (choose) => survivors.push(powerCut(disk, choose)))
  return random.pick(survivors)
}

export class Draw {
  readonly disks: GoldenDisk[] = []
  readonly #random: Random
  readonly #seen = new Set<string>()

  constructor(
    readonly seed: number,
    readonly extent: Extent,
  ) {
    this.#random = new Random(seed)
  }

  async all(): Promise<readonly GoldenDisk[]> {
    await this.#scenarios()
    await this.#pods()
    await this.#histories()
    await this.#lives()
    await this.#power()
    return this.disks
  }

  #add(
    name: string,
    { how, disk }: Found,
    now: number,
    targets: (entries: readonly GoldenEntry[]) => readonly GoldenTarget[],
  ): boolean {
    const key = canonical(disk)
    if (this.#seen.has(key) || !isPlain(disk)) return false
    this.#seen.add(key)
    const entries = entriesOfModel(disk)
    const directories = entries.filter(({ type }) => type === 'directory')
    // No file system leaves a directory with two names.
    if (new Set(directories.map(({ inode }) => inode)).size < directories.length) return false
    this.disks.push({ name: `${name}: ${how}`, now, targets: targets(entries), entries })
    return true
  }

  async #scenarios(): Promise<void> {
    for (const scenario of scenarios) {
      const explorer = new Explorer(scenario, this.seed, false)
      const start = await prepared(explorer)
      const disk = start.disk.fork()
      const played = await explorer.play({ ...start, disk }, scenario.step, 'step', {
        record: true,
        rollback: scenario.rollback,
      })
      if (explorer.broken.size > 0) throw new Error(`${scenario.name}: ${[...explorer.broken.keys()].join('; ')}`)
      for (const found of ended(played.instants, disk, this.extent.each, this.#random))
        this.#add(`model: ${scenario.name}`, found, clockStart, () =>
          scenario.targets.map(({ path, form, history }) => ({
            path,
            form,
            ...(history !== undefined && { history }),
          })),
        )
    }
  }

  async #pods(): Promise<void> {
    const explorer = new Explorer(withoutTargets(''), 1, false)
    for (const { name, prepare, command } of [...podStories, ...rollouts]) {
      const disk = new ModelDisk()
      await prepare(disk)
      const { instants } = await run(explorer, disk, command, { record: true })
      for (const found of ended(instants, disk, this.extent.each / 2, this.#random))
        this.#add(`model: ${name}`, found, clockStart, () => [])
    }
  }

  async #histories(): Promise<void> {
    for (let seed = this.seed, found = 0; found < this.extent.histories; seed++) {
      const history = generate(new Random(seed), 'model')
      const ground = new ModelGround(initialDisk())
      await playPast(ground, history)
      const last = history[history.length - 1]
      if (last?.do !== 'publish') throw new Error('a history ends with a publication')
      const instants: Instant[] = []
      const { disk } = ground
      disk.changed = (what) => instants.push({ what, disk: disk.fork() })
      await ground.publish(last)
      disk.changed = undefined
      for (const one of ended(instants, disk, 2, this.#random).slice(1))
        if (this.#add(`history ${seed}`, one, clockStart, targetsBelow)) found += 1
    }
  }

  async #lives(): Promise<void> {
    for (let seed = this.seed, found = 0; found < this.extent.lives; seed++) {
      const ground = new KeepingGround(initialDisk())
      await exploreLife(drawLife(new Random(seed)), seed, ground)
      for (const { disk, now } of this.#random.shuffled(ground.left).slice(0, 2)) {
        const isCut = this.#random.below(3) === 0
        const one = isCut ? { how: 'power cut', disk: cut(disk, this.#random) } : { how: 'ended', disk }
        if (this.#add(`life ${seed}`, one, now, targetsBelow)) found += 1
      }
    }
  }

  /** States of a real ext4, of which each scenario's log is cut. As root. */
  async #power(): Promise<void> {
    const fileSystem = 'ext4'
    for (const scenario of powerScenarios) {
      if (!powers.has(scenario.name)) continue
      const directory = mkdtempSync('/tmp/holdfast-golden-')
      const plan = { fileSystem, directory, seed: this.seed, depth: 'default' } as const
      const recording = await record(scenario, plan)
      const records = readRecords(recording)
      const states = [...crashStates(records, recording, new Random(this.seed))]
      const drawn = new Set(this.#random.shuffled([...states.keys()]).slice(0, this.extent.power))
      const file = join(directory, 'image')
      const mountPoint = join(directory, 'state')
      mkdirSync(mountPoint)
      writeFileSync(file, '')
      const image = new Image(file, recording.size, records.records)
      image.become({ certain: 0, lucky: [], sectors: undefined })
      const device = new LoopMount(file, mountPoint)
      for (const [index, state] of states.entries()) {
        if (!drawn.has(index)) continue
        image.become(state)
        device.mount(fileSystem)
        const entries = entriesOfDirectory(mountPoint)
        device.unmount()
        const targets = scenario.targets.map(({ path, kind }): GoldenTarget => {
          const form = kind === 'directory' ? 'exchange' : kind === 'symlink' ? kind : 'file'
          return { path: `/${path}`, form }
        })
        this.disks.push({ name: `power: ${scenario.name}: cut ${index}`, now: Date.now(), targets, entries })
      }
      device.close()
      image.close()
      rmSync(directory, { recursive: true })
    }
  }
}

/** Those that the other engines do not have, with contents that are small. */
const powers: ReadonlySet<string> = new Set(['history and rollback', 'removal', 'adoption', 'relocation'])

/** Keeps what each run of the program has left. */
class KeepingGround extends ModelGround {
  readonly left: { disk: ModelDisk; now: number }[] = []
  #last = ''

  override async run<T>(
    work: (fs: FileSystem, base: string) => Promise<T>,
    before?: (call: string) => void | Promise<void>,
  ): Promise<T> {
    const answer = await super.run(work, before)
    const key = canonical(this.disk)
    if (key !== this.#last) this.left.push({ disk: this.disk.fork(), now: this.now })
    this.#last = key
    return answer
  }
}

/** What histories publish where something is, or its record. */
function targetsBelow(entries: readonly GoldenEntry[]): GoldenTarget[] {
  const paths = new Set(entries.map(({ path }) => path))
  const recorded = (path: string): string =>
    entries.find((one) => one.path.startsWith(`${ownPrefix(path)}.`) && isRecord(posix.basename(one.path)))?.data ?? ''
  return places
    .filter((path) => paths.has(path) || recorded(path) !== '')
    .map((path) => {
      const kind = kindOf(path)
      const [, movedFrom] = /"relocation":\{"from":"([^"]+)"/.exec(recorded(path)) ?? []
      return {
        path: `/${path}`,
        form: kind === 'directory' ? 'exchange' : kind === 'links' ? 'symlink' : kind,
        ...((keepsHistory(path) || movedFrom !== undefined) && { history: generationsKept }),
        ...(movedFrom !== undefined && { movedFrom }),
      }
    })
}

function entriesOfModel(disk: ModelDisk): GoldenEntry[] {
  const entries: GoldenEntry[] = []
  const numbers = new Set<number>()
  const walk = ({ number }: Inode, directory: string): void => {
    for (const name of disk.inode(number).now.entries.keys()) {
      const found = disk.child(number, name)
      if (found === undefined) continue
      const { type, now } = found
      const { mode, uid, gid, label, extended } = now.attributes
      const attributes = {
        ...Object.fromEntries(decoded(extended)),
        ...(label !== '' && { 'security.selinux': label }),
      }
      const path = posix.join(directory, name)
      const data = type === 'directory' ? {} : { data: now.data }
      entries.push({
        path,
        type,
        mode,
        uid,
        gid,
        inode: found.number,
        ...data,
        ...(Object.keys(attributes).length > 0 && { attributes }),
      })
      numbers.add(found.number)
      if (type === 'directory') walk(found, path)
    }
  }
  walk(disk.inode(rootInode), '')
  return withSigns(entries, `boot-${disk.boot}`, (number, birth, near) => {
    // Numbers are those of a device; the model's birth is the next number, which no other device has.
    const device = near >= 2 ** 20 ? 2 ** 20 : 0
    const inode = birth === undefined ? Number(number) + device : Number(birth) - 1
    return inode === rootInode || numbers.has(inode) ? inode : undefined
  })
}

function entriesOfDirectory(root: string): GoldenEntry[] {
  const births = new Map<string, number>()
  const entries = [...entriesAt(root)].flatMap(([path, { identity, data, ...entry }]): GoldenEntry[] => {
    const [, inode = ''] = identity.split(':')
    const at = join(root, path)
    births.set(`${inode} ${lstatSync(at, { bigint: true }).birthtimeNs}`, Number(inode)).set(inode, Number(inode))
    if (path === '' || path.startsWith('lost+found')) return []
    const lists = [access, byDefault].flatMap((name) => {
      const value = entry.type === 'symlink' ? undefined : extendedAttribute(at, name)
      return value === undefined ? [] : [[name, value]]
    })
    return [
      {
        path,
        ...entry,
        inode: Number(inode),
        ...(entry.type !== 'directory' && { data }),
        ...(lists.length > 0 && { attributes: Object.fromEntries(lists) as Record<string, string> }),
      },
    ]
  })
  const drawn = withSigns(entries, '', (number, birth) =>
    births.get(birth === undefined ? number : `${number} ${birth}`),
  )
  // The cut ended the boot that wrote the records: it is over on the machine that draws them, too.
  return drawn.map((entry) =>
    entry.data === undefined
      ? entry
      : { ...entry, data: entry.data.replaceAll(`"boot":"${bootId}"`, '"boot":"boot-1"') },
  )
}

/** Records with signs in the place of numbers. */
function withSigns(
  entries: readonly GoldenEntry[],
  boot: string,
  inodeOf: (number: string, birth: string | undefined, near: number) => number | undefined,
): GoldenEntry[] {
  return entries.map((entry) => {
    const { path, data, inode } = entry
    if (data === undefined || !isRecord(posix.basename(path))) return entry
    return { ...entry, data: signed(data, boot, (number, birth) => inodeOf(number, birth, inode)) }
  })
}
