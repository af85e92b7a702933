/*
 * A call that rejects with `published: false` leaves every reader's answer as it was. Each call of a unit test that changes a target
 * goes through here (watch-door.ts), with the looks at the target before and after it: where an answer has changed, the call rejects with
 * an AssertionError instead. The look leaves out files that another program put into the target meanwhile: tests put them there on purpose.
 */
import { AssertionError } from 'node:assert'
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { readRecord, readPublication } from '../../src/durable/look/inspect.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { codeOf } from '../../src/errors.js'

type Call = (...args: never[]) => Promise<unknown>

/** How many calls are under way at a path, and how many have begun there: an answer that two of them race for proves nothing. */
const under = new Map<string, { running: number; begun: number }>()

/** How often a test has played another program, during a call, that changes readers' answers. */
const disturbances = new Set<symbol>()

/** A test says so for one change, with the reason: calls that are under way are not compared. */
export function changesMeanwhile(reason: string): void {
  disturbances.add(Symbol(reason))
}

/** Whether watch-door.ts has put a watched call in place of the module's own. */
export function isWatched(call: Call): boolean {
  return 'isWatched' in call
}

/** The same call, watched. It is a declaration, since modules that it looks with are watched, too. */
export function watch(name: string, real: Call): Call {
  const watched = async (...args: never[]): Promise<unknown> => {
    const paths = pathsOf(args)
    const begun = await Promise.all(paths.map(begin))
    try {
      const result = await real(...args).catch((error: unknown) => ({ thrown: error }))
      for (const [index, { path, before, alone }] of begun.entries()) {
        if (isUnpublished(result, index) && alone()) await compare(name, path, before)
      }
      if (isThrown(result)) throw result.thrown
      return result
    } finally {
      for (const { end } of begun) end()
    }
  }
  Object.defineProperty(watched, 'name', { value: name })
  Object.assign(watched, { isWatched: true })
  return watched
}

/** Of publications, or of a target by its path. The rules of the scenes judge what happens on a model disk. */
function pathsOf([first, second]: readonly unknown[]): string[] {
  const targets = (Array.isArray(first) ? first : [{ fs: first, path: second }]) as { fs: unknown; path: unknown }[]
  if (!targets.every(({ fs }) => fs instanceof NodeFileSystem)) return []
  return targets.map(({ path }) => path).filter((path) => typeof path === 'string' && path.startsWith('/')) as string[]
}

async function begin(path: string) {
  const state = under.get(path) ?? { running: 0, begun: 0 }
  under.set(path, state)
  const wasAlone = state.running === 0
  const mine = ++state.begun
  state.running += 1
  const before = await answersOf(path)
  const place = placeOf(path)
  const disturbed = disturbances.size
  const end = () => (state.running -= 1)
  // Where another program has renamed a directory above it, the path leads to another target.
  const alone = () => wasAlone && state.begun === mine && placeOf(path) === place && disturbances.size === disturbed
  return { path, before, end, alone }
}

/** Of the directory above it; where there is none, or a loop of links, what the system says. */
function placeOf(path: string): string {
  try {
    const { dev, ino, birthtimeNs } = statSync(dirname(path), { bigint: true })
    return `${dev}:${ino}:${birthtimeNs}`
  } catch (error) {
    return String(codeOf(error))
  }
}

function isThrown(result: unknown): result is { thrown: unknown } {
  return typeof result === 'object' && result !== null && 'thrown' in result
}

function isUnpublished(result: unknown, index: number): boolean {
  const one: unknown = Array.isArray(result) ? result[index] : undefined
  const error = isThrown(result) ? result.thrown : (one as { error?: unknown } | undefined)?.error
  return (error as { published?: unknown } | undefined)?.published === false
}

async function compare(name: string, path: string, before: unknown): Promise<void> {
  const after = await answersOf(path)
  if (isDeepStrictEqual(after, before)) return
  const message = `${name} rejected with published: false, and readers of ${path} are told something else than before`
  throw new AssertionError({ message, actual: after, expected: before, operator: 'deepStrictEqual' })
}

/** Every answer about a target but the ones that the disk itself decides; an unreadable part is not compared. */
async function answersOf(path: string): Promise<unknown> {
  const fs = new NodeFileSystem()
  fs.now = () => 0
  const [publication, history, hold] = await Promise.all([
    quiet(readPublication(fs, path)),
    quiet(readHistory(fs, path)),
    quiet(readRecord(fs, path).then((said) => said?.hold)),
  ])
  const { digest, publishedAt, objects, pendingHooks, pin, movedTo, relocation } = publication ?? {}
  const past = history?.map(({ sequence, why }) => ({ sequence, why }))
  return { digest, publishedAt, objects, pendingHooks, pin, movedTo, relocation, hold, past }
}

function quiet<T>(look: Promise<T>): Promise<T | undefined> {
  return look.catch(() => undefined)
}
