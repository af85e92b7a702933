/** Who holds what on a file system, by the texts of procfs: what no process can be brought to on every machine. */
import t, { type Test } from 'tap'
import { holdingsOn, type Holding, type Unseen } from '../../../src/durable/posix/holdings.js'
import { endAtOnce, fails, information, proc, type ProcessTexts, type World } from './proc-texts.js'
import { settled } from '../../simulated-time.js'

/** Milliseconds that one process's mappings are waited for. */
const patience = 2_000

const device = '8:18'
const root = '20 1 8:1 / / rw - ext4 /dev/sda1 rw'
const data = `21 20 ${device} /srv /data rw - ext4 /dev/sdb2 rw`
const all = [root, data]
const self: ProcessTexts = { mounts: all }
/** Holds nothing. */
const init: ProcessTexts = { mounts: [] }

/** `PID WHAT PATH`, where it can be, `?` where it was removed; then the inode, its device, and whether it writes. */
function line({ pid, what, path, locations, inode, device: on, writes }: Holding): string {
  const at = locations.map(({ device, within, deleted }) => `${device}${within}${deleted ? '?' : ''}`).join()
  const more = [inode !== undefined && `#${inode}`, on !== undefined && `on ${on}`, writes === true && 'writes']
  return [pid, what, path, `[${at}]`, ...more].filter((word) => word !== false).join(' ')
}

const seen: Unseen = { denied: [], otherPidNamespace: false, hidden: false }

/** The result of a scan; `a defect` where the scan breaks. */
async function look(t: Test, world: World): Promise<{ held: string[] | string; unseen: unknown; read: string[] }> {
  const read = proc(t, world)
  try {
    const { holdings, unseen } = await holdingsOn(new Set([device]))
    return { held: holdings.map(line), unseen, read }
  } catch (error) {
    return { held: error instanceof TypeError ? 'a defect' : String(error), unseen: undefined, read }
  }
}

interface Row {
  /** Process 7's, beside one without holdings, and this one; or all of /proc. */
  readonly of: ProcessTexts | World
  readonly held: readonly string[]
  readonly unseen?: Partial<Unseen>
}

