/*
 * A real installation, killed at each of its writing calls by strace: afterwards the manifest directory holds the old manifest
 * or the new one, whole; the revision that it names is whole; the same command again completes it, and leaves nothing.
 *
 * HOLDFAST_SWEEP=all kills at every call, =cheap at a few, a number at so many; HOLDFAST_SEED replays a sample.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { scratch } from '../../durable/scratch.js'
import { Disk } from '../../../src/durable/index.js'
import { executable, plainNode, program } from '../syscalls/distribution.js'
import { Random } from '../../random.js'
import { seed } from '../../seed.js'
import { nameOf, type Site, sitesOf } from '../syscalls/sites.js'
import { type Program, traced } from '../syscalls/traced.js'
import { CrashNode } from './node.js'

t.setTimeout(0)

const extent = process.env['HOLDFAST_SWEEP'] ?? 'usual'
/** Of each situation. */
const runs = { cheap: 8, usual: 16, all: Infinity }[extent] ?? Number(extent)
/** How many runs may aim at a call that a run did not make. */
const aims = 3
const hasStrace = spawnSync('strace', ['-V']).status === 0

interface Situation {
  readonly name: string
  /** Without certificates and a second manifest. */
  readonly alone: boolean
  /** The revision that was installed before. */
  readonly before: number | undefined
}

const situations: readonly Situation[] = [
  { name: 'the command, first revision of a node', alone: true, before: undefined },
  { name: 'the command, a revision after another', alone: true, before: 1 },
  { name: 'with certificates and two manifests', alone: false, before: 1 },
]
const revision = 2

/** Calls without which the sweep would miss the program's work. */
const essential = ['renameat2 ', 'flock ', 'io_submit ', 'io_getevents ', 'sync_file_range ', 'mkdir ', 'write ']

/** One node's disk and what installs on it, for one run at a time. */
class Lane {
  readonly node: CrashNode
  readonly args: readonly string[]

  constructor(
    t: Test,
    readonly program: Program,
    readonly situation: Situation,
  ) {
    this.node = new CrashNode(situation.alone)
    t.teardown(() => this.node.remove())
    this.args = situation.alone ? this.node.args(revision) : [join(this.node.root, 'plan.json')]
  }

  static async make(t: Test, directory: string, hold: string, situation: Situation): Promise<Lane> {
    const started = situation.alone ? executable(directory) : program(new URL('installer.js', import.meta.url))
    const lane = new Lane(t, { hold, executable: started, scratch: directory }, situation)
    const { node, args } = lane
    if (!situation.alone) {
      const { settings } = node
      writeFileSync(args[0] ?? '', JSON.stringify({ plan: await node.plan(revision), settings }))
    }
    return lane
  }

  /** The disk as it is before the installation. */
  async fresh(): Promise<void> {
    const { node, situation } = this
    node.clear()
    if (situation.before !== undefined) await node.install(situation.before, new Disk())
  }

  /** Complaints about a kill at this call; undefined where no run met it. */
  async killedAt(site: Site): Promise<string[] | undefined> {
    const where = site.file === undefined ? [] : ['-P', join(this.node.root, site.file)]
    const inject = `inject=${site.call}:signal=SIGKILL:when=${site.number}`
    for (let aim = 0; aim < aims; aim++) {
      await this.fresh()
      const run = await traced(this.program, this.args, {
        strace: [...where, '-e', `trace=${site.call}`, '-e', inject],
        thread: site.thread,
      })
      if (run.signal !== 'SIGKILL') continue
      const wrong = this.node.faults([this.situation.before, revision])
      return [...wrong, ...(await this.again())]
    }
    return undefined
  }

  /** The same once more, without a fault. */
  async again(): Promise<string[]> {
    const child = spawn('env', plainNode([this.program.executable, ...this.args]), {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number | null]>])
    if (code !== 0) return [`the next run ends with ${code}: ${said}`]
    return [...this.node.faults([revision]), ...this.node.leftovers()].map((what) => `after the next run: ${what}`)
  }
}

for (const situation of situations) {
  const { name } = situation
  await t.test(`${name}, seed ${seed}`, { skip: hasStrace ? false : 'needs strace' }, async (t) => {
    const directory = scratch(t)
    const hold = program(new URL('../syscalls/hold.js', import.meta.url))
    const lanes = await Promise.all([0, 1].map(() => Lane.make(t, directory, hold, situation)))
    const [first] = lanes
    if (first === undefined) throw new Error('no lane')
    await first.fresh()
    const sites = await sitesOf(first.program, first.args, first.node.root, {})
    t.same(first.node.faults([revision]), [], 'without a fault it is installed')
    const writing = sites.filter(({ writes }) => writes)
    const names = writing.map(({ call, subject }) => `${call} ${subject}`)
    t.same(
      essential.filter((call) => !names.some((made) => made.startsWith(call))),
      [],
      'every step is there',
    )
    const queue = sample(writing)
    const wrong: string[] = []
    const missed: string[] = []
    await Promise.all(
      lanes.map(async (lane) => {
        for (let site = queue.shift(); site !== undefined; site = queue.shift()) {
          const complaints = await lane.killedAt(site)
          if (complaints === undefined) missed.push(nameOf(site))
          else if (complaints.length > 0) wrong.push(`killed at ${nameOf(site)}: ${complaints.join('; ')}`)
        }
      }),
    )
    const tried = Math.min(runs, writing.length)
    t.comment(`killed at ${tried - missed.length} of ${writing.length} calls; ${missed.length} were not met again`)
    t.same(wrong, [])
    t.ok(missed.length <= tried / 10, `missed: ${missed.join('; ')}`)
  })
}

/** Each kind of call before the second of its kind, in an order of the seed's. */
function sample(sites: readonly Site[]): Site[] {
  const seen = new Map<string, number>()
  const ranked = new Random(seed).shuffled(sites).map((site) => {
    const kind = `${site.call} ${site.subject.replace(/.*\//, '')}`
    const rank = (seen.get(kind) ?? 0) + 1
    seen.set(kind, rank)
    return { site, rank }
  })
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, runs)
    .map(({ site }) => site)
}
