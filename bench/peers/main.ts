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
import {
  aheadOf,
  costTable,
  failuresOf,
  powerTable,
  volumeTable,
  watchTable,
  type CostRow,
  type PowerRow,
} from './report.js'
import { noResults, peerNamed, readResults, type Results } from './results.js'
import { publisher } from './toolchains.js'
import type { VolumeRow } from './volume.js'
import type { WatchRow } from './watch.js'
import { pictured, works } from './work.js'

const options = optionsOrExit()
/** Milliseconds of a flush where time is measured. */
const flushTime = 10
/** Rounds of what takes seconds. */
const longRounds = 3
/** Bytes of the files of which the power is cut. */
const cutFiles = [300, 1700, 4096, 12_000, 40_000]

const drivers: Driver[] = []
const leftOut: string[] = []
/** Where holdfast itself failed. */
const missed: string[] = []
const results = options.tables.length > 0 ? readResults(options.tables) : await measure()
const { power, costs } = results

if (power.length > 0) console.log(`\n${powerTable(power)}`)
if (costs.length > 0) console.log(`\n${costTable(costs, power)}`)
if (results.watched.length > 0) console.log(`\n${watchTable(results.watched)}`)
if (results.volumes.length > 0) console.log(`\n${volumeTable(results.volumes)}`)
for (const why of leftOut) console.log(why)
if (options.json !== undefined) {
  writeFileSync(
    options.json,
    `${JSON.stringify({ kernel: release(), node: process.version, flushTime, ...results }, undefined, 2)}\n`,
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

async function measure(): Promise<Results> {
  const onDisk = options.parts.includes('power') || options.parts.includes('cost')
  const unfit = await missingForDisk(onDisk ? options.fileSystems : [])
  if (options.parts.includes('cost') && spawnSync('strace', ['-V']).status !== 0) unfit.push('strace')
  if (unfit.length > 0) {
    const packages = 'e2fsprogs, xfsprogs, btrfs-progs, strace'
    console.error(`bench:peers: this needs ${unfit.join(', ')} (Debian: ${packages}; run as root)`)
    process.exit(2)
  }
  await enterPrivateMounts()
  const directory = inMemory()
  const measured = noResults()
  for (const peer of onDisk ? peers.filter(({ name }) => name === 'holdfast' || options.peers.includes(name)) : []) {
    const driver = driverOf(peer)
    if (driver) drivers.push(driver)
  }
  for (const fileSystem of options.fileSystems) {
    if (options.parts.includes('power')) measured.power.push(...(await measurePower(fileSystem, directory)))
    if (options.parts.includes('cost')) measured.costs.push(...(await measureCosts(fileSystem, directory)))
  }
  for (const driver of drivers) await driver.end()
  if (options.parts.includes('watch')) measured.watched.push(...(await measureWatchers()))
  if (options.parts.includes('kubelet')) measured.volumes.push(...(await measureVolumes()))
  console.log(
    `holdfast and ${Math.max(drivers.length - 1, 0)} peers on Linux ${release()}, ${cpus().length} processors, seed ${options.seed}`,
  )
  return measured
}

/** A directory in memory, which goes with this process. */
function inMemory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-peers-'))
  execFileSync('mount', ['-t', 'tmpfs', 'holdfast-peers', directory])
  process.on('exit', () => {
    execFileSync('umount', ['--lazy', directory])
    rmSync(directory, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(2))
  return directory
}

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
    const [{ buildControlPlane }, { watch }] = await Promise.all([import('../control-plane.js'), import('./watch.js')])
    buildControlPlane()
    return await watch(options.quick, leftOut)
  } catch (error) {
    leftOut.push(`left out: the watchers: ${(error as Error).message}`)
    return []
  }
}

/** As with the watchers. */
async function measureVolumes(): Promise<VolumeRow[]> {
  try {
    const { watchVolumes } = await import('./volume.js')
    return await watchVolumes(options.quick, options.seed, progress)
  } catch (error) {
    leftOut.push(`left out: kubelet's Secret volume: ${(error as Error).message}`)
    return []
  }
}

async function measurePower(fileSystem: FileSystem, directory: string): Promise<PowerRow[]> {
  const rows: PowerRow[] = []
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
        rows.push({ fileSystem, what, peer, tally })
      } catch (error) {
        leaveOut(`${fileSystem}, power cuts, ${what}`, peer, error)
      }
    }
  }
  return rows
}

/** Leaves a failed peer out of that part, and the run goes on. */
function leaveOut(of: string, { name }: Peer, error: unknown): void {
  const line = `${of}: ${name}: ${(error as Error).message}`
  leftOut.push(`left out: ${line}`)
  if (name === 'holdfast') missed.push(line)
}

async function measureCosts(fileSystem: FileSystem, directory: string): Promise<CostRow[]> {
  const rows: CostRow[] = []
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
        calls: true,
        leaveOut: (peer: Peer, error: unknown) => leaveOut(`${fileSystem}, ${work.name}`, peer, error),
      }
      for (const [name, cost] of await costsOf(disk, drivers, work, costOptions)) {
        const files = pictured(work) ? work.files.length : 0
        rows.push({ fileSystem, work: work.name, files, peer: peerNamed(name), cost })
      }
    }
  } finally {
    await disk.destroy()
  }
  return rows
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
