/** Makes up histories from a seed, and shortens one that breaks a promise as far as it goes. */
import { posix } from 'node:path'
import type { Random } from '../../random.js'
import { ModelDisk, ModelError } from '../model/model-disk.js'
import { contentCount, keepsHistory, kindOf } from './contents.js'
import { mkdir, named, remove, rename, write } from './on-model.js'
import {
  type Kind,
  kinds,
  type Meanwhile,
  type Operation,
  operations,
  type Publication,
  onModel,
  type World,
} from './operations.js'
import { ownPrefix } from '../judge/names.js'
import { bystanders, initialDirectories, otherFileSystem, targets } from './places.js'
import { isAtOrAbove, parentOf, snapshotOfModel } from './snapshot.js'

/** Operations, the last of which is the publication to cut. */
export type History = readonly [...Operation[], Publication]

const attributes = { mode: 0o755, uid: 0, gid: 0, label: '', extended: '' }

/** Where every history begins: durable, and nothing published yet. */
export function initialDisk(): ModelDisk {
  const disk = new ModelDisk()
  disk.mountSecond(otherFileSystem, attributes)
  for (const path of initialDirectories) mkdir(disk, path)
  for (const path of bystanders) write(disk, path, textOfBystander(path))
  disk.syncAll()
  return disk
}

export function textOfBystander(path: string): string {
  return `${path} belongs to somebody else\n`
}

/** A world that only pretends publications: a generated history has to be possible, not true. */
class MadeUpWorld implements World {
  #disk = initialDisk()

