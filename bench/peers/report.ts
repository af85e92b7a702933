/** The results as tables of Markdown, which docs/performance.md takes as they are. */
import type { FileSystem } from '../../test/disk/disk.js'
import type { PeerCost } from './cost.js'
import { broken, brokenOf, guaranteeOf, guarantees, statesOf, type Guarantee, type Tally } from './judge.js'
import type { Peer } from './peers.js'
import { median } from '../measure.js'
import type { VolumeRow } from './volume.js'
import type { WatchRow } from './watch.js'

export interface PowerRow {
  readonly fileSystem: FileSystem
  readonly what: string
  readonly peer: Peer
  readonly tally: Tally
}

export interface CostRow {
  readonly fileSystem: FileSystem
  readonly work: string
  /** Of the works that the picture shows: files in the one directory; else 0. */
  readonly files: number
  readonly peer: Peer
  readonly cost: PeerCost
}

/** Broken states of all states, by peer and file system. */
export function powerTable(rows: readonly PowerRow[]): string {
  const fileSystems = distinct(rows.map(({ fileSystem }) => fileSystem))
  const lines = distinct(rows.map(({ what }) => what)).flatMap((what) =>
    distinct(rows.map(({ peer }) => peer)).map((peer) => {
      const own = rows.filter((row) => row.what === what && row.peer === peer)
      const cells = fileSystems.map((fileSystem) => tallyText(own.find((row) => row.fileSystem === fileSystem)?.tally))
      return [what, peer.name, peer.step, guarantee(own, peer) ?? '', ...cells]
    }),
  )
  return markdown(['what', 'peer', 'in one step', 'kept', ...fileSystems], lines)
}

function tallyText(tally: Tally | undefined): string {
  if (!tally) return ''
  const found = broken.filter((verdict) => tally[verdict] > 0).map((verdict) => `${tally[verdict]} ${verdict}`)
  return `${brokenOf(tally)} of ${statesOf(tally)}${found.length > 0 ? `: ${found.join(', ')}` : ''}`
}

/** The weakest that a peer showed on any file system, of many files or of one; undefined if the power was not cut under it. */
export function guarantee(rows: readonly PowerRow[], peer: Peer): Guarantee | undefined {
  const shown = rows.filter((row) => row.peer.name === peer.name).map(({ tally }) => guaranteeOf(tally))
  return guarantees.find((one) => shown.includes(one))
}

interface Figure {
  readonly title: string
  readonly cell: (cost: PeerCost) => string
}

/** What the tables of the first file system show, a table for each. */
const figures: readonly Figure[] = [
  { title: 'flushes', cell: ({ flushes }) => short(flushes) },
  { title: 'milliseconds', cell: ({ milliseconds }) => milliseconds.toFixed(0) },
  {
    title: 'time as a multiple of holdfast’s in the same round: median (least–most)',
    cell: ({ ratio: [least, middle, most] }) => `${middle.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`,
  },
  { title: 'bytes written as a multiple of the content', cell: ({ written }) => written.toFixed(1) },
  { title: 'system calls / CPU ms', cell: ({ calls, processor }) => `${calls.toFixed(0)} / ${processor.toFixed(0)}` },
]

/** The same in one cell, for the others. */
const inShort: Figure = {
  title:
    'flushes / time as a multiple of holdfast’s / bytes written as a multiple of the content / system calls (medians)',
  cell: ({ flushes, ratio, written, calls }) =>
    [short(flushes), ratio[1].toFixed(2), written.toFixed(1), calls.toFixed(0)].join(' / '),
}

/** Columns of works, so that a table keeps within a page. */
const columns = 6

export function costTable(rows: readonly CostRow[], power: readonly PowerRow[]): string {
  const works = distinct(rows.map(({ work }) => work))
  const parts = Array.from({ length: Math.ceil(works.length / columns) }, (_, part) => {
    return works.slice(part * columns, (part + 1) * columns)
  })
  const tables = distinct(rows.map(({ fileSystem }) => fileSystem)).flatMap((fileSystem, position) =>
    parts.flatMap((shown, part) =>
      (position + part === 0 ? figures : [inShort]).map(({ title, cell }) => {
        const lines = distinct(rows.map(({ peer }) => peer)).map((peer) => {
          const own = rows.filter((row) => row.fileSystem === fileSystem && row.peer === peer)
          const cells = shown.map((work) => own.find((row) => row.work === work)?.cost)
          return [peer.name, guarantee(power, peer) ?? '', ...cells.map((cost) => (cost ? cell(cost) : ''))]
        })
        return `${fileSystem}, ${title}:\n\n${markdown(['peer', 'kept', ...shown], lines)}`
      }),
    ),
  )
  return tables.join('\n\n')
}

