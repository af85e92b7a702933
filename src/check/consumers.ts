/*
 * Finds the processes that use the targets. One that keeps old content open reads an old certificate, or an old private key, until it
 * opens the file again; and a mount of the target itself, by a container or by kubelet's subPath, stays with the directory that it was
 * made of (kubernetes/kubernetes#50345).
 */
import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { DirectoryConfiguration } from '../config/types.js'
import { system, usesOf } from '../durable/index.js'
import type { HoldingKind, Unseen } from '../durable/posix/index.js'
import { listed } from '../message-text.js'
import { hostPathUsers, type HostPathUsers } from '../static-pods/host-path-users.js'
import { type CheckResult, ok, warn } from './findings.js'

/** One process, or one manifest, that uses a target in one way. */
export interface Consumer extends PodAndContainer {
  /** The target's. */
  readonly path: string
  readonly what: HoldingKind | 'manifest'
  /** null: a manifest. */
  readonly pid: number | null
  /** The process's name; for a manifest, the pod's. */
  readonly command: string
  /** The first file or mount that the process uses, as it sees it; for a manifest, its path. */
  readonly at: string
  readonly count: number
  /** It is old content. */
  readonly retired: boolean
  /** All of it in a sentence. */
  readonly description: string
}

export interface ConsumerReport {
  readonly consumers: readonly Consumer[]
  readonly unseen: Unseen
  readonly unreadable: HostPathUsers['unreadable']
}

interface FindOptions {
  /** kubelet's manifest directory; without it, manifests are not looked at. */
  readonly manifests?: string
  /** Whether the way to the targets may be looked at. A disk that hangs there makes this hang, too. */
  readonly followLinks: boolean
}

/** Everybody but this process who uses these targets, as far as procfs and the manifests tell. */
export async function findConsumers(paths: readonly string[], options: FindOptions): Promise<ConsumerReport> {
  const { manifests, followLinks } = options
  const real = followLinks ? await Promise.all(paths.map(withoutLinks)) : paths
  const { uses, unseen } = await usesOf(real)
  const none: HostPathUsers = { users: [], unreadable: [] }
  const fromManifests = manifests === undefined ? none : await hostPathUsers(system, manifests, paths, followLinks)
  const found = paths.flatMap((path, index): Omit<Consumer, 'description'>[] => [
    ...(uses[index] ?? []).map(({ path: at, cgroup, ...use }) => ({ path, ...use, at, ...podAndContainer(cgroup) })),
    ...(fromManifests.users[index] ?? []).map(({ manifest, pod }) => {
      return { path, what: 'manifest' as const, pid: null, command: pod, at: manifest, count: 1, retired: false }
    }),
  ])
  const consumers = found.map((consumer) => ({ ...consumer, description: describeUser(consumer) }))
  return { consumers, unseen, unreadable: fromManifests.unreadable }
}

/** The last part stays, even if it is another program's link: it is the target. */
async function withoutLinks(path: string): Promise<string> {
  const parent = await realpath(dirname(path)).catch(() => dirname(path))
  return join(parent, basename(path))
}

const check = 'consumers'

/** The results for one directory. */
export function checkConsumers(
  { path, publish }: Pick<DirectoryConfiguration, 'path' | 'publish'>,
  { consumers }: Pick<ConsumerReport, 'consumers'>,
): CheckResult[] {
  const own = consumers.filter((consumer) => consumer.path === path)
  const results = own.flatMap((consumer) => {
    if (consumer.retired) return warn(check, consumer.description, adviceOnRetired(consumer))
    if (publish !== 'symlink' && isPinned(consumer)) return warn(check, consumer.description, adviceOnMount)
    return []
  })
  if (results.length > 0) return results
  const pids = [...new Set(own.flatMap(({ pid, command }) => (pid === null ? [] : `${pid} (${command})`)))]
  const using = pids.length === 0 ? '' : `; of the current content, ${listed(pids, 5)}`
  return [ok(check, `nobody uses old content${using}`)]
}

