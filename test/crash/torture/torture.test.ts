/*
 * `holdfast torture` before two disks: one keeps its acknowledged writes, one answers flushes and drops the unwritten ones. The program
 * runs as its users run it, on a real file system; the test pulls the plug in the middle of a publication, network and all; the next
 * process finds another boot.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { messageOf } from '../../../src/errors.js'
import { silent } from '../../../src/log.js'
import { emptyLedger, type LedgerState } from '../../../torture/ledger.js'
import type { Verdict } from '../../../torture/types.js'
import { Witness } from '../../../torture/witness.js'
import { Disk, missingForDisk } from '../../disk/disk.js'
import { cutPower, type Cache } from '../../disk/power-cut.js'
import { readLog } from '../../disk/write-log.js'
import { executable } from '../../project.js'
import { Random } from '../../random.js'
import { replay, seed } from '../../seed.js'
import { until } from '../../until.js'
import { Cable } from './cable.js'

const missing = await missingForDisk(['ext4'])
const skip = missing.length === 0 ? false : `needs ${missing.join(', ')}`
const long = process.env.HOLDFAST_CRASH_ALL === '1'
// Each draw takes seconds.

/** Milliseconds of a flush: a publication is in flight for some of them. */
const flushTime = 2

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A disk, the machine that it is in, and the witness beside it. */
class Bench {
  readonly #key: string
  readonly #boot: string

  private constructor(
    readonly directory: string,
    readonly disk: Disk,
    /** What the witness has heard. */
    readonly state: Readonly<LedgerState>,
    readonly cable: Cable,
    readonly random: Random,
  ) {
    this.#key = join(directory, 'key')
    this.#boot = join(directory, 'boot_id')
  }

  static async create(t: Test, draw: number): Promise<Bench> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-torture-'))
    t.teardown(() => rmSync(directory, { recursive: true, force: true }))
    const disk = await Disk.create(64 * 2 ** 20)
    t.teardown(() => disk.destroy())
    await disk.format('ext4')
    await disk.flushTime(flushTime)
    const key = randomUUID()
    writeFileSync(join(directory, 'key'), key, { mode: 0o600 })
    const state = emptyLedger()
    const witness = await Witness.start({
      listen: { host: '127.0.0.1', port: 0 },
      key: Buffer.from(key),
      stateFile: join(directory, 'state.json'),
      state,
      log: silent,
    })
    t.teardown(() => witness.close())
    const cable = await Cable.to(witness.address.port)
    t.teardown(() => cable.close())
    return new Bench(directory, disk, state, cable, new Random(draw))
  }

  /**
   * The machine starts: another boot, and the surviving content of the disk. The mount is the program's own: in the namespace of this
   * test, another program's namespace would copy it, and keep the file system in memory.
   */
  start(...args: string[]): { child: ChildProcess; ended: Promise<Ended> } {
    const { device, mountPoint } = this.disk
    writeFileSync(this.#boot, `${randomUUID()}\n`)
    const script = `mount "$1" "$2" && mount --bind "$3" /proc/sys/kernel/random/boot_id && shift 3 && exec "$@"`
    const command = [process.execPath, executable, 'torture', this.disk.mountPoint, '--key-file', this.#key]
    const witness = ['--witness', `127.0.0.1:${this.cable.port}`, '-o', 'json']
    const child = spawn(
      'unshare',
      [
        '--mount',
        '--propagation',
        'private',
        'sh',
        '-c',
        script,
        'sh',
        device,
        mountPoint,
        this.#boot,
        ...command,
        ...witness,
        ...args,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    return { child, ended: endOf(child) }
  }

  /** Publishes for a while; then everything stops in the middle of a publication, and the power comes back. */
  async cutInFlight(cache: Cache): Promise<void> {
    const { disk, state, directory } = this
    const image = join(directory, 'image')
    const log = join(directory, 'log')
    await disk.ask(`save ${image}`)
    await disk.ask(`log ${log}`)
    const goal = state.announced + 15 + this.random.below(10)
    const { child, ended } = this.start()
    const early = ended.then((how) => {
      if (child.signalCode === null) throw new Error(`torture has ended: ${JSON.stringify(how)}`)
    })
    await Promise.race([early, until(`generation ${goal} is announced`, () => state.announced >= goal)])
    const neighbour = await copiesMounts()
    await this.#inFlight()
    this.cable.cut()
    await disk.ask('log off')
    child.kill('SIGKILL')
    await early
    await this.#isGone()
    neighbour.kill()
    cutPower(image, [...readLog(log)], cache, this.random)
    rmSync(log)
    await disk.load(image)
  }

  /** Waits until a generation has been announced for some milliseconds, and is not acknowledged yet. */
  async #inFlight(): Promise<void> {
    const { state } = this
    await until(
      'a generation is in flight',
      async () => {
        const { announced, acknowledged } = state
        if (announced === acknowledged) return false
        await sleep(this.random.below(2 * flushTime))
        return state.announced === announced && state.acknowledged < announced
      },
      { every: 1 },
    )
  }

  /** The namespace of a process goes after it: until then the file system lives, and would be mounted again as it is in memory. */
  async #isGone(): Promise<void> {
    await until('the file system is gone', () => !existsSync(`/sys/fs/ext4/${basename(this.disk.device)}`))
  }

  async verify(): Promise<{ code: number | null; verdict: Verdict }> {
    const { code, stdout, stderr } = await this.start('--verify').ended
    await this.#isGone()
    if (stdout === '') throw new Error(stderr)
    const verdict = JSON.parse(stdout) as Verdict
    if (!('verdict' in verdict)) throw new Error(stderr)
    return { code, verdict }
  }
}

/** Starts a neighbour, as a test beside this one may be: a process whose namespace copies all mounts, and keeps them until it ends. */
async function copiesMounts(): Promise<ChildProcess> {
  const words = ['--mount', '--propagation', 'private', 'sh', '-c', 'echo copied && exec sleep 300']
  const child = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  return child
}

async function endOf(child: ChildProcess): Promise<Ended> {
  const said = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said.stderr += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...said }
}

