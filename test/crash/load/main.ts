/**
 * Kill and recover, in a loop, under foreign load: see round.ts. As root, on Linux with /dev/fuse and loop devices.
 *
 *     node dist/test/crash/load/main.js [OPTIONS]
 *
 *   --file-systems LIST   ext4,xfs,btrfs (default)
 *   --seed N              decides how each round ends, and about when; what the programs do until then is up to the machine
 *   --rounds N            on each of them
 *
 * HOLDFAST_DIST=/path/to/dist tests another build of the library.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Disk, type FileSystem, missingForDisk } from '../../disk/disk.js'
import { enterPrivateMounts } from '../../disk/private-mounts.js'
import { sizes } from '../power/logged-disk.js'
import { Random } from '../../random.js'
import { type Death, Loop } from './round.js'

const { values } = parseArgs({
  options: {
    'file-systems': { type: 'string', default: 'ext4,xfs,btrfs' },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '10' },
  },
})
const seed = Number(values.seed)
const fileSystems = values['file-systems'].split(',').map((name): FileSystem => {
  if (name === 'ext4' || name === 'xfs' || name === 'btrfs') return name
  throw new Error(`--file-systems knows ext4, xfs and btrfs, not ${name}`)
})

/** Rounds that broke something. */
async function loop(fileSystem: FileSystem, directory: string): Promise<number> {
  const began = performance.now()
  mkdirSync(directory)
  const disk = await Disk.create(sizes[fileSystem])
  const ends: Record<Death, number> = { shutdown: 0, errors: 0, kill: 0 }
  const counts = { rounds: 0, answers: 0, failures: 0, broken: 0 }
  try {
    const rounds = new Loop(disk, fileSystem, directory, Random.for(seed, `load on ${fileSystem}`))
    await rounds.prepare()
    while (counts.rounds < Number(values.rounds) && counts.broken === 0) {
      const { death, answers, failures, problem } = await rounds.round()
      counts.rounds += 1
      counts.answers += answers
      counts.failures += failures
      ends[death] += 1
      if (problem === undefined) continue
      counts.broken += 1
      console.error(
        `VIOLATION ${fileSystem}, seed ${seed}, round ${counts.rounds}, which ended by ${death}: ${problem}`,
      )
    }
  } finally {
    await disk.destroy()
  }
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log(JSON.stringify({ place: `${fileSystem} under load`, seed, ...counts, ...ends, seconds }))
  return counts.broken
}

const missing = await missingForDisk(fileSystems)
if (missing.length > 0) {
  console.log(`skipped: kill and recover under load (it needs ${missing.join(', ')})`)
  console.log('0 passed, 0 failed, 1 skipped')
  process.exit(0)
}
await enterPrivateMounts()
const directory = mkdtempSync(join(tmpdir(), 'holdfast-load-'))
execFileSync('mount', ['-t', 'tmpfs', 'holdfast-load', directory])
try {
  let broken = 0
  for (const fileSystem of fileSystems) broken += await loop(fileSystem, join(directory, fileSystem))
  console.log(`${fileSystems.length - broken} passed, ${broken} failed, 0 skipped`)
  process.exitCode = broken > 0 ? 1 : 0
} finally {
  execFileSync('umount', ['--lazy', directory])
  rmSync(directory, { recursive: true, force: true })
}
