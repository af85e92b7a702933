/**
 * holdfast beside what else a user would pick: `npm run bench:peers` as root. docs/performance.md says how to read it, and has the
 * tables of a run.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Disk, missingForDisk, type FileSystem } from '../../test/disk/disk.js'
import { enterPrivateMounts } from '../../test/disk/private-mounts.js'
import { costsOf } from './cost.js'
import { Driver } from './driver.js'
import { readOptions, usage, type Options } from './options.js'
import { peers, type Peer } from './peers.js'
import { linesOf, picture } from './picture.js'
import { cutPowerUnder } from './power.js'
import { aheadOf, costTable, failuresOf, powerTable, watchTable, type CostRow, type PowerRow } from './report.js'
import { publisher } from './toolchains.js'
import type { WatchRow } from './watch.js'
import { pictured, works } from './work.js'

const options = optionsOrExit()
/** Where system calls and processor time are looked at. */
const traced: FileSystem = 'ext4'
const missing = await missingForDisk(options.fileSystems)
const traces = options.parts.includes('cost') && options.fileSystems.includes(traced)
if (traces && spawnSync('strace', ['-V']).status !== 0) missing.push('strace')
if (missing.length > 0) {
  const packages = 'e2fsprogs, xfsprogs, btrfs-progs, strace'
  console.error(`bench:peers: this needs ${missing.join(', ')} (Debian: ${packages}; run as root)`)
  process.exit(2)
}
await enterPrivateMounts()

/** Milliseconds of a flush where time is measured. */
const flushTime = 10
/** Rounds of what takes seconds. */
const longRounds = 3
/** The agent and its like keep 50 of them. */
const secretsInNamespace = [50, 5000] as const
/** Bytes of the files of which the power is cut. */
const cutFiles = [300, 1700, 4096, 12_000, 40_000]

const directory = mkdtempSync(join(tmpdir(), 'holdfast-peers-'))
execFileSync('mount', ['-t', 'tmpfs', 'holdfast-peers', directory])
process.on('exit', () => {
  execFileSync('umount', ['--lazy', directory])
  rmSync(directory, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(2))

const drivers: Driver[] = []
const leftOut: string[] = []
/** Where holdfast itself failed. */
const missed: string[] = []
for (const peer of peers.filter(({ name }) => name === 'holdfast' || options.peers.includes(name))) {
  const driver = driverOf(peer)
  if (driver) drivers.push(driver)
}

const power: PowerRow[] = []
const costs: CostRow[] = []
for (const fileSystem of options.fileSystems) {
  if (options.parts.includes('power')) await measurePower(fileSystem)
  if (options.parts.includes('cost')) await measureCosts(fileSystem)
}
for (const driver of drivers) await driver.end()
const watched = options.parts.includes('watch') ? await measureWatchers() : []

console.log(
  `holdfast and ${drivers.length - 1} peers on Linux ${release()}, ${cpus().length} processors, seed ${options.seed}`,
)
if (power.length > 0) console.log(`\n${powerTable(power)}`)
if (costs.length > 0) console.log(`\n${costTable(costs, power)}`)
if (watched.length > 0) console.log(`\n${watchTable(watched)}`)
for (const why of leftOut) console.log(why)
if (options.json !== undefined) {
  writeFileSync(
    options.json,
    `${JSON.stringify({ kernel: release(), node: process.version, flushTime, power, costs, watched }, undefined, 2)}\n`,
  )
}
if (options.svg !== undefined) {
  const rows = costs.filter(({ fileSystem, files }) => fileSystem === options.fileSystems[0] && files > 0)
  const panels = [
    { title: 'flushes of the disk', lines: linesOf(rows, power, 'flushes') },
    { title: `milliseconds, ${flushTime} for each flush`, lines: linesOf(rows, power, 'milliseconds') },
  ]
  writeFileSync(options.svg, picture('What replacing a directory costs', panels))
}
for (const ahead of aheadOf(power, costs)) console.log(ahead)
const failures = [...failuresOf(power, costs), ...missed]
for (const failure of failures) console.log(`FAIL ${failure}`)
console.log(`${drivers.length} measured, ${leftOut.length} left out, ${failures.length} failed`)
process.exit(options.check && failures.length > 0 ? 1 : 0)

function driverOf(peer: Peer): Driver | undefined {
  try {
    return new Driver(peer, publisher(peer.toolchain))
  } catch (error) {
    leftOut.push(`left out: ${peer.name}: ${(error as Error).message}`)
    return undefined
  }
}

/** The control plane is loaded only where it is wanted: it brings a process that cleans up after it. */
async function measureWatchers(): Promise<WatchRow[]> {
  try {
    const { buildControlPlane, watch } = await import('./watch.js')
    buildControlPlane()
    return await watch(options.quick ? [secretsInNamespace[0]] : secretsInNamespace, leftOut)
  } catch (error) {
    leftOut.push(`left out: the watchers: ${(error as Error).message}`)
    return []
  }
}

async function measurePower(fileSystem: FileSystem): Promise<void> {
  for (const driver of drivers) {
    for (const [what, files] of [
      ['5 files', cutFiles],
      ['1 file', cutFiles.slice(-1)],
    ] as const) {
      const { peer } = driver
      progress(`${fileSystem}, power cuts, ${peer.name}, ${what}`)
      const depth = options.quick ? 'few' : 'default'
      try {
        const tally = await cutPowerUnder(driver, { fileSystem, files, directory, seed: options.seed, depth })
        power.push({ fileSystem, what, peer, tally })
      } catch (error) {
        leaveOut(`${fileSystem}, power cuts, ${what}`, peer, error)
      }
    }
  }
}

/** One that fails is left out of what it failed in, and the run goes on. */
function leaveOut(of: string, { name }: Peer, error: unknown): void {
  const line = `${of}: ${name}: ${(error as Error).message}`
  leftOut.push(`left out: ${line}`)
  if (name === 'holdfast') missed.push(line)
}

async function measureCosts(fileSystem: FileSystem): Promise<void> {
  const disk = await Disk.create()
  try {
    await disk.format(fileSystem)
    await disk.mount()
    for (const work of options.quick ? works.filter(({ long }) => !long) : works) {
      progress(`${fileSystem}, ${work.name}`)
      const rounds = work.long ? Math.min(options.rounds, longRounds) : options.rounds
      const costOptions = {
        rounds,
        flushTime,
        directory,
        calls: fileSystem === traced,
        leaveOut: (peer: Peer, error: unknown) => leaveOut(`${fileSystem}, ${work.name}`, peer, error),
      }
      for (const [name, cost] of await costsOf(disk, drivers, work, costOptions)) {
        const files = pictured(work) ? work.files.length : 0
        costs.push({ fileSystem, work: work.name, files, peer: peerNamed(name), cost })
      }
    }
  } finally {
    await disk.destroy()
  }
}

function peerNamed(name: string): Peer {
  const found = peers.find((peer) => peer.name === name)
  if (!found) throw new Error(`no peer ${name}`)
  return found
}

function progress(what: string): void {
  process.stderr.write(`${what} …\n`)
}

function optionsOrExit(): Options {
  try {
    const read = readOptions(
      process.argv.slice(2),
      peers.map(({ name }) => name),
    )
    if (read !== 'help') return read
    console.log(usage)
    process.exit(0)
  } catch (error) {
    console.error(`bench:peers: ${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}
