/**
 * Generated histories: an unsynced past of a target and of what is around it, a publication, a power cut, the next run; and then all
 * that is promised. Histories are drawn from a seed; one that breaks a promise is shrunk, and printed with how to play it again.
 *
 *     node dist/test/crash/histories/main.js [OPTIONS]
 *
 *   --where LIST      model (default), ext4, xfs, btrfs; the real ones as root
 *   --seed N          the first seed; each history has the next one
 *   --states N        on each of them, ends when so many disks have been judged
 *   --seconds N       ends then, too
 *   --history JSON    plays this one, from --seed
 *   --impatient       stops at the first that breaks something
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type FileSystem, missingForDisk } from '../../disk/disk.js'
import { enterPrivateMounts } from '../../disk/private-mounts.js'
import { Random } from '../model/choices.js'
import { type Effort, exploreOnModel } from './explore-model.js'
import { exploreOnReal } from './explore-real.js'
import type { Explored } from './explored.js'
import { generate, type History, shrink } from './generate.js'
import { described } from './operations.js'
import { RealDisks } from './real-disks.js'
import { RealGround } from './real-ground.js'

const { values } = parseArgs({
  options: {
    where: { type: 'string', default: 'model' },
    seed: { type: 'string', default: '1' },
    states: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '100000' },
    history: { type: 'string' },
    impatient: { type: 'boolean', default: false },
  },
})
const effort: Effort = { instants: 12, states: 4, after: 6, recovered: 8 }

type Place = 'model' | FileSystem

function placeNamed(name: string): Place {
  if (name === 'model' || name === 'ext4' || name === 'xfs' || name === 'btrfs') return name
  throw new Error(`--where knows model, ext4, xfs and btrfs, not ${name}`)
}

const total = { passed: 0, failed: 0, skipped: 0 }

/** Draws and plays until there are enough states; prints what it was. */
async function all(place: Place, explore: (history: History, seed: number) => Promise<Explored>): Promise<void> {
  const began = performance.now()
  const seconds = (): number => (performance.now() - began) / 1000
  const counts = { histories: 0, states: 0, broken: 0 }
  const outcomes = new Map<string, number>()
  let seed = Number(values.seed)
  for (; counts.states < Number(values.states) && seconds() < Number(values.seconds); seed++) {
    const drawn = (): History => generate(new Random(seed), place === 'model' ? 'model' : 'real')
    const history = values.history === undefined ? drawn() : (JSON.parse(values.history) as History)
    const explored = await explore(history, seed)
    counts.histories += 1
    counts.states += explored.states
    for (const outcome of explored.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (explored.faults.length > 0) {
      counts.broken += 1
      await report(place, history, seed, explore, explored)
      if (values.impatient) break
    }
    if (values.history !== undefined) break
  }
  total.passed += counts.histories - counts.broken
  total.failed += counts.broken
  const said = Object.fromEntries([...outcomes].sort())
  console.log(JSON.stringify({ place, seed: Number(values.seed), ...counts, ...said, seconds: Math.round(seconds()) }))
}

async function report(
  place: Place,
  history: History,
  seed: number,
  explore: (history: History, seed: number) => Promise<Explored>,
  explored: Explored,
): Promise<void> {
  let [fault] = explored.faults
  const shortest = await shrink(history, async (candidate) => {
    const [broken] = (await explore(candidate, seed)).faults
    fault = broken ?? fault
    return broken !== undefined
  })
  console.error(`VIOLATION ${place}, seed ${seed}: ${fault ?? ''}\n  ${shortest.map(described).join('\n  ')}`)
  console.error(`  play it again: --where ${place} --seed ${seed} --history '${JSON.stringify(shortest)}'`)
}

async function allOnDisks(fileSystem: FileSystem): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-histories-'))
  execFileSync('mount', ['-t', 'tmpfs', 'holdfast-histories', directory])
  mkdirSync(join(directory, 'disks'))
  const disks = new RealDisks(fileSystem, join(directory, 'disks'))
  try {
    disks.mount()
    const ground = new RealGround(disks)
    await all(fileSystem, (history, seed) => exploreOnReal(history, seed, ground))
  } finally {
    disks.close()
    execFileSync('umount', ['--lazy', directory])
    rmSync(directory, { recursive: true, force: true })
  }
}

const places = values.where.split(',').map(placeNamed)
const real = places.filter((place) => place !== 'model')
const missing = real.length > 0 ? await missingForDisk(real) : []
if (real.length > 0 && missing.length === 0) await enterPrivateMounts()
for (const place of places) {
  if (place === 'model') await all(place, (history, seed) => exploreOnModel(history, seed, effort))
  else if (missing.length === 0) await allOnDisks(place)
  else {
    total.skipped += 1
    console.log(`skipped: histories on ${place} (they need ${missing.join(', ')})`)
  }
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exit(total.failed > 0 ? 1 : 0)
