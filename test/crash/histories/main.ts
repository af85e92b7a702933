/**
 * Generated histories: an unsynced past of a target and its neighbours, a publication, a power cut, the next run; and then a check of all
 * promises. A seed decides the histories; the program shrinks one that breaks a promise, and prints it with the command that plays it
 * again.
 *
 *     node dist/test/crash/histories/main.js [OPTIONS]
 *
 *   --where LIST      model (default), ext4, xfs, btrfs; the real ones as root, by forced shutdown, or by the log of their disks' writes:
 *                     ext4-log, xfs-log, btrfs-log
 *   --seed N          the first seed (default: HOLDFAST_SEED, or 1); each history has the next one
 *   --states N        on each of them, ends when so many disks have been judged
 *   --seconds N       ends then, too
 *   --lives N         in place of histories as many lives of two or three targets: calls of every kind, each judged by what readers say
 *   --history JSON    plays this one, from --seed
 *   --impatient       stops at the first that breaks something, and does not shrink it
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type FileSystem, missingForDisk } from '../../disk/disk.js'
import { enterPrivateMounts } from '../../disk/private-mounts.js'
import { Random } from '../../random.js'
import { type Effort, exploreOnModel } from './explore-model.js'
import { exploreByLog } from './explore-log.js'
import { exploreOnReal } from './explore-real.js'
import type { Explored } from './explored.js'
import { exploreLife } from './explore-life.js'
import { generate, type History, initialDisk, shrink, simpler } from './generate.js'
import { describedStep, drawLife, type Life, plainer } from './life.js'
import { described } from './operations.js'
import { LoggedDisks, ReplayedDisks } from './logged-disks.js'
import { ModelGround } from './model-ground.js'
import { RealDisks } from './real-disks.js'
import { RealGround } from './real-ground.js'

const { values } = parseArgs({
  options: {
    where: { type: 'string', default: 'model' },
    seed: { type: 'string', default: process.env.HOLDFAST_SEED ?? '1' },
    states: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '100000' },
    lives: { type: 'string' },
    history: { type: 'string' },
    impatient: { type: 'boolean', default: false },
  },
})
const effort: Effort = { instants: 12, states: 4, after: 6, recovered: 8 }

const fileSystems = ['ext4', 'xfs', 'btrfs'] as const satisfies readonly FileSystem[]
type Place = 'model' | FileSystem | `${FileSystem}-log`

function placeNamed(name: string): Place {
  const known: readonly Place[] = ['model', ...fileSystems, ...fileSystems.map((one) => `${one}-log` as const)]
  const found = known.find((place) => place === name)
  if (found === undefined) throw new Error(`--where knows ${known.join(', ')}, not ${name}`)
  return found
}

function fileSystemOf(place: Exclude<Place, 'model'>): FileSystem {
  return place.replace('-log', '') as FileSystem
}

const total = { passed: 0, failed: 0, skipped: 0 }

/** A history, or a life: how it is drawn, made shorter and told. */
interface Kind<Story> {
  readonly draw: (random: Random, where: 'model' | 'real') => Story
  readonly simpler: (story: Story) => Iterable<Story>
  readonly told: (story: Story) => readonly string[]
}

const histories: Kind<History> = { draw: generate, simpler, told: (history) => history.map(described) }
const lives: Kind<Life> = { draw: drawLife, simpler: plainer, told: (life) => life.map(describedStep) }