  exists(path: string): boolean {
    try {
      return named(this.#disk, path).found !== undefined
    } catch (error) {
      if (error instanceof ModelError) return false
      throw error
    }
  }

  isDirectory(path: string): boolean {
    return path === '.' || (this.exists(path) && named(this.#disk, path).found?.type === 'directory')
  }

  /** Whether it can be played: on a real disk no link may lead out of the history's own directory. */
  play(operation: Operation): boolean {
    const before = this.#disk.fork()
    this.#play(operation)
    if (!leadsOut(this.#disk)) return true
    this.#disk = before
    return false
  }

  #play(operation: Operation): void {
    const publication = operation.do === 'killed' ? operation.publication : operation
    if (publication.do === 'publish' && publication.content === 'moved') {
      const [to = '', from = ''] = publication.targets
      this.#try(() => rename(this.#disk, from, to))
    } else if (publication.do === 'publish' && publication.content === 'none') {
      for (const target of publication.targets)
        for (const path of [target, `${ownPrefix(target)}.1`]) this.#try(() => remove(this.#disk, path))
    } else if (publication.do === 'publish') for (const target of publication.targets) this.#publish(target)
    else this.#try(() => onModel(this.#disk, operation))
  }

  #publish(target: string): void {
    const parents: string[] = []
    for (let above = posix.dirname(target); above !== '.'; above = posix.dirname(above)) parents.unshift(above)
    for (const parent of parents) this.#try(() => mkdir(this.#disk, parent))
    const make = (path: string): void => this.#try(() => write(this.#disk, path, ''))
    for (const ending of ['.lock', '.1']) make(ownPrefix(target) + ending)
    if (kindOf(target) === 'file') {
      make(target)
      return
    }
    for (const path of [target, `${target}/sub`]) this.#try(() => mkdir(this.#disk, path))
    make(`${target}/key`)
  }

  #try(change: () => void): void {
    try {
      change()
    } catch (error) {
      if (!(error instanceof ModelError)) throw error
    }
  }
}

/** Whether a link does that has been moved or copied to a place nearer to the root. */
function leadsOut(disk: ModelDisk): boolean {
  for (const [path, { type, data }] of snapshotOfModel(disk)) {
    if (type === 'symlink' && posix.join(parentOf(path), data).startsWith('..')) return true
  }
  return false
}

/** Where it is played: not everything can happen everywhere. */
export type Where = 'model' | 'real'

const drawn: Readonly<Record<Where, readonly Kind[]>> = {
  model: weighted((kind) => kind === 'sync' || kind === 'reboot' || operations[kind].act !== undefined),
  real: weighted(() => true),
}

/** Each kind as often as its weight says. */
function weighted(isPossible: (kind: Kind) => boolean): Kind[] {
  return kinds.filter(isPossible).flatMap((kind) => Array.from({ length: operations[kind].weight }, () => kind))
}

/** Most operations between two publications. */
const mostChanges = 4
/** How often something is drawn that the world has nothing for, before the drawing ends. */
const patience = 20

export function generate(random: Random, where: Where): History {
  const world = new MadeUpWorld()
  const past: Operation[] = []
  const take = (operation: Operation): void => {
    if (world.play(operation)) past.push(operation)
  }
  // A target has a history only where it is published again and again.
  const favourite = random.below(4) === 0 ? random.pick(targets.filter(keepsHistory)) : undefined
  const rounds = favourite === undefined ? random.pick([0, 1, 1, 1, 2]) : 2 + random.below(2)
  for (let round = 0; round < rounds; round++) {
    const publication = drawPublication(random, world, past, favourite)
    const isKilled = random.below(5) === 0
    take(isKilled ? { do: 'killed', publication, before: 1 + random.below(60) } : publication)
    for (const change of drawChanges(random, world, where)) take(change)
  }
  if (rounds === 0) for (const change of drawChanges(random, world, where)) take(change)
  return [...past, drawPublication(random, world, past, favourite)]
}

function* drawChanges(random: Random, world: MadeUpWorld, where: Where): Generator<Operation> {
  const count = 1 + random.below(mostChanges)
  for (let made = 0, tries = 0; made < count && tries < patience; tries++) {
    const operation = operations[random.pick(drawn[where])].draw(random, world)
    if (operation === undefined) continue
    made++
    yield operation
  }
}

/** Mostly at a path that was published before, or moved or copied to; mostly content that was published before, too. */
function drawPublication(
  random: Random,
  world: World,
  played: readonly Operation[],
  favourite: string | undefined,
): Publication {
  const publications = played.flatMap((one) =>
    one.do === 'publish' ? [one] : one.do === 'killed' ? [one.publication] : [],
  )
  const there = targets.filter((target) => world.exists(target))
  const pool = there.length > 0 && random.below(4) > 0 ? there : targets
  const first = favourite !== undefined && random.below(4) > 0 ? favourite : random.pick(pool)
  const other = random.pick(targets)
  const isBatch = random.below(4) === 0 && !isAtOrAbove(first, other) && !isAtOrAbove(other, first)
  const before = publications.map(({ content }) => content).filter((content) => typeof content === 'number')
  const isThere = there.includes(first) && before.length > 0
  const isRemoval = isThere && random.below(5) === 0
  const isRollback = isThere && keepsHistory(first) && random.below(3) > 0 && before.length > 1
  const isSame = before.length > 0 && first !== favourite && random.below(5) < 3
  const published = isSame ? random.pick(before) : random.below(contentCount)
  const goal = random.below(5) === 0 ? moveFrom(random, world, first) : undefined
  if (isThere && goal !== undefined) return { do: 'publish', targets: [goal, first], content: 'moved', careful: false }
  const content = isRemoval ? 'none' : isRollback ? 'earlier' : published
  const meanwhile = random.below(5) === 0 ? drawMeanwhile(random, world, first) : undefined
  const asked = isBatch && content !== 'earlier' ? [first, other] : [first]
  const careful = random.below(3) === 0
  // An adoption has no form of links.
  const adopting =
    random.below(4) === 0 && typeof content === 'number' && asked.every((one) => kindOf(one) === 'directory')
  const rest = { ...(adopting && { adopting }), ...(meanwhile && { meanwhile }) }
  return { do: 'publish', targets: asked, content, careful, ...rest }
}

/** Another path of the same form, mostly a free one. */
function moveFrom(random: Random, world: World, from: string): string | undefined {
  const others = targets.filter((one) => one !== from && posix.basename(one) === posix.basename(from))
  const free = others.filter((one) => !world.exists(one))
  const pool = random.below(4) > 0 ? free : others
  return kindOf(from) === 'file' || pool.length === 0 ? undefined : random.pick(pool)
}

/** Another program moves a directory above the target; or adds an entry to the target, or changes one. */
function drawMeanwhile(random: Random, world: World, target: string): Meanwhile | undefined {
  const text = `written meanwhile, ${random.below(1000)}\n`
  const parent = posix.dirname(target)
  const moves = [parent, posix.dirname(parent)].filter((path) => path !== '.' && path !== 'o' && world.exists(path))
  if (random.below(2) === 0 && moves.length > 0)
    return { do: 'rename', from: random.pick(moves), to: 'b/moved-meanwhile' }
  if (kindOf(target) !== 'directory' || !world.exists(target)) return undefined
  return { do: 'write', path: `${target}/${random.pick(['key', 'theirs', 'sub/theirs'])}`, text }
}

/** The shortest one that `breaks` still answers for: what `simpler` leaves out is left out as long as that goes. */
export async function shrink<Story>(
  story: Story,
  simpler: (story: Story) => Iterable<Story>,
  breaks: (story: Story) => Promise<boolean>,
): Promise<Story> {
  let shortest = story
  for (let tried = false; !tried;) {
    tried = true
    for (const candidate of simpler(shortest)) {
      if (!(await breaks(candidate))) continue
      shortest = candidate
      tried = false
      break
    }
  }
  return shortest
}

function isDivisible({ targets: asked, content }: Publication): boolean {
  return asked.length > 1 && content !== 'moved'
}

/** Each operation is left out, each batch divided. */
export function* simpler(history: History): Generator<History> {
  const before = history.slice(0, -1)
  const last = history[history.length - 1] as Publication
  for (const index of before.keys()) yield [...before.filter((_, other) => other !== index), last]
  if (isDivisible(last)) for (const target of last.targets) yield [...before, { ...last, targets: [target] }]
  for (const [index, operation] of before.entries()) {
    if (operation.do === 'publish' && isDivisible(operation)) {
      for (const target of operation.targets) {
        yield [...before.with(index, { ...operation, targets: [target] }), last]
      }
    }
    if (operation.do === 'killed') yield [...before.with(index, operation.publication), last]
  }
  const { meanwhile, ...undisturbed } = last
  if (meanwhile) yield [...before, undisturbed]
  if (last.careful) yield [...before, { ...last, careful: false }]
}
