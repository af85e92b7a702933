/** What runs have measured, as `--json` keeps it and `--tables` takes it up again. */
import { readFileSync } from 'node:fs'
import type { PeerCost } from './cost.js'
import { sumOf } from './judge.js'
import { peers, type Peer } from './peers.js'
import type { CostRow, PowerRow } from './report.js'
import type { VolumeRow } from './volume.js'
import type { WatchRow } from './watch.js'

export interface Results {
  readonly power: PowerRow[]
  readonly costs: CostRow[]
  readonly watched: WatchRow[]
  readonly volumes: VolumeRow[]
}

export const noResults = (): Results => ({ power: [], costs: [], watched: [], volumes: [] })

/**
 * The runs of some files as one: states of power cuts are counted together, and of two costs of the same the one in the later file stands.
 * @throws Error that names the file that is none of `--json`
 */
export function readResults(files: readonly string[]): Results {
  const all = noResults()
  for (const file of files) {
    try {
      const read = JSON.parse(readFileSync(file, 'utf8')) as Partial<Results>
      for (const row of read.power ?? []) addPower(all.power, { ...row, peer: peerNamed(row.peer.name) })
      for (const row of read.costs ?? []) {
        replace(all.costs, { ...row, peer: peerNamed(row.peer.name), cost: withNaN(row.cost) }, (one, other) => {
          return one.peer === other.peer && one.fileSystem === other.fileSystem && one.work === other.work
        })
      }
      for (const row of read.watched ?? []) {
        replace(all.watched, row, (one, other) => {
          return one.watcher === other.watcher && one.secrets === other.secrets && one.kept === other.kept
        })
      }
      for (const row of read.volumes ?? []) replace(all.volumes, row, (one, other) => one.keeper === other.keeper)
    } catch (error) {
      throw new Error(`${file}: ${(error as Error).message}`, { cause: error })
    }
  }
  return all
}

function addPower(rows: PowerRow[], row: PowerRow): void {
  const { peer, fileSystem, what, tally } = row
  const at = rows.findIndex((one) => one.peer === peer && one.fileSystem === fileSystem && one.what === what)
  const before = rows[at]
  if (before) rows[at] = { ...before, tally: sumOf(before.tally, tally) }
  else rows.push(row)
}

function replace<T>(rows: T[], row: T, same: (one: T, other: T) => boolean): void {
  const at = rows.findIndex((one) => same(one, row))
  if (at < 0) rows.push(row)
  else rows[at] = row
}

/** JSON has null for a missing measurement. */
function withNaN(cost: PeerCost): PeerCost {
  const { calls, processor } = cost as Record<'calls' | 'processor', number | null>
  return { ...cost, calls: calls ?? NaN, processor: processor ?? NaN }
}

export function peerNamed(name: string): Peer {
  const found = peers.find((peer) => peer.name === name)
  if (!found) throw new Error(`no peer ${name}`)
  return found
}