/** A mount keeps the content it began with, through every publication. */
function isPinned({ what }: Pick<Consumer, 'what'>): boolean {
  return what === 'mount' || what === 'manifest'
}

const adviceOnMount = 'mount the parent directory, or set publish: symlink'

function adviceOnRetired(consumer: Consumer): string {
  if (consumer.what === 'mount') return `restart it; ${adviceOnMount}`
  return 'restart it, or make it open its files again after a publication (afterPublish)'
}

const verbs = {
  fd: (content) => `has ${content} open`,
  cwd: (content) => `works in ${content}`,
  root: (content) => `has its root in ${content}`,
  map: (content) => `has ${content} mapped`,
  mount: (content) => `has ${content} mounted by itself`,
  manifest: (content) => `mounts ${content} by itself`,
} satisfies Record<Consumer['what'], (content: string) => string>

/** `process 12 (nginx) has old content open (fd: /certs/tls.key (deleted)); pod …, container …`. */
function describeUser(consumer: Omit<Consumer, 'description'>): string {
  const { pid, command, what, at, count, retired, pod, container } = consumer
  const who = pid === null ? `the static pod ${command}` : `process ${pid} (${command})`
  const more = count > 1 ? ` and ${count - 1} more` : ''
  const pinned = isPinned(consumer) && !retired ? '; it will not see what is published next' : ''
  const from = [pod && `pod ${pod}`, container && `container ${container}`].filter(Boolean).map((one) => `, ${one}`)
  return `${who} ${verbs[what](retired ? 'old content' : 'it')} (${what}: ${at}${more})${from.join('')}${pinned}`
}

/** Names the processes and manifests that the search could not read, and that so count as users. Empty where it has read all. */
function unseenLines({ unseen, unreadable }: Pick<ConsumerReport, 'unseen' | 'unreadable'>): string[] {
  const { denied, otherPidNamespace, hidden, silent, more } = unseen
  const [first] = denied
  return [
    ...(otherPidNamespace ? ['only the processes of this PID namespace are seen'] : []),
    ...(hidden ? ['/proc hides the processes of other users (hidepid)'] : []),
    ...(first ? [`${denied.length} processes may not be looked at (for example ${first.pid}: ${first.code})`] : []),
    ...(silent === undefined ? [] : [`process ${silent} does not answer: its mappings, and later ones, are unknown`]),
    ...(more ? ['more is open, mapped and mounted than is looked at'] : []),
    ...unreadable.map(({ manifest, problem }) => `${manifest} cannot be read as a pod: ${problem}`),
  ]
}

export function checkUnseen(report: Pick<ConsumerReport, 'unseen' | 'unreadable'>): CheckResult[] {
  const missing = unseenLines(report)
  if (missing.length === 0) return [ok(check, 'all processes of this node are seen')]
  return missing.map((text) =>
    warn(check, `${text}; what they use counts as in use`, 'run this as root, in a pod with hostPID: true'),
  )
}

/** The pod and the container of a process, as far as its control groups tell. */
interface PodAndContainer {
  /** The pod's UID; a static pod's is its manifest's hash. */
  readonly pod?: string
  /** The container's ID, as crictl takes it. */
  readonly container?: string
}

/**
 * Reads /proc/PID/cgroup (cgroups(7)) as kubelet, containerd, CRI-O and Docker name their groups:
 * `…/kubepods-burstable-pod1f3a_….slice/cri-containerd-ID.scope` with systemd, `/kubepods/burstable/pod1f3a-…/ID` without.
 * @internal
 */
export function podAndContainer(text: string): PodAndContainer {
  const pod = /(?:^|[/-])pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:\/|$)/m.exec(
    text,
  )
  const container = /(?:\/|-)([0-9a-f]{64})(?:\.scope)?(?:\/|$)/m.exec(text)
  return {
    ...(pod?.[1] !== undefined && { pod: pod[1].replaceAll('_', '-') }),
    ...(container?.[1] !== undefined && { container: container[1] }),
  }
}
