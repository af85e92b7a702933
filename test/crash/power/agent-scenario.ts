/**
 * The daemon on a source of files that changes all the time. A log line of a publication acknowledges it. The scenario kills the daemon
 * once at a random instant, and starts it again.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { dist } from './library.js'
import type { Scenario } from './scene.js'
import { filesOf, type Target } from './targets.js'

const generations = 8
/** While this one is being published, the agent is killed. */
const killedAt = 4
/** Milliseconds within which an agent logs a publication. */
const patience = 120_000

const target: Target = { path: 'etc/kubernetes/certs', kind: 'directory', content: 'secret' }

class Agent {
  readonly #child: ChildProcessByStdio<null, null, Readable>
  readonly #lines: AsyncIterator<string>
  readonly #ended: Promise<unknown>

  constructor(configuration: string) {
    const bin = join(dist, '../bin/holdfast.js')
    const main = `const { main } = await import(${JSON.stringify(pathToFileURL(join(dist, 'src/cli/main.js')).href)})
      process.exitCode = await main(process.argv.slice(1))`
    const program = existsSync(bin) ? [bin] : ['--input-type=module', '--eval', main, '--']
    const args = ['agent', '--config', configuration, '--log-level', 'info']
    this.#child = spawn(process.execPath, [...program, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#ended = once(this.#child, 'close')
    this.#lines = createInterface({ input: this.#child.stderr })[Symbol.asyncIterator]()
  }

  /** Resolves as soon as it logs that the target has its source's content. */
  async published(): Promise<void> {
    const said: string[] = []
    const late = setTimeout(() => this.#child.kill('SIGKILL'), patience)
    for (;;) {
      const next = await this.#lines.next()
      if (next.done === true) throw new Error(`the agent published nothing; it said:\n${said.join('\n')}`)
      said.push(next.value)
      const line = JSON.parse(next.value) as { reason?: string; outcome?: string }
      if (line.reason === 'PublishFailed') throw new Error(next.value)
      if (line.outcome === undefined) continue
      clearTimeout(late)
      return
    }
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal)
    await this.#ended
  }
}

export const agentScenario: Scenario = {
  name: 'agent, publishing continuously',
  targets: [target],
  async run({ disk, random }) {
    const objects = join(disk.directory, 'objects')
    mkdirSync(objects)
    const configuration = join(disk.directory, 'holdfast.yaml')
    writeFileSync(configuration, JSON.stringify(configurationFor(disk.mountPoint, objects)))
    let agent: Agent | undefined
    const paths = [target.path]
    try {
      for (let generation = 1; generation <= generations; generation++) {
        disk.mark({ event: 'begun', paths, generation })
        writeSecret(objects, disk.directory, generation)
        agent ??= new Agent(configuration)
        if (generation === killedAt) {
          await delay(random.below(400))
          await agent.end('SIGKILL')
          agent = new Agent(configuration)
        }
        await agent.published()
        disk.mark({ event: 'acknowledged', paths, generation })
      }
    } finally {
      // In spite of any failure: the agent must not stay on a disk that goes.
      await agent?.end('SIGTERM')
    }
  },
}

function configurationFor(mountPoint: string, objects: string): object {
  return {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: join(mountPoint, 'state'),
    source: { namespace: 'kube-system', files: { path: objects } },
    directories: [{ path: join(mountPoint, target.path), contents: [{ secret: 'serving' }] }],
    server: { address: '127.0.0.1:0' },
  }
}

function writeSecret(objects: string, staging: string, generation: number): void {
  const data: Record<string, string> = {}
  for (const [name, { content }] of filesOf(target, generation)) data[name] = content.toString('base64')
  const metadata = { name: 'serving', namespace: 'kube-system' }
  const next = join(staging, 'serving.json')
  writeFileSync(next, JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data }))
  renameSync(next, join(objects, 'serving.json'))
}