await t.test('torture never accuses a disk that keeps its acknowledged writes', { skip }, async (t) => {
  t.comment(replay)
  const bench = await Bench.create(t, seed)
  const cuts = long ? 40 : 2
  for (let cut = 0; cut < cuts; cut++) await bench.cutInFlight('honest')
  const { code, verdict } = await bench.verify()
  t.match({ code, ...verdict }, { code: 0, verdict: 'kept', lost: 0, torn: 0 }, JSON.stringify(verdict))
  // A reply still on its way may acknowledge a write in flight.
  t.equal(verdict.cuts + verdict.notCounted.idle, cuts)
  t.ok(verdict.acknowledged > 10 * cuts, `${verdict.acknowledged} generations`)
})

const liars: Cache[] = ['lying', 'lying', 'lying and reordering']

for (const [draw, cache] of Array.from({ length: long ? 20 : 1 }, () => liars)
  .flat()
  .entries()) {
  await t.test(`a disk that is ${cache} is found, draw ${draw}`, { skip }, async (t) => {
    t.comment(replay)
    const bench = await Bench.create(t, seed + 1 + draw)
    await bench.cutInFlight(cache)
    const found = await bench.verify().catch((error: unknown) => messageOf(error))
    if (typeof found === 'string') {
      // Then a failed mount shows it without a program.
      t.equal(cache, 'lying and reordering')
      t.match(found, /mount.*(structure needs cleaning|superblock|wrong fs)/is)
      return
    }
    const { code, verdict } = found
    t.match({ code, ...verdict }, { code: 4, verdict: 'lost' }, JSON.stringify(verdict))
    t.ok(verdict.lost + verdict.torn > 0, `${verdict.lost} generations, ${verdict.torn} torn`)
    t.comment(JSON.stringify(verdict.examinations))
  })
}
