/** The agent, on one directory that comes from one Secret in a file, with strace at hand. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../until.js'
import { plainNode } from './distribution.js'

export class Node {
  readonly target: string
  readonly parent: string
  readonly configuration: string
  readonly #children = new Set<ChildProcess>()

  constructor(
    readonly root: string,
    readonly executable: string,
    directory: object = {},
  ) {
    this.parent = join(root, 'parent')
    this.target = join(this.parent, 'certs')
    this.configuration = join(root, 'holdfast.yaml')
    for (const path of [this.parent, join(root, 'objects')]) mkdirSync(path)
    const document = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: join(root, 'state'),
      source: { namespace: 'demo', files: { path: join(root, 'objects') } },
      server: { address: '127.0.0.1:0' },
      directories: [{ path: this.target, contents: [{ secret: 'pair' }], ...directory }],
    }
    writeFileSync(this.configuration, JSON.stringify(document))
  }

  put(version: string): void {
    const stringData = { certificate: version, key: version, [`only-${version}`]: version }
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pair' }, stringData }
    writeFileSync(join(this.root, 'objects', 'pair.yaml'), JSON.stringify(secret))
  }

  /** The version that the target holds: undefined where there is none; throws for a mixture. */
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
  async agent(): Promise<{ child: ChildProcess; log: () => string; ended: Promise<unknown[]> }> {
    const child = spawn('env', plainNode([this.executable, 'agent', '--config', this.configuration]), {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#children.add(child)
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    }
    const ended = once(child, 'close')
    void ended.then(() => this.#children.delete(child))
    await until('the agent runs', () => text.includes('"address"') || child.exitCode !== null)
    if (child.exitCode !== null) throw new Error(`the agent ended: ${text}`)
    return { child, log: () => text, ended }
  }

  /** strace on some threads; resolves once it has them. Ends when it is signalled. */
  async strace(threads: readonly string[], faults: readonly string[]): Promise<ChildProcess> {
    const trace = ['-e', `trace=${faults.map((fault) => fault.split(':')[0] ?? '').join()}`]
    const inject = faults.flatMap((fault) => ['-e', `inject=${fault}`])
    const whom = threads.flatMap((thread) => ['-p', thread])
    const child = spawn('strace', ['-o', join(this.root, 'strace.log'), ...trace, ...inject, ...whom], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#children.add(child)
    child.once('close', () => this.#children.delete(child))
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
    await until('strace has attached', () => said.split('attached').length > threads.length || child.exitCode !== null)
    if (child.exitCode !== null) throw new Error(`strace: ${said}`)
    return child
  }

  /** Its threads without the one of JavaScript. */
  threads(agent: ChildProcess): string[] {
    return readdirSync(`/proc/${agent.pid ?? 0}/task`).filter((thread) => thread !== String(agent.pid))
  }

  async end(): Promise<void> {
    const ending = [...this.#children].map((child) => once(child, 'close'))
    for (const child of this.#children) child.kill('SIGKILL')
    await Promise.all(ending)
  }
}
