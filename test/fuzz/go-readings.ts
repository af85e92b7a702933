/** The Go program that reads inputs as Kubernetes' own code does: one line for a question, one for its answer. */
import { execFileSync, spawn, type ChildProcessByStdio } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { project } from '../project.js'
import type { GoAnswer } from './target.js'

/** Its path; built where it is not there yet. */
export function goReadings(): string {
  const build = join(project, 'test/e2e/control-plane/build.sh')
  return execFileSync(build, ['go-readings'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()
}

export class GoReader {
  readonly #program: ChildProcessByStdio<Writable, Readable, null>
  readonly #answers: AsyncIterator<string>

  constructor(path: string) {
    this.#program = spawn(path, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#answers = createInterface({ input: this.#program.stdout })[Symbol.asyncIterator]()
  }

  /** One answer for each input, in order. */
  async read(as: string, inputs: readonly Buffer[]): Promise<GoAnswer[]> {
    this.#program.stdin.write(inputs.map((input) => `${as} ${input.toString('base64')}\n`).join(''))
    const answers: GoAnswer[] = []
    for (const input of inputs) {
      const next = await this.#answers.next()
      if (next.done === true)
        throw new Error(
          `go-readings ended at one of ${inputs.length} inputs such as ${input.toString('base64').slice(0, 1000)}`,
        )
      answers.push(JSON.parse(next.value) as GoAnswer)
    }
    return answers
  }

  close(): void {
    this.#program.stdin.end()
  }
}
