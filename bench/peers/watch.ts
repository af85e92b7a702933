/**
 * From a change in the Kubernetes API to the file on the node: holdfast's agent beside programs of the same task, on an API server and
 * etcd of their own. All run as they are, on the disk of the working directory; only the agent's answer is durable, and means the
 * whole directory.
 */
import { type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Cluster } from '../../test/e2e/cluster.js'
import { startProcess, workingDirectory } from '../../test/e2e/guard.js'
import { memory, processorTime } from '../../test/e2e/process-figures.js'
import { until } from '../../test/until.js'
import { executable } from '../../test/project.js'
import { median } from '../measure.js'
import { installed, type Toolchain } from './toolchains.js'

export interface WatchRow {
  readonly watcher: string
  /** Secrets of the namespace, and how many of them it keeps. */
  readonly secrets: number
  readonly kept: number
  /** Until all is there, in milliseconds, and the processor it took. */
  readonly start: number
  readonly startProcessor: number
  /** Of the API server's answer to a change until the file can be read, in milliseconds: median and most. */
  readonly delay: readonly [number, number]
  /** Anonymous memory at rest, in MiB. */
  readonly memory: number
}

interface Scene {
  readonly kubeconfig: string
  readonly namespace: string
  readonly names: readonly string[]
  readonly directory: string
}

interface Watcher {
  readonly name: string
  readonly toolchain: Toolchain
  readonly command: (scene: Scene) => string[]
  /** Where it puts the certificate of a Secret. */
  readonly path: (scene: Scene, name: string) => string
}

const sidecar = fileURLToPath(new URL('../../../bench/peers/k8s-sidecar/watch.sh', import.meta.url))
const byDirectory = ({ directory }: Scene, name: string): string => join(directory, name, `${name}.crt`)
const informed = ({ kubeconfig, namespace, directory, names }: Scene): string[] => {
  return [kubeconfig, namespace, directory, names.join()]
}

const watchers: readonly Watcher[] = [
  {
    name: 'holdfast agent',
    toolchain: 'own',
    command: agentCommand,
    path: (scene, name) =>
      isMany(scene) ? join(scene.directory, 'all', name, `${name}.crt`) : byDirectory(scene, name),
  },
  {
    name: "client-go's informer, renameio",
    toolchain: 'go',
    command: (scene) => [join(installed('go'), 'bin/inform'), ...informed(scene)],
    path: byDirectory,
  },
  {
    name: "client-node's informer, write-file-atomic",
    toolchain: 'npm',
    command: (scene) => [process.execPath, join(installed('npm'), 'inform.mjs'), ...informed(scene)],
    path: byDirectory,
  },
  {
    name: 'k8s-sidecar',
    toolchain: 'k8s-sidecar',
    command: ({ kubeconfig, namespace, directory }) => [
      sidecar,
      installed('k8s-sidecar'),
      kubeconfig,
      namespace,
      directory,
    ],
    path: ({ directory }, name) => join(directory, `${name}.crt`),
  },
]

/** A watch for each object, and a directory for each, are meant for hundreds: beyond, one directory selects them by their label. */
const isMany = ({ names }: Pick<Scene, 'names'>): boolean => names.length > 1000

/** The agent that keeps each of these Secrets as a directory, or many in one. */
export function agentCommand({ kubeconfig, namespace, directory, names }: Scene): string[] {
  const configuration = join(directory, 'holdfast.yaml')
  const document = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: join(directory, 'state'),
    source: { namespace, kubernetes: { kubeconfig, watch: isMany({ names }) ? 'namespaces' : 'objects' } },
    directories: isMany({ names })
      ? [{ path: join(directory, 'all'), contents: [{ secrets: { selector: 'keep=true', into: '{name}' } }] }]
      : names.map((name) => ({ path: join(directory, name), contents: [{ secret: name }] })),
  }
  writeFileSync(configuration, JSON.stringify(document))
  return [process.execPath, executable, 'agent', '--config', configuration]
}

/** Secrets of a namespace, and how many of them each keeps; of the sidecar, those with its label. */
const scenes = [
  { secrets: 50, kept: 50 },
  { secrets: 5000, kept: 50 },
  { secrets: 5000, kept: 5000 },
] as const
const changes = 10
/** Milliseconds of rest for a program before the measurement of its memory. */
const rest = 5_000
const patience = { within: 120_000, every: 1 }
/** At 20 requests a second, what the agent asks for by name takes minutes. */
const startPatience = { within: 600_000, every: 10 }

