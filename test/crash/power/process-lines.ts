/** A child process that answers each line with a line. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

export class LineProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable | null>
  readonly #lines: AsyncIterator<string>
  readonly #ended: Promise<unknown>

  constructor(command: readonly string[], complaints: 'inherit' | 'ignore' = 'inherit') {
    const [program = '', ...args] = command
    this.#child = spawn(program, args, {
      stdio: ['pipe', 'pipe', complaints],
    })
    this.#ended = once(this.#child, 'close')
    this.#child.stdin.on('error', () => undefined) // A process that has ended is seen by the answer that does not come.
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  /** A program of this directory, by its module's name. */
  static node(module: string, args: readonly string[] = [], prefix: readonly string[] = []): LineProcess {
    return LineProcess.at(new URL(`./${module}.js`, import.meta.url).pathname, args, prefix)
  }

  /** A program by its path. */
  static at(path: string, args: readonly string[] = [], prefix: readonly string[] = []): LineProcess {
    return new LineProcess([...prefix, process.execPath, path, ...args])
  }

  get pid(): number {
    const { pid } = this.#child
    if (pid === undefined) throw new Error('it did not start')
    return pid
  }

  /** undefined if it ended without an answer. */
  async tryAsk(question: unknown): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify(question)}\n`)
    const next = await this.#lines.next()
    return next.done === true ? undefined : (JSON.parse(next.value) as unknown)
  }

  async ask(question: unknown): Promise<unknown> {
    const answer = await this.tryAsk(question)
    if (answer === undefined) throw new Error(`${this.#child.spawnargs.join(' ')} ended without an answer`)
    return answer
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  async end(): Promise<void> {
    this.#child.stdin.end()
    await this.#ended
  }
}
