import { find, missing, type Target } from './content.js'
import { prepared } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import type { Inode } from './inode.js'
import { settledLedger } from './ledger.js'
import type { ModelDisk } from './model-disk.js'
import { makeDirectory, makeEntry } from './scenario.js'

type Put = (disk: ModelDisk, path: string) => void

const full: Put = (disk, path) => {
  makeDirectory(disk, path, 0o755)
  makeEntry(disk, `${path}/theirs`, 'file', 0o644, 'theirs')
}
const empty: Put = (disk, path) => {
  makeDirectory(disk, path, 0o755)
}
const file: Put = (disk, path) => {
  makeEntry(disk, path, 'file', 0o644, 'theirs')
}

const link: Put = (disk, path) => {
  makeEntry(disk, path, 'symlink', 0o777, 'moved-away')
}

/** What another program may put under a target's name. */
export const puts = { exchange: [full, empty, file, link], file: [file, link] } as const

/**
 * Another program puts its own under the target's name in the last instant before the exchange: a full directory, an empty
 * one, a file, a link. It must be there afterwards, and the answer that nothing was published.
 */
export async function exploreForeigners(explorer: Explorer): Promise<void> {
  const [target] = explorer.scenario.targets
  if (!target || explorer.scenario.targets.length > 1 || target.form === 'symlink') return
  const start = await prepared(explorer)
  const first = start.ledgers[0]?.visible === missing
  // rename(2) replaces an existing file, whichever it finds.
  if (target.form === 'file' && !first) return
  for (const put of puts[target.form]) {
    await intrude(explorer, start, target, put)
    explorer.counts.faults += 1
  }
}

async function intrude(explorer: Explorer, start: Position, target: Target, put: Put): Promise<void> {
  const { scenario } = explorer
  const [catalogue] = explorer.catalogues
  const disk = start.disk.fork()
  const name = target.path.slice(target.path.lastIndexOf('/') + 1)
  const intrusions: string[] = []
  const run = await explorer.attempt({ ...start, disk }, scenario.step, 'a foreign program comes first;', {
    prepare: (process) => {
      process.before = (call, to) => {
        if (intrusions.length > 0 || call !== 'rename' || to !== name) return
        intrusions.push(call)
        moveAway(disk, target.path)
        put(disk, target.path)
        catalogue?.learn('theirs', disk)
      }
    },
  })
  if (intrusions.length === 0) return
  const [outcome] = run.outcomes
  if (!outcome || !('error' in outcome) || outcome.error.published) {
    explorer.report('a foreign program came first, and that is not reported', run.trail)
  }
  explorer.visible({ disk, ledgers: [settledLedger('theirs')], trail: run.trail })
}

/** Where another program keeps the content that it takes away, and its own before. */
export const elsewhere = '/etc/moved-away'

/** The target's entry leaves its parent. */
export function moveAway(disk: ModelDisk, path: string): void {
  rename(disk, path, elsewhere)
}

/** It comes back, over any entry of its name; false where it never left. */
export function putBack(disk: ModelDisk, path: string): boolean {
  return rename(disk, elsewhere, path)
}

function rename(disk: ModelDisk, from: string, to: string): boolean {
  const parts = (path: string): [Inode | undefined, string] => {
    const cut = path.lastIndexOf('/')
    return [find(disk, path.slice(0, cut)), path.slice(cut + 1)]
  }
  const [[origin, name], [goal, newName]] = [parts(from), parts(to)]
  const inode = origin && disk.child(origin.number, name)
  if (!origin || !goal || !inode) return false
  disk.link(goal.number, [[newName, inode.number]], 'a foreign rename')
  disk.link(origin.number, [[name, undefined]], 'a foreign rename')
  return true
}
