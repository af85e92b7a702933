/**
 * V8 counts bytes outside of its heap (buffers) against a limit of their own, of 64 MB, before it looks for garbage among them, and glibc
 * keeps the memory that it frees: a process that reads one Secret of 1 MiB after the other holds as much garbage. So code that has read or
 * released much content says so here, and each few MiB bring a collection of garbage, which takes about 10 ms.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of content between two collections: on their way from the wire, these are about five times as much. */
const interval = 2 * 1024 * 1024

/**
 * Milliseconds. V8 frees collected memory on another thread; and at the moment of a collection some code may still refer to old content: a
 * pass that writes its status, a slow server. An idle process allocates nothing that would bring the next one.
 */
const collectDelay = 1_000

/** Milliseconds without content after which a process that stays collects all the same: its start has left a fifth of its heap behind. */
const rest = 3_000
/** Milliseconds from one such collection to the next, which takes about 30 ms; or bytes of content. */
const seldom = 10 * 60_000
const muchSince = 1024 * 1024

let passed = 0
let collect: ((how?: object) => void) | undefined
let later: NodeJS.Timeout | undefined
let resting: NodeJS.Timeout | undefined
let rested = -Infinity
let passedSinceRest = 0
let returnFreed: (() => void) | undefined

/** From now on what a collection has freed is returned to the system, too: for a process that stays. */
export function returnMemoryWith(returnFreedMemory: () => void): void {
  returnFreed = returnFreedMemory
}

/** So many bytes of content have passed through memory. */
export function contentPassed(bytes: number): void {
  passed += bytes
  passedSinceRest += bytes
  collectAtRest()
  if (passed < interval) return
  passed = 0
  collectGarbage()
  clearTimeout(later)
  later = setTimeout(compact, collectDelay).unref()
}

function collectAtRest(): void {
  const isSoon = performance.now() - rested < seldom && passedSinceRest < muchSince
  if (returnFreed === undefined || isSoon) return
  clearTimeout(resting)
  resting = setTimeout(() => {
    rested = performance.now()
    passedSinceRest = 0
    compact()
  }, rest).unref()
}

/** The major version of V8: that of Node 20 is 11. */
const major = Number.parseInt(process.versions.v8, 10)

/**
 * Of what was freed here and there, V8 gives a page back only once nothing is left in it. From Node 22 on it keeps such pages for the next ones
 * (13 MB of them, for 8 s after each compaction), unless the collection is one for want of memory; Node 20 takes a `gc` with options for a
 * collection of the young alone.
 */
function compact(): void {
  if (major >= 12) collectGarbage({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  else {
    setFlagsFromString('--compact-on-every-full-gc')
    collectGarbage()
    setFlagsFromString('--no-compact-on-every-full-gc')
  }
  later = setTimeout(() => returnFreed?.(), collectDelay).unref()
}

function collectGarbage(how?: object): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as typeof collect
  }
  collect?.(how)
  returnFreed?.()
}
