/** What all readers say of a target, each asked by itself; and whether those that tell one fact agree. */
import { join } from 'node:path'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { readRecord, readPublication } from '../../../src/durable/look/inspect.js'
import { type KeptBeside, listKept } from '../../../src/durable/look/list-kept.js'
import { readHistory } from '../../../src/durable/look/read-history.js'
import { readContent } from '../../../src/durable/look/target-content.js'
import type { Hold, PastContent, Pin, Publication } from '../../../src/durable/types.js'
import { codeOf } from '../../../src/errors.js'
import { kindOf, visibleTree } from './contents.js'
import type { Ground } from './play.js'
import { nameOf, parentOf, type Snapshot } from './snapshot.js'

export interface Facts {
  /** The files that a program finds there, as one text; '' for nothing. */
  readonly text: string
  readonly publication: Publication | undefined
  readonly hold: Hold | Pin | undefined
  readonly past: readonly PastContent[]
  readonly kept: KeptBeside | undefined
  readonly sequence: number | undefined
  /** Readers that failed, each with its errno. */
  readonly failed: Readonly<Record<string, string>>
}

export const emptyDirectory = 'an empty directory'

/** Names and bytes, without modes and owners: of those the digest tells. */
function textAt(snapshot: Snapshot, path: string): string {
  // A target inside this one has names of its own beside it.
  const isKey = (name: string): boolean => kindOf(path) === 'file' || (name !== '' && !name.includes('.holdfast-'))
  const seen = [...visibleTree(snapshot, path)].filter(([name, { type }]) => isKey(name) && type !== 'directory')
  const lines = seen.map(([name, { data }]) => `${name}: ${data}`).sort()
  return lines.length === 0 && visibleTree(snapshot, path).size > 0 ? emptyDirectory : lines.join('')
}

export async function factsOf(ground: Ground, path: string, snapshot: Snapshot): Promise<Facts> {
  const failed: Record<string, string> = {}
  return ground.run(async (fs: FileSystem, base) => {
    const target = join(base, path)
    const ask = async <T>(name: string, look: Promise<T>): Promise<T | undefined> =>
      look.catch((error: unknown) => {
        const code = codeOf(error)
        if (code === undefined) throw error
        failed[name] = code
        return undefined
      })
    const kept = (await ask('listKept', listKept(fs, join(base, parentOf(path))))) ?? []
    return {
      text: textAt(snapshot, path),
      publication: await ask('readPublication', readPublication(fs, target)),
      hold: await ask(
        'readRecord',
        readRecord(fs, target).then((said) => said?.hold),
      ),
      past: (await ask('readHistory', readHistory(fs, target))) ?? [],
      kept: kept.find(({ name }) => name === nameOf(path)),
      sequence: (await ask('readContent', readContent(fs, target)))?.sequence,
      failed,
    }
  })
}

/** What a call that rejects may not change. How far a move has come is written down before its next step is refused. */
export function saidOf({ publication, hold, past, kept }: Facts, isMoving = false): Readonly<Record<string, unknown>> {
  const {
    settled: _,
    durable: __,
    retired: ___,
    relocation,
    movedTo,
    sequence,
    ...said
  } = publication ?? ({} as Publication)
  return {
    publication: publication && {
      ...said,
      // What a killed publication has left inside a target goes with the next attempt.
      differences: said.differences
        .filter(({ path, problem }) => problem !== 'unexpected' || !path.startsWith('..'))
        .map(({ path, problem }) => `${path} ${problem}`),
    },
    ...(!isMoving && { relocation, movedTo, sequence }),
    hold,
    past: past.map(({ sequence, state, digest, why }) => ({ state, digest, why, ...(!isMoving && { sequence }) })),
    publisher: kept?.publisher,
  }
}

/** The first fact of which these differ, for people. */
export function differenceOf(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): string | undefined {
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [one, other] = [JSON.stringify(before[key]), JSON.stringify(after[key])]
    if (one !== other) return `${key}: ${shortened(one)} became ${shortened(other)}`
  }
  return undefined
}

function shortened(text: string | undefined): string {
  return text === undefined ? 'nothing' : text.length > 700 ? `${text.slice(0, 700)}…` : text
}

/** Two readers of one fact that say different things; undefined: all agree. */
export function disagreement(facts: Facts): string | undefined {
  const { publication, hold, past, kept, sequence, failed } = facts
  // What one reader cannot read, another may not need.
  if (Object.keys(failed).length > 0) return undefined
  const [present] = past
  const records = kept?.publishedAt !== undefined
  if ((publication === undefined) !== (present === undefined))
    return `readPublication says ${publication?.digest ?? 'nothing'}, readHistory says ${present?.digest ?? 'nothing'}`
  if ((publication === undefined) === records)
    return `readPublication says ${publication?.digest ?? 'nothing'}, listKept has ${records ? 'a record' : 'no record'}`
  if (publication === undefined || present === undefined) return undefined
  const word = publication.hold ?? publication.pin
  const intact = publication.actual === publication.digest
  const pairs: readonly (readonly [string, unknown, string, unknown])[] = [
    ['readPublication.hold or pin', word, 'readRecord', hold],
    ['readPublication.hold', publication.hold, 'listKept.hold', kept?.hold],
    ['readPublication.pin', publication.pin, 'listKept.pin', kept?.pin],
    ['readPublication.movedTo', publication.movedTo, 'listKept.movedTo', kept?.movedTo],
    ['readPublication.relocation', publication.relocation, 'listKept.movedFrom', kept?.movedFrom],
    ['readPublication.letGo', publication.letGo, 'listKept.letGo', kept?.letGo],
    ['readPublication.publishedAt', publication.publishedAt, 'listKept.publishedAt', kept?.publishedAt],
    ['readPublication.publishedAt', publication.publishedAt, 'readHistory', present.publishedAt],
    ['readPublication.digest', publication.digest, 'readHistory', present.digest],
    ['readContent.sequence', sequence, 'readHistory', present.sequence],
    ['the digest of what is there as published', intact, 'readHistory.present', present.state === 'present'],
  ]
  for (const [one, first, other, second] of pairs) {
    if (JSON.stringify(first) !== JSON.stringify(second))
      return `${one} says ${shortened(JSON.stringify(first))}, ${other} says ${shortened(JSON.stringify(second))}`
  }
  const isVerified = publication.differences.length === 0
  if (isVerified && !intact) return 'verify finds no difference, and the digest is another one'
  return undefined
}