const rows: Record<string, Row> = {
  'its working directory and its root, below a mount and at its top': {
    of: { cwd: '/data/a', root: '/data' },
    held: [`7 cwd /data/a [${device}/srv/a]`, `7 root /data [${device}/srv]`],
  },
  'a name that begins as a mount point does': { of: { cwd: '/datax' }, held: [] },
  'a mount of its own, which others do not see': {
    of: { namespace: '2', mounts: [root, `30 20 ${device} /srv/b /own rw - ext4 /dev/sdb2 rw`], cwd: '/own/c' },
    held: [`7 mount /own [${device}/srv/b]`, `7 cwd /own/c [${device}/srv/b/c]`],
  },
  'the file system is its root': {
    of: { namespace: '2', mounts: [`30 1 ${device} / / rw - ext4 /dev/sdb2 rw`], cwd: '/x' },
    held: [`7 mount / [${device}/]`, `7 cwd /x [${device}/x]`, `7 root / [${device}/]`],
  },
  'a root of its own: what is mounted below it, as all others call it': {
    of: {
      namespace: '2',
      root: '/jail',
      cwd: '/jail/in/x',
      mounts: [`30 20 ${device} /srv/b / rw - ext4 a rw`, `31 30 ${device} /srv/c /in rw - ext4 a rw`],
    },
    held: [
      `7 mount /jail [${device}/srv/b]`,
      `7 mount /jail/in [${device}/srv/c]`,
      `7 cwd /jail/in/x [${device}/srv/b/in/x,${device}/srv/c/x]`,
      `7 root /jail [${device}/srv/b]`,
    ],
  },
  'a mount whose directory was removed': {
    of: { namespace: '2', mounts: [`30 20 ${device} /old//deleted /own rw - ext4 a rw`], cwd: '/own/x' },
    held: [`7 mount /own [${device}/old?]`, `7 cwd /own/x [${device}/old/x?]`],
  },
  'open files: read, written, removed, on another file system, by a mount that is in no table': {
    of: {
      fds: {
        '0': ['/data/a', information(21, 11)],
        '1': ['/data/b', information(21, 12, '0100001')],
        '2': ['/data/c', information(21, 13, '0100002')],
        '3': ['/data/d (deleted)', information(21, 14)],
        '4': ['/etc/passwd', information(20, 15)],
        '5': ['/gone', information(99, 16)],
        '6': ['/gone', information(99)],
        '7': ['/data/e', information(99)],
        '8': ['/data/f', information(21)],
        '9': ['socket:[1]', fails('EACCES')],
      },
    },
    held: [
      `7 fd /data/a [${device}/srv/a] #11 on ${device}`,
      `7 fd /data/b [${device}/srv/b] #12 on ${device} writes`,
      `7 fd /data/c [${device}/srv/c] #13 on ${device} writes`,
      `7 fd /data/d (deleted) [${device}/srv/d (deleted),${device}/srv/d?] #14 on ${device}`,
      '7 fd /gone [] #16',
      `7 fd /data/e [${device}/srv/e]`,
      `7 fd /data/f [${device}/srv/f] on ${device}`,
    ],
  },
  'descriptors that are closed meanwhile': {
    of: {
      fds: {
        '0': [fails('ENOENT'), ''],
        '1': ['/data/a', fails('ENOENT')],
        '2': ['/data/b', information(21, 12)],
      },
    },
    held: [`7 fd /data/b [${device}/srv/b] #12 on ${device}`],
  },
  'mappings: one for each file, but each that writes': {
    of: {
      maps: [
        '55d0-55d1 r--p 00000000 00:00 0',
        '55d1-55d2 r--p 00000000 08:01 9    /lib/a.so',
        '55d2-55d3 r--p 00000000 08:12 31   /data/lib',
        '55d3-55d4 r-xp 00001000 08:12 31   /data/lib',
        '55d4-55d5 rw-s 00002000 08:12 31   /data/lib',
        '55d5-55d6 rw-p 00000000 08:12 32   /data/two\\012lines',
        '55d6-55d7 r--p 00000000 00:00 0    [heap]',
      ].join('\n'),
    },
    held: [
      `7 map /data/lib [${device}/srv/lib] #31 on ${device}`,
      `7 map /data/lib [${device}/srv/lib] #31 on ${device} writes`,
      `7 map /data/two\nlines [${device}/srv/two\nlines] #32 on ${device}`,
    ],
  },
  'it may not be looked at': {
    of: { root: fails('EACCES') },
    held: [],
    unseen: { denied: [{ pid: 7, code: 'EACCES' }] },
  },
  'its descriptors may not be listed': {
    of: { cwd: '/data', fds: fails('EACCES') },
    held: [`7 cwd /data [${device}/srv]`],
    unseen: { denied: [{ pid: 7, code: 'EACCES' }] },
  },
  'one of its descriptors may not be looked at': {
    of: { fds: { '3': ['/data/a', fails('EPERM')] } },
    held: [],
    unseen: { denied: [{ pid: 7, code: 'EPERM' }] },
  },
  'its mappings may not be read': {
    of: { maps: fails('EACCES') },
    held: [],
    unseen: { denied: [{ pid: 7, code: 'EACCES' }] },
  },
  'it may not be asked for its executable': {
    of: { exe: fails('EACCES') },
    held: [],
    unseen: { denied: [{ pid: 7, code: 'EACCES' }] },
  },
  'it has ended before it is looked at': { of: { root: fails('ENOENT') }, held: [] },
  'it ends while it is looked at': { of: { cwd: '/data', fds: fails('ESRCH') }, held: [`7 cwd /data [${device}/srv]`] },
  'it ends before its mappings are read': { of: { maps: fails('ESRCH') }, held: [] },
  'who has ended tells nothing of the mounts of those who share its namespace': {
    of: {
      processes: {
        self,
        '1': init,
        '7': { namespace: '2', mounts: fails('ESRCH') },
        '8': { namespace: '2', mounts: [`30 20 ${device} /srv/b /own rw - ext4 a rw`] },
      },
    },
    held: [`8 mount /own [${device}/srv/b]`],
  },
  'two roots in one namespace: each mount once': {
    of: {
      processes: {
        self,
        '1': init,
        '7': { namespace: '2', mounts: [`30 20 ${device} /srv/b /jail/own rw - ext4 a rw`] },
        '8': {
          namespace: '2',
          root: '/jail',
          mounts: [`30 20 ${device} /srv/b /own rw - ext4 a rw`],
          cwd: '/jail/own',
        },
      },
    },
    held: [`7 mount /jail/own [${device}/srv/b]`, `8 cwd /jail/own [${device}/srv/b]`],
  },
  'what is mounted by those who share the namespace of who asks': {
    of: { mounts: all },
    held: [`1 mount /data [${device}/srv]`],
  },
  'only some of the processes are shown': {
    of: { processes: { self, '2': init } },
    held: [],
    unseen: { hidden: true },
  },
  'processes of another PID namespace are not seen': {
    of: { processes: { self, '1': init }, pidNamespace: 'pid:[4026532000]' },
    held: [],
    unseen: { otherPidNamespace: true },
  },
}

