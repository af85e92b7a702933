import t from 'tap'
import { verdictText } from '../../../src/cli/output/verdict-text.js'
import type { Examination, Verdict } from '../../../torture/types.js'

const kept = (minute: number): Examination => ({
  at: new Date(minute * 60_000).toISOString(),
  outage: 'power',
  acknowledged: 10 * minute,
  announced: 10 * minute + 1,
  found: { state: 'whole', generation: 10 * minute },
  result: 'kept',
  lost: 0,
})

const verdict: Verdict = {
  verdict: 'kept',
  run: {
    id: '7c0dfa8b04e8',
    seed: 'seed',
    machine: 'machine',
    directory: '/mnt/disk',
    disk: {
      fileSystem: 'ext4',
      mountPoint: '/mnt/disk',
      root: '/',
      source: '/dev/sda1',
      options: ['rw', 'relatime'],
      devices: [
        { name: 'sda', vendor: 'ATA', model: 'Disk 870', firmware: 'SVT02', bytes: 10 ** 12, writeCache: 'write back' },
      ],
    },
    kernel: 'Linux 6.18.0 x64',
    version: '0.1.0',
    startedAt: '2026-01-01T00:00:00.000Z',
  },
  unproven: false,
  cuts: 2,
  notCounted: { idle: 0, orderly: 1, reset: 2, unknown: 0 },
  acknowledged: 21,
  lost: 0,
  torn: 0,
  examinations: [kept(1), kept(2)],
  omitted: 0,
}

await t.test("verdictText writes the report for a disk's vendor", async (t) => {
  t.equal(
    verdictText(verdict),
    `KEPT: after each power cut, this disk held everything that it had acknowledged

device         sda, ATA, Disk 870, firmware SVT02, 1000.0 GB, cache: write back
file system    ext4 on /dev/sda1, mounted at /mnt/disk
mount options  rw,relatime
kernel         Linux 6.18.0 x64
holdfast       0.1.0, run 7c0dfa8b04e8, since 2026-01-01T00:00:00.000Z
power cuts     2 with a write in flight, 1 after an orderly end not counted, 2 by a reset not counted
acknowledged   21 generations
lost           0 generations
torn or mixed  0

TIME                      OUTAGE     ACKNOWLEDGED      FOUND          RESULT
1970-01-01T00:01:00.000Z  power cut  10, 11 in flight  generation 10  kept
1970-01-01T00:02:00.000Z  power cut  20, 21 in flight  generation 20  kept
`,
  )
})

await t.test('verdictText lists every fault, and the last of the other examinations', async (t) => {
  const idle = { acknowledged: 20, announced: 20, outage: 'idle' } as const
  const examinations: Examination[] = [
    { ...kept(0), ...idle, found: { state: 'whole', generation: 19 }, result: 'lost', lost: 1 },
    { ...kept(0), found: { state: 'torn', problem: 'file-0 is missing' }, result: 'torn' },
    ...Array.from({ length: 50 }, (_, index) => kept(index + 1)),
  ]
  const lines = verdictText({ ...verdict, verdict: 'lost', unproven: true, examinations }).split('\n')
  t.match(lines[0], /^LOST: /)
  t.match(lines[1], /^Durability is not proven on ext4: /)
  t.ok(lines.some((line) => / idle +20 +generation 19 +lost: 1 generation$/.test(line)))
  t.ok(lines.some((line) => / torn +torn: file-0 is missing$/.test(line)))
  t.equal(lines.filter((line) => line.includes('power cut  ')).length, 21)
  t.match(lines.at(-2), 'and 30 more')
  t.match(verdictText({ ...verdict, verdict: 'none', examinations: [] }), /^NO VERDICT: [^\n]*\n\ndevice /)
})
