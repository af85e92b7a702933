/** The agent, on one directory that comes from one Secret in a file, with strace at hand. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type AgentProcess, Node } from '../../cli/holdfast.js'
import { until } from '../../until.js'
import { executable } from './distribution.js'

export class TracedNode extends Node {
  readonly parent = this.path('parent')
  readonly target = join(this.parent, 'certs')
  protected override readonly program = executable(this.root)
  readonly #traces = new Set<ChildProcess>()

  constructor(t: Test, directory: (node: TracedNode) => object = () => ({})) {
    super(t, [])
    mkdirSync(this.parent)
    this.configure([{ path: this.target, contents: [{ secret: 'pair' }], ...directory(this) }])
    t.teardown(() => Promise.all([...this.#traces].map((trace) => ended(trace, 'SIGKILL'))))
  }

  publish(version: string): void {
    this.put('Secret', 'pair', { certificate: version, key: version, [`only-${version}`]: version })
  }

  /** The version that the target holds: undefined where there is none, or a mixture. */
  version(): string | undefined {
    let names: string[]
    const contents = new Set<string>()
    try {
      names = readdirSync(this.target).sort()
      for (const name of names) contents.add(readFileSync(join(this.target, name), 'utf8'))
    } catch {
      return undefined
    }
    const [version] = contents
    if (contents.size !== 1 || names.join() !== ['certificate', 'key', `only-${version ?? ''}`].join()) return undefined
    return version
  }

  /** A running agent; it has begun to serve health. */
  async running(): Promise<AgentProcess> {
    const agent = this.agentProcess()
    await agent.address()
    return agent
  }

  /** strace on some threads; resolves once it has them. The function ends it. */
  async strace(threads: readonly string[], faults: readonly string[]): Promise<() => Promise<unknown>> {
    const trace = ['-e', `trace=${faults.map((fault) => fault.split(':')[0] ?? '').join()}`]
    const inject = faults.flatMap((fault) => ['-e', `inject=${fault}`])
    const whom = threads.flatMap((thread) => ['-p', thread])
    const child = spawn('strace', ['-o', this.path('strace.log'), ...trace, ...inject, ...whom], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#traces.add(child)
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
    await until('strace has attached', () => said.split('attached').length > threads.length || child.exitCode !== null)
    if (child.exitCode !== null) throw new Error(`strace: ${said}`)
    return () => ended(child, 'SIGINT')
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return undefined
  const ending = once(child, 'close')
  child.kill(signal)
  return ending
}

/** Its threads without the one of JavaScript. */
export function threadsOf({ pid }: AgentProcess): string[] {
  return readdirSync(`/proc/${pid}/task`).filter((thread) => thread !== String(pid))
}
