import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Log } from '../src/log.js'
import { messageOf } from '../src/errors.js'

/**
 * Reads the announced generations, one number a line, until its input ends. Where `end` did not come first, the program was killed while
 * the machine went on: the guard leaves the mark for it. Its own durability is that of an orderly restart.
 */
const script = `trap '' HUP INT TERM
last=$2
while read -r word; do last=$word; done
[ "$last" = end ] || : > "$1-$last"`

const advice = 'if this is killed and the machine restarted then, say --reset'

/**
 * A process beside this one, which leaves the mark that this one cannot leave once it is killed: the witness hears nothing of that while
 * the network is away, and the next orderly restart would count as a power cut.
 */
export class Guard {
  #ended = false

  private constructor(
    private readonly child: ChildProcess,
    log: Log,
  ) {
    child.stdin?.on('error', () => undefined)
    child.once('exit', (code, signal) => {
      if (!this.#ended) log.warn({}, `sh ended early (${signal ?? code}); ${advice}`)
    })
    child.unref()
  }

  /**
   * `mark`: the path of the mark, without its generation. `generation`: the last announced one.
   * undefined, and a line in the log, where there is no shell.
   */
  static async start(mark: string, generation: number, log: Log): Promise<Guard | undefined> {
    try {
      // A separate process group: a terminal's signal to ours does not end it. Nor does it keep a disk from being unmounted.
      const child = spawn('sh', ['-c', script, 'sh', mark, String(generation)], {
        stdio: ['pipe', 'ignore', 'ignore'],
        cwd: '/',
        detached: true,
      })
      await once(child, 'spawn')
      return new Guard(child, log)
    } catch (error) {
      log.warn({}, `cannot start sh: ${messageOf(error)}; ${advice}`)
      return undefined
    }
  }

  /** Before the witness hears of it. */
  announce(generation: number): void {
    this.child.stdin?.write(`${generation}\n`)
  }

  /** This process has said by itself that it ends, or will. */
  end(): void {
    this.#ended = true
    this.child.stdin?.end('end\n')
  }
}
