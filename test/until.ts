/** Waiting for something to become true, with a deadline and a message that says what did not. */
import { availableParallelism, loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'

/** How many times longer everything takes while others keep the machine busy. */
export function busyness(): number {
  const [load = 0] = loadavg()
  return Math.min(8, Math.max(1, load / (2 * availableParallelism())))
}

/** Aborted at the end of the test. */
export function signalOf(t: Pick<Test, 'teardown'>): AbortSignal {
  const ending = new AbortController()
  t.teardown(() => ending.abort())
  return ending.signal
}

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/**
 * Calls `check` every `every` milliseconds until it returns something truthy, and returns that. An error counts as not yet. The default is
 * 20 ms at first, and a tenth of the time waited later, up to 100 ms: a check may be a whole command, and take its CPU.
 * @throws Error naming `what`, after `within` milliseconds (default 60 000) of a machine that is not busy, with the last thing that `check` said.
 */
export async function until<T>(
  what: string,
  check: () => T | Promise<T>,
  { within = 60_000, every }: { within?: number; every?: number } = {},
): Promise<Truthy<T>> {
  const start = performance.now()
  let last: unknown
  do {
    try {
      const value = await check()
      if (value) return value as Truthy<T>
      last = value
    } catch (error) {
      last = error
    }
    await sleep(every ?? Math.min(Math.max((performance.now() - start) / 10, 20), 100))
  } while (performance.now() < start + within * busyness())
  throw new Error(`${what}: not within ${within} ms; last: ${String(last)}`, { cause: last })
}
