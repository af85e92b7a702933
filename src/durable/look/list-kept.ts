import { join } from 'node:path'
import type { Descriptor, FileSystem } from '../file-system.js'
import { letGoSince, isInForce, isPinned, readAllRecords, readRecords } from '../record/index.js'
import {
  generationPattern,
  namesFor,
  ownPattern,
  recordPattern,
  stagingPattern,
  checkTarget,
  atPlace,
} from '../path/index.js'
import { findRetired } from '../keep/index.js'
import type { Hold, Pin, Publisher, Relocation } from '../types.js'
import { TargetSnapshot } from './snapshot.js'

/* What holdfast keeps in a directory, for each target there is or was. Nothing is locked, made or removed. */

/** The files that a directory keeps for one present or former target. All but `name` are names in that directory. */
export interface KeptBeside {
  /** The target's; null where no record tells it. */
  readonly name: string | null
  /** Something has this name now. */
  readonly there: boolean
  readonly records: string[]
  /** Earlier contents. */
  readonly generations: string[]
  /** Old content that stays for those who use it. */
  readonly retired: string[]
  /** Of publications that were interrupted, or are under way. */
  readonly leftovers: string[]
  /** What another program put there. */
  readonly foreign: string[]
  readonly publishedAt?: Date
  /** Absent after a by-hand call. */
  readonly publisher?: Publisher
  /** Since then no configuration names it. */
  readonly letGo?: Date
  /** Where its content moves to. */
  readonly movedTo?: string
  /** Where it was before, and how far its move has come. */
  readonly movedFrom?: Relocation
  /** In force now. */
  readonly hold?: Hold | undefined
  readonly pin?: Pin | undefined
}

/** By the targets' names; empty where there is no such directory. What a publication has just staged is among it. */
export async function listKept(fs: FileSystem, directory: string): Promise<KeptBeside[]> {
  // Any name in it leads there.
  return atPlace(fs, checkTarget(`${directory}/name`), async ({ anchor: parent, missing }) => {
    if (missing.length > 0) return []
    const listing = (await fs.list(parent)).filter((name) => ownPattern.test(name))
    if (listing.length === 0) return []
    const names = [...new Set((await readAllRecords(fs, parent)).map(({ name }) => name))].sort()
    const named: KeptBeside[] = []
    for (const name of names) named.push(await keptFor(fs, directory, parent, name, listing))
    const known = new Set(names.map((name) => idOf(namesFor(name).lock)))
    return [...named, ...unnamed(listing.filter((entry) => !known.has(idOf(entry))))]
  })
}

async function keptFor(
  fs: FileSystem,
  directory: string,
  parent: Descriptor,
  name: string,
  listing: readonly string[],
): Promise<KeptBeside> {
  const names = namesFor(name)
  const { valid, torn, newer, staging, quarantined, generations } = await readRecords(fs, parent, name, names, listing)
  const retired = (await findRetired({ fs, parent }, valid)).map((tree) => tree.name)
  // Where the target cannot be read, as beside a publication in the same instant, its newest record speaks.
  const record = await new TargetSnapshot(fs, join(directory, name), parent, name, valid).record().catch(() => valid[0])
  const letGo = record && letGoSince(record)
  return {
    name,
    there: (await fs.look(parent, name)) !== undefined,
    records: [...valid.map(({ sequence }) => sequence), ...torn, ...newer].map(names.record),
    generations: [...generations],
    retired,
    leftovers: staging.map(names.staging).filter((entry) => !retired.includes(entry)),
    foreign: quarantined.map(names.quarantine),
    ...(record && { publishedAt: new Date(record.publishedAt) }),
    ...(record?.publisher && { publisher: record.publisher }),
    ...(letGo !== undefined && { letGo: new Date(letGo) }),
    ...(record?.movedTo !== undefined && { movedTo: record.movedTo }),
    ...(record?.relocation && { movedFrom: record.relocation }),
    ...(isInForce(record?.hold, fs.now()) && { hold: record.hold }),
    ...(isPinned(record?.pin, fs.now()) && { pin: record.pin }),
  }
}

/** No record names their target: its name looks like theirs. */
function unnamed(entries: readonly string[]): KeptBeside[] {
  const families = [...new Set(entries.map(idOf))].sort()
  return families.flatMap((id) => {
    const own = entries.filter((entry) => idOf(entry) === id && !entry.endsWith('.lock'))
    if (own.length === 0) return []
    const of = (pattern: RegExp) => own.filter((entry) => pattern.test(entry))
    return [
      {
        name: null,
        there: false,
        records: of(recordPattern),
        generations: of(generationPattern),
        retired: [],
        leftovers: of(stagingPattern),
        foreign: of(/\.foreign$/),
      },
    ]
  })
}

function idOf(entry: string): string {
  return ownPattern.exec(entry)?.[1] ?? ''
}