/** One row for each watcher that can be had, in namespaces of 50 and of 5,000 Secrets; `quick`: of 50 alone. */
export async function watch(quick: boolean, leftOut: string[]): Promise<WatchRow[]> {
  const cluster = await Cluster.start()
  try {
    const rows: WatchRow[] = []
    for (const { secrets, kept } of quick ? scenes.slice(0, 1) : scenes) {
      const namespace = (await cluster.namespace()).name
      const put = async (method: 'POST' | 'PUT', index: number, version: number): Promise<void> => {
        await putSecret(cluster, namespace, method, { index, version, kept: index < kept })
      }
      for (let at = 0; at < secrets; at += 10) {
        await Promise.all(Array.from({ length: Math.min(10, secrets - at) }, (_, index) => put('POST', at + index, 0)))
      }
      for (const watcher of watchers) {
        process.stderr.write(`watch, ${watcher.name}, ${kept} of ${secrets} Secrets …\n`)
        try {
          installed(watcher.toolchain)
          rows.push(await measure(watcher, cluster.adminKubeconfig, namespace, { secrets, kept }, put))
        } catch (error) {
          leftOut.push(`left out: ${watcher.name}, ${kept} of ${secrets} Secrets: ${(error as Error).message}`)
        }
      }
    }
    return rows
  } finally {
    await cluster.stop()
  }
}

async function putSecret(
  cluster: Cluster,
  namespace: string,
  method: 'POST' | 'PUT',
  { index, version, kept }: { index: number; version: number; kept: boolean },
): Promise<void> {
  const name = nameOf(index)
  const path = `/api/v1/namespaces/${namespace}/secrets${method === 'PUT' ? `/${name}` : ''}`
  const labels = kept ? { keep: 'true' } : {}
  const stringData = { [`${name}.crt`]: certificate(index, version), [`${name}.key`]: 'k'.repeat(1000) }
  await cluster.api.admin.demand(method, path, { metadata: { name, namespace, labels }, stringData })
}

const nameOf = (index: number): string => `secret-${index}`
const certificate = (index: number, version: number): string => `${index} ${version}\n`.padEnd(3000, 'c')

let version = 0

async function measure(
  watcher: Watcher,
  kubeconfig: string,
  namespace: string,
  { secrets, kept }: Pick<WatchRow, 'secrets' | 'kept'>,
  put: (method: 'PUT', index: number, version: number) => Promise<void>,
): Promise<WatchRow> {
  const names = Array.from({ length: kept }, (_, index) => nameOf(index))
  const directory = join(workingDirectory, `${watcher.toolchain}-${kept}-of-${secrets}`)
  mkdirSync(directory, { recursive: true })
  const scene = { kubeconfig, namespace, names, directory }
  const holds = (index: number, wanted?: string): boolean => {
    const found = read(watcher.path(scene, nameOf(index)))
    return wanted === undefined ? found !== undefined : found === wanted
  }
  let there = 0
  // Files that were there stay counted.
  const allThere = (): boolean => {
    while (there < kept && holds(there)) there++
    return there === kept
  }
  const [program = '', ...args] = watcher.command(scene)
  const started = performance.now()
  const child = startProcess(program, args, { stdio: 'ignore' })
  try {
    await until('all Secrets are there', allThere, startPatience)
    const start = performance.now() - started
    const pid = childPid(child)
    const startProcessor = processorTime(pid)
    const delays: number[] = []
    for (let index = 0; index < changes; index++) {
      await delay(200)
      await put('PUT', index, ++version)
      const answered = performance.now()
      const wanted = certificate(index, version)
      await until(`the change of ${nameOf(index)} is there`, () => holds(index, wanted), patience)
      delays.push(performance.now() - answered)
    }
    await delay(rest)
    const anonymous = memory(pid, 'Anonymous') / 1024
    const row = { watcher: watcher.name, secrets, kept, start, startProcessor, memory: anonymous }
    return { ...row, delay: [median(delays), Math.max(...delays)] }
  } finally {
    child.kill('SIGKILL')
  }
}

function childPid({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('it did not start')
  return pid
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
