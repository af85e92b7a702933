/** A case on a real API server and on a fresh disk, ready for either program; and its result. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  lstatSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Cluster } from '../e2e/cluster.js'
import { workingDirectory } from '../e2e/guard.js'
import type { Namespace } from '../e2e/namespace.js'
import type { Case } from './case.js'
import { cases, type CaseName } from './cases.js'

export interface Entry {
  readonly mode?: string
  /** Content: as text, or as base64 where it is none. Neither: a directory. */
  readonly text?: string
  readonly base64?: string
  readonly link?: string
}

/** How a case ended, in words that are the same for each run. */
export interface Outcome {
  /** The exit code; `runs on` for a program that has done its work, and does not end by itself. */
  readonly end: number | 'runs on'
  readonly tree: Readonly<Record<string, Entry>>
  readonly events: readonly string[]
  readonly rollout?: Case['rollout']
}

const operators = '/apis/operator.openshift.io/v1/kubeapiservers/cluster'
const merge = { 'content-type': 'application/merge-patch+json' }

export class Scene {
  readonly root = mkdtempSync(join(workingDirectory, 'compared-'))
  /** Where the programs run: a relative path would show there. */
  readonly working = join(this.root, 'working')

  private constructor(
    readonly name: CaseName,
    readonly given: Case,
    readonly node: string,
    readonly namespace: Namespace,
    readonly cluster: Cluster,
  ) {}

  /** A scene for each of these cases. The cluster serves KubeAPIServers, and has the one of the name `cluster`. */
  static async createAll(cluster: Cluster): Promise<Scene[]> {
    const scenes = await Promise.all(
      Object.entries(cases).map(async ([name, { ...all }], index) => {
        const node = `node-${index}.example`
        return new Scene(name as CaseName, all, node, await cluster.namespace(), cluster)
      }),
    )
    const nodeStatuses = scenes.flatMap(({ node, given: { rollout } }) =>
      rollout ? [{ nodeName: node, currentRevision: rollout.current, targetRevision: rollout.target }] : [],
    )
    await cluster.api.admin.demand('PATCH', `${operators}/status`, { status: { nodeStatuses } }, merge)
    await Promise.all(scenes.map((scene) => scene.set()))
    return scenes
  }

  private async set(): Promise<void> {
    const { admin } = this.cluster.api
    const core = `/api/v1/namespaces/${this.namespace.name}`
    await admin.demand('POST', '/api/v1/nodes', { metadata: { name: this.node } })
    const status = { nodeInfo: { kubeletVersion: this.given.kubelet ?? 'v1.35.4' } }
    await admin.demand('PATCH', `/api/v1/nodes/${this.node}/status`, { status }, merge)
    for (const [name, data] of Object.entries(this.given.secrets ?? {})) {
      await admin.demand('POST', `${core}/secrets`, { metadata: { name }, data })
    }
    for (const [name, { data = {}, binaryData = {} }] of Object.entries(this.given.configMaps ?? {})) {
      const texts = Object.entries(data).map(([key, text]) => [key, this.own(text)])
      await admin.demand('POST', `${core}/configmaps`, {
        metadata: { name },
        data: Object.fromEntries(texts) as object,
        binaryData,
      })
    }
    if (this.given.command === 'installer') {
      const spec = { nodeName: this.node, containers: [{ name: 'installer', image: 'x' }] }
      const metadata = { name: 'installer-6-node', labels: { app: 'installer' } }
      await admin.demand('POST', `${core}/pods`, { metadata, spec })
    }
    if (this.given.rollout) {
      const metadata = { name: `web-${this.node}`, labels: { revision: '7' } }
      const spec = { nodeName: this.node, containers: [{ name: 'web', image: 'x' }] }
      await admin.demand('POST', `${core}/pods`, { metadata, spec })
      const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
      await admin.demand('PATCH', `${core}/pods/${metadata.name}/status`, ready, merge)
    }
    mkdirSync(this.working)
    for (const [path, content] of Object.entries(this.given.before ?? {})) {
      const full = join(this.root, path)
      mkdirSync(path.endsWith('/') ? full : dirname(full), { recursive: true })
      if (typeof content !== 'string') symlinkSync(this.own(content.target), full)
      else if (!path.endsWith('/')) writeFileSync(full, this.own(content))
    }
  }

  /** A text of the table, with this case's own names. */
  own(text: string): string {
    return text
      .replaceAll('NAMESPACE', this.namespace.name)
      .replaceAll('KUBECONFIG', this.cluster.adminKubeconfig)
      .replaceAll('ROOT', this.root)
      .replace(/=NODE$/, `=${this.node}`)
  }

  private common(text: string): string {
    return text
      .replaceAll(this.root, 'ROOT')
      .replaceAll(this.node, 'NODE')
      .replaceAll(this.node.replaceAll(/[-.]/g, '_'), 'NODE_ENVVAR')
      .replaceAll(this.namespace.name, 'NAMESPACE')
      .replaceAll(/("uid":\s*")[0-9a-f-]{36}"/g, '$1UID"')
  }

  async outcome(end: Outcome['end']): Promise<Outcome> {
    const { rollout } = this.given
    return {
      end,
      tree: Object.fromEntries(this.entries('')),
      events: await this.events(),
      ...(rollout && { rollout: await this.rollout() }),
    }
  }

  private entries(path: string): [string, Entry][] {
    const names = readdirSync(join(this.root, path)).sort()
    return names.flatMap((name): [string, Entry][] => {
      const below = join(path, name)
      const full = join(this.root, below)
      const stat = lstatSync(full)
      if (stat.isSymbolicLink()) return [[below, { link: this.common(readlinkSync(full)) }]]
      const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0')
      if (stat.isDirectory()) return [[below, { mode }], ...this.entries(below)]
      const bytes = readFileSync(full)
      const text = bytes.toString('utf8')
      const isText = Buffer.from(text).equals(bytes)
      return [[below, { mode, ...(isText ? { text: this.common(text) } : { base64: bytes.toString('base64') }) }]]
    })
  }

  /** Type and reason of each, in order of the alphabet. */
  async events(): Promise<string[]> {
    const { body } = await this.cluster.api.admin.call('GET', `/api/v1/namespaces/${this.namespace.name}/events`)
    const { items } = body as { items: { type: string; reason: string }[] }
    return items.map(({ type, reason }) => `${type} ${reason}`).sort()
  }

  private async rollout(): Promise<NonNullable<Case['rollout']>> {
    const { body } = await this.cluster.api.admin.call('GET', operators)
    const { status } = body as {
      status: { nodeStatuses: { nodeName: string; currentRevision?: number; targetRevision?: number }[] }
    }
    const found = status.nodeStatuses.find(({ nodeName }) => nodeName === this.node)
    return { current: found?.currentRevision ?? 0, target: found?.targetRevision ?? 0 }
  }
}
