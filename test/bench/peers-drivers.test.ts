/**
 * The processes that the benchmark beside other programs measures (bench/peers): which costs count as theirs, and the end of a failed one.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { filesOf, layOut } from '../../bench/peers/content.js'
import { costsOf, systemCalls } from '../../bench/peers/cost.js'
import { Driver } from '../../bench/peers/driver.js'
import { isDamage } from '../../bench/peers/judge.js'
import { peers } from '../../bench/peers/peers.js'
import { works } from '../../bench/peers/work.js'
import { LoopMount } from '../crash/power/loop-mount.js'
import { Disk, missingForDisk } from '../disk/disk.js'
import { scratch } from '../durable/scratch.js'

const program = fileURLToPath(new URL('../../bench/peers/own-driver.js', import.meta.url))
const missing = await missingForDisk(['ext4'])
const onDisk = missing.length === 0 ? {} : { skip: `needs ${missing.join(', ')}` }
const needs = (what: string): object => (spawnSync(what, ['--version']).error ? { skip: `needs ${what}` } : {})

function driverOf(t: Test, name: string, runs: string): Driver {
  const peer = peers.find((each) => each.name === name)
  if (!peer) throw new Error(`no peer ${name}`)
  const driver = new Driver(peer, [process.execPath, program, runs])
  t.teardown(() => driver.end())
  return driver
}

void t.test('git-sync finds the commit that it has where the content is unchanged', needs('git'), async (t) => {
  const from = join(scratch(t), 'from')
  const driver = driverOf(t, 'git-sync', 'git-sync')
  const commits = async (generation: number): Promise<string> => {
    layOut(from, filesOf([300, 4096], generation))
    await driver.prepare(from, ['one', 'another'])
    return execFileSync('git', [`--git-dir=${from}.git`, 'rev-list', '--count', 'HEAD'], { encoding: 'utf8' }).trim()
  }
  t.same([await commits(1), await commits(1), await commits(2)], ['1', '1', '2'])
})

void t.test('a tracer that cannot be started or cannot attach is an error, and nothing waits for it', async (t) => {
  const driver = driverOf(t, 'shell', 'true')
  const publish = (): Promise<void> => Promise.reject(new Error('it was asked though nobody traced it'))
  const path = process.env['PATH']
  process.env['PATH'] = '/nonexistent'
  try {
    await t.rejects(systemCalls(driver, publish), /strace.*ENOENT/)
  } finally {
    process.env['PATH'] = path
  }
  if (spawnSync('strace', ['-V']).error) return
  await t.rejects(systemCalls({ pid: 2 ** 30 }, publish), /strace: .*No such process/)
})

void t.test('the benchmark leaves a failed peer out, and measures the others', onDisk, async (t) => {
  const directory = scratch(t)
  const disk = await Disk.create()
  t.teardown(() => disk.destroy())
  await disk.format('ext4')
  await disk.mount()
  const [work] = works
  if (!work) throw new Error('no work')
  const leftOut: string[] = []
  const leaveOut = ({ name }: { name: string }, error: unknown): void => void leftOut.push(`${name}: ${String(error)}`)
  const options = { rounds: 1, flushTime: 0, directory, calls: false, leaveOut }
  const holdfast = driverOf(t, 'holdfast', '')
  const costs = await costsOf(disk, [holdfast, driverOf(t, 'shell', 'false')], work, options)
  t.same([...costs.keys()], ['holdfast'])
  t.matchOnly(leftOut, [/^shell: .*false/])
  const script = fileURLToPath(new URL('../../../bench/peers/shell/replace.sh', import.meta.url))
  const beside = { name: 'beside', targets: 1, files: [4096], dirty: 4e6 }
  const besideDirty = await costsOf(disk, [holdfast, driverOf(t, 'shell', script)], beside, options)
  const written = (name: string): number => 4096 * (besideDirty.get(name)?.written ?? NaN)
  t.ok(written('holdfast') < 1e6, 'what another program left unsynced is none of its affair')
  t.ok(written('shell') >= 4e6, 'sync -f waits for all that is dirty')
  const refusing = driverOf(t, 'git-sync', 'false')
  t.equal((await costsOf(disk, [refusing, holdfast], work, options)).size, 0, 'beside nothing is nothing measured')

  const file = join(directory, 'empty')
  writeFileSync(file, '')
  truncateSync(file, 2 ** 20)
  mkdirSync(join(directory, 'state'))
  const device = new LoopMount(file, join(directory, 'state'))
  try {
    const failure = (fileSystem: string): unknown => {
      try {
        device.mount(fileSystem)
      } catch (error) {
        return error
      }
      throw new Error('it was mounted')
    }
    t.ok(isDamage(failure('ext4')), 'nothing is there to be mounted')
    t.notOk(isDamage(failure('no-file-system')), 'this kernel cannot mount it')
  } finally {
    device.close()
  }
})