/** Draws and plays until there are enough of them, or of their states; prints what it was. */
async function all<Story>(
  place: Place,
  kind: Kind<Story>,
  explore: (story: Story, seed: number) => Promise<Explored>,
): Promise<void> {
  const began = performance.now()
  const seconds = (): number => (performance.now() - began) / 1000
  const counts = { histories: 0, states: 0, broken: 0 }
  const outcomes = new Map<string, number>()
  let seed = Number(values.seed)
  const isEnough = (): boolean =>
    values.lives === undefined ? counts.states >= Number(values.states) : counts.histories >= Number(values.lives)
  for (; !isEnough() && seconds() < Number(values.seconds); seed++) {
    const drawn = (): Story => kind.draw(new Random(seed), place === 'model' ? 'model' : 'real')
    const history = values.history === undefined ? drawn() : (JSON.parse(values.history) as Story)
    const explored = await explore(history, seed)
    counts.histories += 1
    counts.states += explored.states
    for (const outcome of explored.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (explored.faults.length > 0) {
      counts.broken += 1
      await report(place, kind, history, seed, explore, explored)
      if (values.impatient) break
    }
    if (values.history !== undefined) break
  }
  total.passed += counts.histories - counts.broken
  total.failed += counts.broken
  const said = Object.fromEntries([...outcomes].sort())
  console.log(JSON.stringify({ place, seed: Number(values.seed), ...counts, ...said, seconds: Math.round(seconds()) }))
}

async function report<Story>(
  place: Place,
  kind: Kind<Story>,
  story: Story,
  seed: number,
  explore: (story: Story, seed: number) => Promise<Explored>,
  explored: Explored,
): Promise<void> {
  let [fault] = explored.faults
  const breaks = async (candidate: Story): Promise<boolean> => {
    const [broken] = (await explore(candidate, seed)).faults
    fault = broken ?? fault
    return broken !== undefined
  }
  const shortest = values.impatient ? story : await shrink(story, kind.simpler, breaks)
  console.error(`VIOLATION ${place}, seed ${seed}: ${fault ?? ''}\n  ${kind.told(shortest).join('\n  ')}`)
  const ofLives = values.lives === undefined ? '' : '--lives 1 '
  console.error(`  play it again: ${ofLives}--where ${place} --seed ${seed} --history '${JSON.stringify(shortest)}'`)
}

async function allOnDisks(place: Exclude<Place, 'model'>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-histories-'))
  execFileSync('mount', ['-t', 'tmpfs', 'holdfast-histories', directory])
  try {
    if (isFileSystem(place)) await byShutdown(place, join(directory, 'disks'))
    else await byLog(place, join(directory, 'disks'))
  } finally {
    execFileSync('umount', ['--lazy', directory])
    rmSync(directory, { recursive: true, force: true })
  }
}

function isFileSystem(place: Place): place is FileSystem {
  return fileSystems.some((one) => one === place)
}

async function byShutdown(fileSystem: FileSystem, directory: string): Promise<void> {
  mkdirSync(directory)
  const disks = new RealDisks(fileSystem, directory)
  if (values.lives === undefined)
    await all(fileSystem, histories, (history, seed) => exploreOnReal(history, seed, disks))
  else {
    await all(fileSystem, lives, (life, seed) => {
      const ground = new RealGround(disks, (random) => disks.lose(random.pick(disks.losses)))
      ground.begin()
      return exploreLife(life, seed, ground)
    })
  }
  disks.close()
}

async function byLog(place: `${FileSystem}-log`, directory: string): Promise<void> {
  const fileSystem = fileSystemOf(place)
  const logged = await LoggedDisks.create(fileSystem, join(directory, 'logged'))
  const replayed = new ReplayedDisks(fileSystem, join(directory, 'replayed'))
  replayed.follow(await logged.endLog())
  await all(place, histories, (history, seed) => exploreByLog(history, seed, logged, replayed))
  replayed.close()
  await logged.close()
}

const places = values.where.split(',').map(placeNamed)
const real = places.filter((place) => place !== 'model')
const missing = real.length > 0 ? await missingForDisk([...new Set(real.map(fileSystemOf))]) : []
if (real.length > 0 && missing.length === 0) await enterPrivateMounts()
for (const place of places) {
  if (place === 'model' && values.lives !== undefined)
    await all(place, lives, (life, seed) => exploreLife(life, seed, new ModelGround(initialDisk())))
  else if (place === 'model') await all(place, histories, (history, seed) => exploreOnModel(history, seed, effort))
  else if (missing.length === 0) await allOnDisks(place)
  else {
    total.skipped += 1
    console.log(`skipped: histories on ${place} (they need ${missing.join(', ')})`)
  }
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exit(total.failed > 0 ? 1 : 0)
