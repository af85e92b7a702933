/** Readers and writers as processes of their own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { environment, program } from '../syscalls/distribution.js'

export interface Seen {
  readonly looks: number
  readonly versions: number
  readonly stale: number
  /** Listings of a replaced directory that was being emptied. */
  readonly shortened: number
  readonly wrong: Readonly<Record<string, number>>
}

export interface Written {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly published: number
  readonly busy: number
  readonly stderr: string
}

export class Cast {
  readonly #running = new Set<ChildProcess>()

  private constructor(
    readonly writerProgram: string,
    readonly readerProgram: string,
  ) {}

  static make(): Cast {
    const of = (name: string): string => program(new URL(`${name}.js`, import.meta.url))
    return new Cast(of('writer'), of('reader'))
  }

  /** Publishes `count` versions; `within` is a command that the writer is started by. */
  writer(target: string, count: number, kind = 'directory', within: readonly string[] = []): ChildProcess {
    const command = [...within, process.execPath, this.writerProgram, target, `${count}`, kind]
    return this.start(command)
  }

  async written(child: ChildProcess): Promise<Written> {
    const text = collected(child)
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    const { stdout, stderr } = text()
    const counts = stdout === '' ? { published: 0, busy: 0 } : (JSON.parse(stdout) as Written)
    return { ...counts, code, signal, stderr }
  }

  /** Resolves once it reads; what resolves then ends it. */
  async reader(how: 'path' | 'descriptor' | 'file', target: string): Promise<() => Promise<Seen>> {
    const child = this.start([process.execPath, this.readerProgram, how, target])
    const text = collected(child)
    const closed = once(child, 'close') as Promise<[number | null]>
    if (child.stdout) await once(child.stdout, 'data')
    return async () => {
      child.stdin?.end()
      const [code] = await closed
      const { stdout, stderr } = text()
      if (code !== 0) throw new Error(`a reader ended with ${code}: ${stderr}`)
      return JSON.parse(stdout.slice(stdout.indexOf('\n') + 1)) as Seen
    }
  }

  start(command: readonly string[]): ChildProcess {
    const [name = '', ...args] = command
    const child = spawn(name, args, { env: environment, stdio: 'pipe' })
    this.#running.add(child)
    child.once('close', () => this.#running.delete(child))
    return child
  }

  async end(): Promise<void> {
    const ending = [...this.#running].map((child) => once(child, 'close'))
    for (const child of this.#running) child.kill('SIGKILL')
    await Promise.all(ending)
  }
}

function collected(child: ChildProcess): () => { stdout: string; stderr: string } {
  const text = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  return () => text
}