for (const [name, { of, held, unseen = {} }] of Object.entries(rows)) {
  await t.test(name, async (t) => {
    // The first process of a namespace tells its mounts: here, none.
    const tells = name.startsWith('what is mounted') ? { mounts: all } : init
    const found = await look(t, 'processes' in of ? of : { processes: { self, '1': tells, '7': of } })
    t.strictSame(found.held, held)
    t.strictSame(found.unseen, { ...seen, ...unseen })
  })
}

await t.test('holdings reads the mounts of a namespace once, and /proc until no new process shows up', async (t) => {
  const one: ProcessTexts = { namespace: '2', mounts: all }
  const { held, read } = await look(t, { processes: { self, '1': init, '7': one, '8': one } })
  t.strictSame(held, [`7 mount /data [${device}/srv]`])
  t.strictSame(
    read.filter((what) => what.endsWith('mountinfo')),
    ['self mountinfo', '1 mountinfo', '7 mountinfo'],
  )
  t.equal(read.filter((what) => what === '/proc').length, 2)
})

await t.test('holdings reads the mappings of processes with memory: kernel threads have none', async (t) => {
  const thread: ProcessTexts = { exe: fails('ENOENT'), cwd: '/data', maps: fails('EIO') }
  const { held, read } = await look(t, { processes: { self, '1': init, '7': thread } })
  t.strictSame(held, [`7 cwd /data [${device}/srv]`])
  t.strictSame(
    read.filter((what) => what.endsWith('maps')),
    ['1 maps'],
  )
})

await t.test(
  'processes that begin on and on are followed a hundred times, and the last are not taken for seen',
  async (t) => {
    const pids = Array.from({ length: 120 }, (_, index) => index + 1)
    const { held, unseen } = await look(t, {
      processes: { self, ...Object.fromEntries(pids.map((pid) => [`${pid}`, { cwd: '/data' }])) },
      listings: pids.map((last) => pids.slice(0, last)),
    })
    t.equal(held.length, 100)
    t.strictSame(unseen, { ...seen, denied: [{ pid: 101, code: 'EAGAIN' }] })
  },
)

await t.test(
  'what cannot be looked at for another reason than the kernel gives is a failure of the whole',
  async (t) => {
    const { held } = await look(t, { processes: { self, '1': init, '7': { root: new Error('no errno') } } })
    t.equal(held, 'Error: no errno')
  },
)

