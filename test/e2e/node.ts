/** One node: a disk for its directories, and an agent with an account that may read its objects, by name. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { Agent } from './agent.js'
import { type Owner, workingDirectory } from './guard.js'
import type { Allowed, Namespace } from './namespace.js'
import { freePort } from './ports.js'

/** A directory's configuration as it stands in the file; a path that is not absolute is relative to the node's disk. */
export interface Directory {
  readonly path: string
  readonly contents: readonly object[]
  readonly [field: string]: unknown
}

export interface NodeOptions {
  readonly directories: readonly Directory[]
  /** The objects that its account may read. */
  readonly allowed: Allowed
  /** Where it reaches the API server, if not straight. */
  readonly server?: string
  /** Its kubeconfig, if not one with a token of the account. */
  readonly kubeconfig?: string
  /** How many requests it may send, if not as many as by default. */
  readonly rate?: { readonly qps: number; readonly burst: number }
  /** The scope of its watches, if not each object. */
  readonly watch?: 'namespaces'
  /** What runs the agent elsewhere, if not here. */
  readonly prefix?: readonly string[]
  /** Where its disk and its state are, if not in the directory of the tests. */
  readonly place?: string
  /** Another disk for its directories, where the agent and this process do not see it at the same path. */
  readonly disk?: { readonly path: string; seen(path: string): string }
  /** It reports to the cluster. */
  readonly report?: true
  /** Further environment variables. */
  readonly environment?: Record<string, string>
}

export class Node {
  private constructor(
    private readonly disk: string,
    private readonly seenAt: (path: string) => string,
    readonly agent: Agent,
  ) {}

  /** Makes account and configuration, and does not start the agent. `t` gets the end of the log of what fails. */
  static async create(t: Owner, namespace: Namespace, options: NodeOptions): Promise<Node> {
    const root = mkdtempSync(join(options.place ?? workingDirectory, 'node-'))
    const disk = options.disk?.path ?? join(root, 'disk')
    const seenAt = (path: string): string => options.disk?.seen(path) ?? path
    const port = await freePort()
    const configuration = join(root, 'holdfast.yaml')
    const kubeconfig = options.kubeconfig ?? (await accountKubeconfig(namespace, options))
    // Each in a separate parent, so that the tests see all leftovers beside it.
    const directories = options.directories.map((each) => ({ ...each, path: placeOf(disk, each.path) }))
    for (const { path } of directories) mkdirSync(seenAt(dirname(path)), { recursive: true })
    const document = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: join(root, 'state'),
      source: {
        namespace: namespace.name,
        kubernetes: {
          kubeconfig,
          ...options.rate,
          ...(options.watch && { watch: options.watch }),
        },
      },
      ...(options.report && { report: true }),
      directories,
      server: { address: `127.0.0.1:${port}` },
    }
    writeFileSync(configuration, JSON.stringify(document, undefined, 2))
    const environment = { PATH: process.env['PATH'] ?? '', HOME: root, ...options.environment }
    const agent = new Agent(configuration, port, join(root, 'agent.log'), environment, options.prefix)
    t.teardown(async () => {
      await agent.kill()
      if (!t.passing() && existsSync(agent.logFile))
        t.comment(readFileSync(agent.logFile, 'utf8').split('\n').slice(-40).join('\n'))
    })
    return new Node(disk, seenAt, agent)
  }

  /** As `create`, and starts the agent. */
  static async start(t: Owner, namespace: Namespace, options: NodeOptions): Promise<Node> {
    const node = await Node.create(t, namespace, options)
    node.agent.start()
    return node
  }

  /** Absolute path of a directory of the configuration. */
  path(directory: string): string {
    return placeOf(this.disk, directory)
  }

  /** The same as this process sees it. */
  seen(directory: string): string {
    return this.seenAt(this.path(directory))
  }
}

function placeOf(disk: string, path: string): string {
  return isAbsolute(path) ? path : join(disk, path, path)
}

async function accountKubeconfig(namespace: Namespace, { allowed, server }: NodeOptions): Promise<string> {
  await namespace.createAccount('agent', allowed)
  const user = { token: await namespace.token('agent') }
  return namespace.kubeconfig(user, server === undefined ? {} : { server })
}
