import { sendDatagram } from '../../native/index.js'
import { codeOf, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { ReadyzAnswer } from './report/http-server.js'

/*
 * The words of sd_notify(3), for a unit with Type=notify. systemd starts what comes after the unit at READY=1, ends the process where
 * WATCHDOG=1 stays away, and shows STATUS= in `systemctl status`.
 */

/** Where systemd hears this service. */
export interface NotifyTarget {
  /** A path, or `@` and an abstract name. */
  readonly socket: string
  /** Milliseconds in which systemd wants a sign of life; undefined: it wants none. */
  readonly watchdog: number | undefined
}

/** Reads systemd's variables in the environment of this process; undefined: the unit has no Type=notify. */
export function notifyTarget(env: NodeJS.ProcessEnv, pid: number): NotifyTarget | undefined {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: microseconds, WATCHDOG_PID: watched } = env
  if (!socket) return undefined
  const isWatched = Number(microseconds) > 0 && (!watched || Number(watched) === pid)
  return { socket, watchdog: isWatched ? Number(microseconds) / 1000 : undefined }
}

/**
 * Milliseconds after which the agent sends READY=1 with directories missing, too: kubelet, which waits for this unit, may have to start the API server that has
 * the missing objects.
 */
const longestStart = 30_000

/** Milliseconds that changes wait for one another; and until the next try where systemd's queue is full. */
const together = 100
const retry = 1_000

/** Signs of life in the time in which systemd wants one. */
const beats = 3

/** systemd reads 4,096 bytes of a message (PIPE_BUF); so many characters of UTF-8 have fewer. */
const longestStatus = 1_000
const mostNamed = 3

/** Messages that wait for room in systemd's queue: the newest ones. */
const mostUnsent = 32

interface NotifierOptions {
  readonly to: NotifyTarget
  readonly log: Log
  readonly readiness: () => ReadyzAnswer
  /** What else is wrong; undefined: nothing. */
  readonly problem: () => string | undefined
  /** `holdfast reload` finds this process. */
  readonly isFound: () => boolean
  /** Resolves when the loop that publishes has turned. */
  readonly turn: () => Promise<void>
  readonly longestStart?: number
}

/** Tells systemd the agent's state. */
export class SystemdNotifier {
  readonly #options: NotifierOptions
  readonly #late: NodeJS.Timeout
  readonly #beat: NodeJS.Timeout | undefined
  #soon: NodeJS.Timeout | undefined
  #isLate = false
  /** READY=1 was sent. */
  #isReady = false
  #status: string | undefined
  #unsent: string[] = []
  #again: NodeJS.Timeout | undefined
  #hasFailed = false
  #isTurning = false
  #closed = false

  constructor(options: NotifierOptions) {
    this.#options = options
    const { to, longestStart: limit = longestStart } = options
    this.#late = setTimeout(() => {
      this.#isLate = true
      this.#look()
    }, limit)
    if (to.watchdog !== undefined) this.#beat = setInterval(() => void this.#live(), to.watchdog / beats)
  }

  /** Readiness or a problem may have changed. */
  changed(): void {
    if (this.#closed) return
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.#look()
    }, together)
  }

  /** The agent reads its configuration again. Before READY=1, systemd has no reload: the READY=1 after it would end the start. */
  reloading(): void {
    if (!this.#isReady) return
    // libuv reads CLOCK_MONOTONIC, and so does systemd.
    this.#send(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
  }

  reloaded(): void {
    if (!this.#isReady) return
    this.#status = this.#statusText(this.#options.readiness())
    this.#send(`READY=1\nSTATUS=${this.#status}`)
  }

  /** The end begins, which has the whole time of the watchdog. */
  stopping(): void {
    this.close()
    this.#send('STOPPING=1\nWATCHDOG=1\nSTATUS=finishes what is in flight')
  }

  /** Says nothing any more. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#late)
    clearInterval(this.#beat)
    clearTimeout(this.#soon)
    clearTimeout(this.#again)
  }

  #look(): void {
    const { readiness, isFound, log, longestStart: limit = longestStart } = this.#options
    const now = readiness()
    const status = this.#statusText(now)
    const isReady = this.#isReady || this.#isLate || (now.ready && isFound())
    if (isReady && !this.#isReady) {
      if (!now.ready) log.warn({}, `systemd starts what waits for the agent, after ${limit / 1000} s: ${status}`)
      clearTimeout(this.#late)
      this.#send(`READY=1\nSTATUS=${status}`)
    } else if (status !== this.#status) this.#send(`STATUS=${status}`)
    this.#isReady = isReady
    this.#status = status
  }

  #statusText({ lines }: ReadyzAnswer): string {
    const problem = this.#options.problem()
    const missing = lines.filter((line) => line.startsWith('[-]')).map((line) => line.slice(3))
    const named = missing.slice(0, mostNamed).map((line) => line.slice(0, longestStatus / mostNamed))
    const more = missing.length > mostNamed ? [`${missing.length - mostNamed} more`] : []
    const text = [
      ...(problem === undefined ? [] : [problem]),
      missing.length === 0
        ? `${lines.length} of ${lines.length} directories are whole`
        : `${lines.length - missing.length} of ${lines.length} directories are whole; missing: ${[...named, ...more].join('; ')}`,
    ].join('; ')
    return text.replaceAll(/\s+/g, ' ').slice(0, longestStatus)
  }

  /** The sign of life is what the loop makes, and not the timer: where the loop hangs, and the timer does not, systemd hears nothing. */
  async #live(): Promise<void> {
    if (this.#isTurning) return
    this.#isTurning = true
    await this.#options.turn()
    this.#isTurning = false
    if (!this.#closed) this.#try('WATCHDOG=1')
  }

  /** Sends a message after those before it, now or as soon as systemd has room. */
  #send(message: string): void {
    this.#unsent = [...this.#unsent, message].slice(-mostUnsent)
    clearTimeout(this.#again)
    while (this.#unsent.length > 0) {
      const [first = ''] = this.#unsent
      if (this.#try(first) === 'full') {
        if (!this.#closed) this.#again = setTimeout(() => this.#resend(), retry)
        return
      }
      this.#unsent.shift()
    }
  }

  #resend(): void {
    const last = this.#unsent.pop()
    if (last !== undefined) this.#send(last)
  }

  #try(message: string): 'sent' | 'full' | 'failed' {
    const { to, log } = this.#options
    try {
      sendDatagram(to.socket, message)
      this.#hasFailed = false
      return 'sent'
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return 'full'
      log[this.#hasFailed ? 'debug' : 'warn']({}, `could not tell systemd of the agent's state: ${messageOf(error)}`)
      this.#hasFailed = true
      return 'failed'
    }
  }
}