await t.test(
  'mappings that do not come: told, not asked for again while they are waited for, and then again',
  async (t) => {
    endAtOnce(t, patience)
    const reading: { end?: (maps: string) => void } = {}
    const maps = new Promise<string>((resolve) => (reading.end = resolve))
    const world = { processes: { self, '1': init, '7': { maps }, '8': { maps: '' } } }
    const asked = (read: readonly string[]): string[] => read.filter((what) => what.endsWith('maps'))
    const first = look(t, world)
    await settled()
    const silent = { ...seen, silent: 7 }
    const second = look(t, world)
    await settled()
    reading.end?.('55d2-55d3 r--p 00000000 08:12 31   /data/lib')
    const { unseen, read } = await first
    t.strictSame(unseen, silent)
    t.strictSame(asked(read), ['1 maps', '7 maps'], 'nor is anybody behind it')
    const again = await second
    t.strictSame(again.unseen, silent)
    t.strictSame(asked(again.read), ['1 maps'])
    const third = await look(t, world)
    t.strictSame(third.held, [`7 map /data/lib [${device}/srv/lib] #31 on ${device}`])
    t.strictSame(third.unseen, seen)
  },
)

/** Turns of the event loop while this lasts, and the most reads of procfs between two of them. */
async function turnsOf(looking: Promise<unknown>, read: () => number): Promise<{ turns: number; most: number }> {
  let [turns, most, before, isOver] = [0, 0, read(), false]
  const tick = (): void => {
    turns++
    most = Math.max(most, read() - before)
    before = read()
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  await looking
  isOver = true
  return { turns, most }
}

await t.test(
  'thousands of descriptors, mappings and mounts of one process: others have their turn in between',
  async (t) => {
    const many = Array.from({ length: 20_000 }, (_, index) => index)
    const fds = Object.fromEntries(many.map((fd) => [`${fd}`, [`/data/${fd}`, information(99)] as const]))
    const mounts = many
      .slice(0, 8_000)
      .map((at) => `${30 + at} 20 ${device} /srv/m${at} /data/m${at} rw - ext4 /dev/sdb2 rw`)
    const maps = many.map((at) => `55d2-55d3 r--p 00000000 08:12 31   /data/m7/${at}`).join('\n')
    const world = { processes: { self, '1': init, '7': { fds }, '8': { namespace: '2', mounts, maps } } }
    const read = proc(t, world)
    const kept = new Set<number>()
    const looking = holdingsOn(new Set([device]), ({ pid }) => !kept.add(pid))
    const { most } = await turnsOf(looking, () => read.length)
    const { unseen } = await looking
    t.ok(most <= 600, `${most} reads at once`)
    t.strictSame([...kept].sort(), [7, 8])
    // 20,000 mappings that are each compared with 8,000 mounts.
    t.strictSame(unseen, { ...seen, more: true })
  },
)

await t.test('more descriptors than a scan looks at: it ends, and says so', async (t) => {
  const fds = Object.fromEntries(Array.from({ length: 600_000 }, (_, fd) => [`${fd}`, ['socket:[1]', ''] as const]))
  const read = proc(t, { processes: { self, '1': init, '7': { fds }, '8': { cwd: '/data' } } })
  const looking = holdingsOn(new Set([device]), () => true)
  const { turns } = await turnsOf(looking, () => read.length)
  const { holdings, unseen } = await looking
  t.strictSame(holdings, [])
  t.strictSame(unseen, { ...seen, more: true })
  t.ok(read.length < 530_000, `${read.length} reads`)
  // A turn for each read would cost more than the reads.
  t.ok(turns < read.length / 100, `${turns} turns`)
})

await t.test('no more holdings are in memory than a few thousand', async (t) => {
  const fds = Object.fromEntries(
    Array.from({ length: 40_000 }, (_, fd) => [`${fd}`, [`/data/${fd}`, information(21)] as const]),
  )
  const { held, unseen } = await look(t, { processes: { self, '1': { mounts: all }, '7': { fds } } })
  t.equal(held.length, 2 ** 14)
  t.strictSame(unseen, { ...seen, more: true })
})
