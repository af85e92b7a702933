import type { Test } from 'tap'
import { Random } from '../../random.js'
import { replay, seed } from '../../seed.js'
import type { Call, Fault } from './recorder.js'
import type { Scene } from './scene.js'

/** What a call can answer that the core tells apart, and what a full disk or a full table of descriptors has it answer; any call can meet a bad disk. */
const codes: Readonly<Record<string, readonly string[]>> = {
  openPath: ['ENOENT', 'EACCES', 'EMFILE'],
  openDirectory: ['ENOENT', 'EXDEV', 'EMFILE'],
  openFile: ['ENOENT', 'ELOOP', 'EACCES', 'EMFILE'],
  openAppend: ['ENOENT'],
  openLock: ['EISDIR', 'EROFS'],
  createFile: ['ENOSPC', 'EMFILE'],
  createDirectory: ['EEXIST', 'ENOSPC'],
  readLink: ['ENOENT', 'EINVAL'],
  list: ['ENOENT', 'EMFILE'],
  write: ['EDQUOT', 'ENOSPC'],
  setMode: ['ENOSPC'],
  sync: ['ENOSPC'],
  startWriteOut: ['ENOSPC'],
  setLabel: ['EPERM', 'ENOTSUP'],
  setExtendedAttribute: ['ENOSPC', 'ENOTSUP'],
  rename: ['EINVAL', 'ENOSYS', 'EXDEV', 'ENOENT', 'EEXIST', 'EBUSY', 'ENOSPC'],
  removeFile: ['ENOENT', 'EISDIR'],
  removeDirectory: ['ENOENT', 'ENOTEMPTY'],
}

/** Calls that never fail, or whose failure means that another publisher has the lock: interrupted-calls.test.ts does that. */
const infallible = new Set(['close', 'tryLock', 'bootId'])

/** Each call that is drawn, with each errno that it can answer. */
export function faultsOf(calls: readonly Call[]): Fault[] {
  return drawn(calls)
    .filter(({ name }) => !infallible.has(name))
    .flatMap(({ index, name }) => ['EIO', ...(codes[name] ?? [])].map((code) => ({ index, code })))
}

/** Calls that only look: of each kind the first, and of the others so many, drawn anew in each run. */
const looks = /^(open|look|attributes|read|list|entries|label|extended|mount)/
const oneOf = 3

/** Where something is done to a scene: at each call that changes or syncs something, and at some of those that only look. */
export function drawn(calls: readonly Call[]): Call[] {
  const met = new Set<string>()
  return calls.filter(({ index, name }) => {
    const isFirst = !met.has(name)
    met.add(name)
    return isFirst || !looks.test(name) || /^open(Lock|Append)$/.test(name) || index % oneOf === seed % oneOf
  })
}

/** HOLDFAST_PLAYS=all: as the crash suite asks. */
const playsAll = process.env['HOLDFAST_PLAYS'] === 'all'

/** The share of the plays that a seed draws. */
const share = 1 / 12

/** All plays; where nobody asks for all, the sixth of them that two seeds draw. */
function drawnPlays<Play>(all: readonly Play[], scene: string): readonly Play[] {
  if (playsAll) return all
  const draws = [1, seed].map((one) => Random.for(one, scene))
  return all.filter(() => draws.map((random) => random.next() < share).includes(true))
}

/** Each of these plays of a scene that is drawn: its judge finds no breach. */
export async function playEach<Play>(
  t: Test,
  { name }: Scene,
  all: readonly Play[],
  judge: (play: Play) => Promise<readonly (string | undefined)[]>,
): Promise<void> {
  const plays = drawnPlays(all, name)
  const breaches: (string | undefined)[] = []
  for (const play of plays) breaches.push(...(await judge(play)))
  const found = breaches.filter((breach) => breach !== undefined)
  t.equal(found[0], undefined, `${found.length} breaches in ${plays.length} plays`)
}

/** For the comments of a test that draws. */
export const playsDrawn = playsAll ? 'all plays' : `a sixth of the plays, HOLDFAST_PLAYS=all for all; ${replay}`
