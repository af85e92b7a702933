/** Time that a test moves: limits of seconds pass in milliseconds, and no loaded machine is late for them. */
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { tcpConnections, tcpStates } from './processes.js'

interface Test {
  teardown(work: () => unknown): void
}

type Work = (...values: unknown[]) => void

/** What stands for one of Node's timers. */
class Timer {
  constructor(
    readonly stop: () => void,
    readonly refresh: () => Timer,
  ) {}

  ref = (): this => this
  unref = (): this => this
  hasRef = (): boolean => true
}

/**
 * From its making to the end of the test, setTimeout, setInterval and performance.now() of this process go by this time. Timers that ran
 * before, those of Node's own sockets, and what a module imports by name from node:timers or node:perf_hooks go by the real one.
 */
export class SimulatedTime {
  /** A whole number: differences of whole times are exact. */
  #now = Math.ceil(performance.now())

  /** Milliseconds, as performance.now() counts them meanwhile. */
  get now(): number {
    return this.#now
  }

  readonly #due = new Map<Timer, { at: number; run: () => void }>()

  constructor(t: Test) {
    const { setTimeout, setInterval, clearTimeout, clearInterval, performance } = globalThis
    t.teardown(() => Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval, performance }))
    const clear = (timer: unknown): void => {
      if (timer instanceof Timer) timer.stop()
      else clearTimeout(timer as NodeJS.Timeout | undefined)
    }
    Object.assign(globalThis, {
      setTimeout: (work: Work, delay?: number, ...values: unknown[]) => this.#timer(false, work, delay, values),
      setInterval: (work: Work, delay?: number, ...values: unknown[]) => this.#timer(true, work, delay, values),
      clearTimeout: clear,
      clearInterval: clear,
      performance: { now: () => this.#now },
    })
  }

  /** Sets the wall clock, which is real, back until the end of the test: an interval must not go by it. */
  setBack(t: Test, milliseconds: number): void {
    const { now } = Date
    t.teardown(() => (Date.now = now))
    Date.now = () => now() - milliseconds
  }

  /** Time passes, and no timer runs: something holds the loop up. */
  holdUp(milliseconds: number): void {
    this.#now += milliseconds
  }

  /** Runs each timer that is due within these milliseconds, at its time, and lets what it leads to happen before the next one. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds
    await settled()
    for (;;) {
      const [next] = [...this.#due.values()].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      // A timer that `holdUp` made late runs now.
      this.#now = Math.max(this.#now, next.at)
      next.run()
      await settled()
    }
    this.#now = end
  }

  /** Advances by `step` until the condition holds. */
  async until(what: string, condition: () => boolean, step: number, most = 600_000): Promise<void> {
    for (let passed = 0; !condition(); passed += step) {
      if (passed > most) throw new Error(`${what}: not within ${most} simulated ms`)
      await this.advance(step)
    }
  }

  /** Advances until the work has settled. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    work.then(settle, settle)
    await this.until('the work', () => isSettled, 50)
    return work
  }

  #timer(repeats: boolean, work: Work, delay = 1, values: readonly unknown[]): Timer {
    const timer: Timer = new Timer(
      () => this.#due.delete(timer),
      () => {
        const run = (): void => {
          if (repeats) timer.refresh()
          else timer.stop()
          work(...values)
        }
        this.#due.set(timer, { at: this.#now + Math.max(1, delay), run })
        return timer
      },
    )
    return timer.refresh()
  }
}

/** Milliseconds after which `settled` no longer waits for requests and bytes that do not move: of a disk that hangs, of a delayed ACK. */
const untilRest = 20

/** The requests and bytes for which `settled` waited in vain. */
let resting = ''

/**
 * Waits until this process's sockets and calls of the file system rest. Each turn of the loop reads what the turn before wrote, but a busy
 * machine delivers those bytes, or the answer of a disk, some turns later.
 */
export async function settled(): Promise<void> {
  await turns()
  let [last, since] = ['', realNow()]
  for (let now = underWay(); now !== '' && now !== resting; now = underWay()) {
    if (now !== last) [last, since] = [now, realNow()]
    else if (realNow() - since > untilRest) resting = now
    await turns()
  }
}

const realNow = performance.now.bind(performance)

async function turns(): Promise<void> {
  for (let count = 0; count < 5; count++) await turn()
  await sleep(1)
  for (let count = 0; count < 5; count++) await turn()
}

/** Requests that a thread of libuv or the kernel works on, and TCP connections with bytes that their peer has not received. */
function underWay(): string {
  const resources = process.getActiveResourcesInfo()
  const requests = resources.filter((name) => /^(FSReq|GetAddrInfo|\w+ConnectWrap)/.test(name))
  return [...requests, ...(resources.some((name) => name.startsWith('TCP')) ? unreceived() : [])].join()
}

function unreceived(): string[] {
  return tcpConnections(process.pid)
    .filter(
      ({ state, queues }) =>
        state === tcpStates.synSent ||
        state === tcpStates.synReceived ||
        (state === tcpStates.established && !queues.startsWith('00000000:')),
    )
    .map(({ queues, inode }) => `${inode} ${queues}`)
}