export function watchTable(rows: readonly WatchRow[]): string {
  const head = ['watcher', 'Secrets', 'start ms', 'CPU ms of it', 'change to file ms', 'most', 'memory MiB']
  const lines = rows.map(({ watcher, kept, secrets, delay, ...row }) => [
    watcher,
    `${kept} of ${secrets}`,
    ...[row.start, row.startProcessor, ...delay].map((value) => value.toFixed(0)),
    row.memory.toFixed(1),
  ])
  return markdown(head, lines)
}

/** Seconds from a change to the file, of kubelet's Secret volume and of the agent beside it. */
export function volumeTable(rows: readonly VolumeRow[]): string {
  const lines = rows.map(({ keeper, delays }) => {
    const seconds = [Math.min(...delays), median(delays), Math.max(...delays)].map((delay) => delay / 1000)
    return [keeper, String(delays.length), ...seconds.map((value) => value.toFixed(value < 1 ? 3 : 1))]
  })
  return markdown(['who keeps the file', 'changes seen', 'least s', 'median s', 'most s'], lines)
}

/**
 * The claims of the page: holdfast keeps its promises, the cuts find the faults of others, and no program that keeps as much flushes less.
 */
export function failuresOf(power: readonly PowerRow[], costs: readonly CostRow[]): string[] {
  const failures = power
    .filter(({ peer, tally }) => peer.name === 'holdfast' && brokenOf(tally) > 0)
    .map(({ fileSystem, what, tally }) => `${fileSystem}: ${brokenOf(tally)} states of ${what} of holdfast are broken`)
  for (const { fileSystem, what, peer, tally } of power) {
    if (statesOf(tally) === 0)
      failures.push(`${fileSystem}: power cuts under ${peer.name}, ${what}: no state was examined`)
  }
  const careless = power.filter(({ peer }) => peer.name === 'k8s-sidecar' || peer.name === 'AtomicWriter')
  if (careless.length > 0 && careless.every(({ tally }) => brokenOf(tally) === 0)) {
    failures.push('no power cut harmed what syncs nothing: the states are not those of a power cut')
  }
  for (const { fileSystem, work, peer, cost, ours } of equals(power, costs)) {
    // An fsync that comes late for its commit asks for one flush more.
    if (cost.flushes + 1 >= ours.flushes) continue
    failures.push(`${fileSystem}, ${work}: ${peer.name} flushes ${cost.flushes} times, holdfast ${ours.flushes} times`)
  }
  return failures
}

/** Where a peer that keeps as much took less time in each round: said, not judged, since other work on the machine has a part in it. */
export function aheadOf(power: readonly PowerRow[], costs: readonly CostRow[]): string[] {
  return equals(power, costs)
    .filter(({ cost }) => cost.ratio[2] < 1)
    .map(({ fileSystem, work, peer, cost }) => {
      return `ahead ${fileSystem}, ${work}: ${peer.name} takes ${cost.ratio[1].toFixed(2)} of holdfast's time, and keeps as much`
    })
}

/** Costs of the peers that keep as much as holdfast, with holdfast's. */
function equals(power: readonly PowerRow[], costs: readonly CostRow[]): (CostRow & { ours: PeerCost })[] {
  return costs.flatMap((row) => {
    const { peer, fileSystem, work } = row
    const isEqual = peer.step === 'directory' && guarantee(power, peer) === 'the directory, durable'
    const same = (other: CostRow): boolean => other.fileSystem === fileSystem && other.work === work
    const ours = costs.find((other) => other.peer.name === 'holdfast' && same(other))?.cost
    return isEqual && peer.name !== 'holdfast' && ours ? [{ ...row, ours }] : []
  })
}

const distinct = <T>(values: readonly T[]): T[] => [...new Set(values)]

function short(value: number): string {
  return Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)
}

function markdown(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(name.length, 3, ...lines.map((line) => line[column]?.length ?? 0)))
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [row(head), row(widths.map((width) => '-'.repeat(width))), ...lines.map(row)].join('\n')
}
