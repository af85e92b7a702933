import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { KeptBeside } from '../../durable/look/index.js'
import type { RelocationState } from '../../durable/types.js'
import { codeOf, messageOf } from '../../errors.js'
import { pathArgument } from '../words/target.js'
import { age, table } from './table.js'

/* Entries that holdfast keeps for paths outside of the configuration: of directories that left it, and of other commands. */

/** As `status -o json` shows it. */
export interface Orphan extends Omit<
  KeptBeside,
  'name' | 'publishedAt' | 'hold' | 'pin' | 'letGo' | 'movedTo' | 'movedFrom'
> {
  /** null where no record tells it. */
  readonly path: string | null
  /** Where it lies. */
  readonly directory: string
  readonly publishedAt: string | null
  readonly held: boolean
  readonly pinned: boolean
  /** When it left the configuration of the agent that has published it; null: it has not. */
  readonly letGo: string | null
  /** Where its content moves to, or has moved; null: nowhere. */
  readonly movedTo: string | null
  /** Where it was before, and how far the move has come; null: it did not move. */
  readonly movedFrom: { readonly path: string; readonly state: RelocationState } | null
  /** Why the directory's content is unknown; null where holdfast has read it. */
  readonly error: string | null
}

/**
 * Looks beside the configured paths, and in and beside the others. A path is known by its directory without symbolic links, and its
 * name.
 */
export async function findOrphans(configured: readonly string[], others: readonly string[]): Promise<Orphan[]> {
  const { listKept } = await import('../../durable/index.js')
  const asked = others.map(pathArgument)
  const [known, named] = [await realPaths(configured), await realPaths(asked)]
  const whole = new Set(await Promise.all([...configured.map((path) => dirname(path)), ...asked].map(real)))
  const directories = new Set([...whole, ...[...named].map((path) => dirname(path))])
  const orphans: Orphan[] = []
  for (const directory of [...directories].sort()) {
    const found = await listKept(directory).catch((failure: unknown) => ({ failure }))
    if ('failure' in found) {
      // A file has nothing in it.
      if (codeOf(found.failure) !== 'ENOTDIR') orphans.push(notLookedAt(directory, found.failure))
      continue
    }
    for (const { name, publishedAt, hold, pin, letGo, movedTo, movedFrom, ...kept } of found) {
      const path = name === null ? null : join(directory, name)
      if (path === null ? !whole.has(directory) : known.has(path) || !(whole.has(directory) || named.has(path)))
        continue
      const said = {
        publishedAt: publishedAt?.toISOString() ?? null,
        held: hold !== undefined,
        pinned: pin !== undefined,
        letGo: letGo?.toISOString() ?? null,
        movedTo: movedTo ?? null,
        movedFrom: movedFrom ? { path: movedFrom.from, state: movedFrom.state } : null,
        error: null,
      }
      orphans.push({ path, directory, ...kept, ...said })
    }
  }
  return orphans
}

/** The line of an unreadable directory, which hides nothing of the rest. */
function notLookedAt(directory: string, failure: unknown): Orphan {
  const nothing = { records: [], generations: [], retired: [], leftovers: [], foreign: [] }
  const unknown = {
    path: null,
    publishedAt: null,
    there: false,
    held: false,
    pinned: false,
    letGo: null,
    movedTo: null,
    movedFrom: null,
  }
  return { ...unknown, directory, ...nothing, error: messageOf(failure) }
}

async function realPaths(paths: readonly string[]): Promise<Set<string>> {
  return new Set(await Promise.all(paths.map(async (path) => join(await real(dirname(path)), basename(path)))))
}

/** A missing path stands for itself. */
function real(path: string): Promise<string> {
  return realpath(path).catch(() => path)
}

const publishers = { agent: 'the agent', install: 'install', rollout: 'rollout' } as const

const kinds = {
  records: 'record',
  generations: 'earlier content',
  retired: 'old content in use',
  leftovers: 'leftover',
  foreign: 'foreign',
} as const satisfies Partial<Record<keyof Orphan, string>>

function orphanState({ there, held, pinned, letGo, movedTo, movedFrom }: Orphan): string {
  const moves =
    movedFrom && movedFrom.state !== 'done' ? `moves from ${movedFrom.path} (${movedFrom.state})` : undefined
  const goes = movedTo === null ? undefined : `moves to ${movedTo}`
  const said = [
    there ? 'there' : 'gone',
    held && 'held',
    pinned && 'pinned',
    letGo !== null && `let go at ${letGo}`,
    goes,
    moves,
  ]
  return said.filter((one) => typeof one === 'string').join(', ')
}

/** The table, or that there is nothing. */
export function orphansText(orphans: readonly Orphan[], now: Date): string {
  if (orphans.length === 0) return 'holdfast keeps nothing there for paths that are not configured\n'
  const rows = orphans.map((orphan) => {
    const { path, directory, publisher, publishedAt, error } = orphan
    if (error !== null) return [`unknown, in ${directory}`, '-', '-', '-', `not looked at: ${error}`]
    const counts = (Object.keys(kinds) as (keyof typeof kinds)[])
      .filter((kind) => orphan[kind].length > 0)
      .map((kind) => `${orphan[kind].length} × ${kinds[kind]}`)
    return [
      path ?? `unknown, in ${directory}`,
      publishedAt === null ? '-' : publisher ? publishers[publisher] : 'a command',
      publishedAt === null ? '-' : age(new Date(publishedAt), now),
      orphanState(orphan),
      counts.join(', '),
    ]
  })
  return table([['NOT CONFIGURED', 'PUBLISHED BY', 'AGE', 'STATE', 'KEPT'], ...rows])
}
