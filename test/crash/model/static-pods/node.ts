/* A node with one static pod on the model disk: its content, and its faults. */
import { DurableCalls } from '../../../../src/durable/index.js'
import type { DirectoryPublicationRequest } from '../../../../src/durable/single-calls/index.js'
import { revisionRequest, type InstallPlan } from '../../../../src/static-pods/install/install-plan.js'
import { encodeManifest, parseManifest } from '../../../../src/static-pods/pod/manifest.js'
import { isKind } from '../../judge/names.js'
import { find, textOf } from '../content.js'
import type { Inode } from '../inode.js'
import { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { makeDirectory, makeEntry } from '../scenario.js'

/** No machine has these: code that passes the model by finds nothing. */
export const places = { resourceDirectory: '/node/lib/pods', manifestDirectory: '/node/etc/manifests', target: 'web' }
/** Parents first. */
export const directories = ['/node/etc', places.manifestDirectory, '/node/lib', places.resourceDirectory]
export const manifestLock = '/node/installer.lock'
export const pod = 'web-pod'

const certificates = `${places.resourceDirectory}/web-certs/secrets/serving`
export const liveManifest = `${places.manifestDirectory}/${pod}.yaml`
export const ownManifest = `${places.manifestDirectory}/web-startup-monitor-pod.yaml`
export const lastKnownGoodLink = `${places.resourceDirectory}/web-last-known-good`
/** What a command was to remove before it ended. */
const isStaged = isKind('staging', 'foreign')

function revisionPath(revision: number): string {
  return `${places.resourceDirectory}/${pod}-${revision}`
}

export function podOf(revision: number): Record<'apiVersion' | 'kind' | 'metadata' | 'spec', unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'kube-system', labels: { revision: String(revision) } },
    spec: {
      containers: [{ name: 'web', image: 'web:1' }],
      volumes: [{ name: 'resources', hostPath: { path: revisionPath(revision) } }],
    },
  }
}

export async function planOf(revision: number, hasCertificates = true): Promise<InstallPlan> {
  const manifest = await parseManifest(Buffer.from(JSON.stringify(podOf(revision))), 'the pod')
  const manifests = [{ name: `${pod}.yaml`, content: encodeManifest(manifest, undefined), manifest }]
  const files = new Map([
    ['secrets/tls/tls.key', { content: Buffer.from(`key ${revision}`), mode: 0o600 }],
    ['configmaps/config/config.yaml', { content: Buffer.from(`config ${revision}`), mode: 0o644 }],
  ])
  const directories = ['secrets', 'secrets/tls', 'configmaps', 'configmaps/config']
  return {
    pod,
    revision,
    directory: revisionRequest(places.resourceDirectory, pod, revision, { files, directories, manifests, objects: [] }),
    lasting: hasCertificates ? [certificatesOf(revision)] : [],
    manifests,
  }
}

function certificatesOf(revision: number): DirectoryPublicationRequest {
  return {
    target: certificates,
    files: { 'tls.key': { content: `serving key ${revision}`, mode: 0o600 } },
    publisher: 'install',
  }
}

/** What a revision's directory holds where it is intact, as one text. */
const intact = new Map<number, string>()

export async function intactRevision(revision: number): Promise<string> {
  const known = intact.get(revision)
  if (known !== undefined) return known
  const { disk, root } = await publishedAlone(revision)
  const text = textOf(disk, root)
  intact.set(revision, text)
  return text
}

async function publishedAlone(revision: number): Promise<{ disk: ModelDisk; root: Inode }> {
  const disk = new ModelDisk()
  makeDirectory(disk, '/node', 0o755)
  const { directory } = await planOf(revision)
  if (directory) await new DurableCalls(new ModelProcess(disk)).publishDirectories([directory], undefined)
  const root = find(disk, revisionPath(revision))
  if (root === undefined) throw new Error(`revision ${revision} cannot be made`)
  return { disk, root }
}

/** The same tree as another program writes it: nothing of it is synced, and there is no record. */
export async function writeRevision(disk: ModelDisk, revision: number): Promise<void> {
  const from = await publishedAlone(revision)
  const copy = (inode: Inode, path: string): void => {
    const { type, now } = inode
    if (type === 'symlink') throw new Error('a revision has no links')
    makeEntry(disk, path, type, now.attributes.mode, now.data)
    for (const [name, number] of now.entries) copy(from.disk.inode(number), `${path}/${name}`)
  }
  copy(from.root, revisionPath(revision))
}

/** The same of the live manifest. */
export async function writeLive(disk: ModelDisk, revision: number, path = liveManifest): Promise<void> {
  const [manifest] = (await planOf(revision)).manifests
  makeEntry(disk, path, 'file', 0o600, Buffer.from(manifest?.content ?? []).toString('latin1'))
}

/** The last-known-good link, as another program makes it. */
export function writeLink(disk: ModelDisk, revision: number, path: string): void {
  makeEntry(disk, path, 'symlink', 0o777, `${revisionPath(revision)}/${pod}.yaml`)
}

export function writeOwnManifest(disk: ModelDisk): void {
  makeEntry(disk, ownManifest, 'file', 0o600, 'kind: Pod # the monitor')
}

/** What the commands are about, as one reads it from the disk. */
export interface View {
  /** The live manifest's revision. */
  readonly live: number | undefined
  /** The revision behind the last-known-good link. */
  readonly link: number | undefined
  /** The monitor's own manifest is there. */
  readonly own: boolean
  /** Revisions with a directory. */
  readonly revisions: readonly number[]
}

export interface Found {
  readonly view: View
  /** Revisions whose directory differs from the published one. */
  readonly torn: readonly number[]
  /** The revision of the certificates; undefined where there are none. */
  readonly certificates: number | undefined
  /** Names of what a finished command has removed. */
  readonly left: readonly string[]
  /** What no reader could make sense of. */
  readonly fault: string | undefined
}

export async function look(disk: ModelDisk): Promise<Found> {
  const faults: string[] = []
  const revisions: number[] = []
  const torn: number[] = []
  const resources = find(disk, places.resourceDirectory)
  for (const [name, number] of resources?.now.entries ?? []) {
    if (!name.startsWith(`${pod}-`)) continue
    const revision = Number(name.slice(pod.length + 1))
    revisions.push(revision)
    if (textOf(disk, disk.inode(number)) !== (await intactRevision(revision))) torn.push(revision)
  }
  const key = find(disk, `${certificates}/tls.key`)?.now.data
  const serving = key === undefined ? undefined : Number(/^serving key (\d+)$/.exec(key)?.[1] ?? NaN)
  if (Number.isNaN(serving)) faults.push(`the certificates are torn: ${key}`)
  const named = find(disk, liveManifest)
  const manifest = named?.type === 'symlink' ? find(disk, named.now.data) : named
  const text = find(disk, lastKnownGoodLink)?.now.data
  const linked = text === undefined ? undefined : Number(new RegExp(`/${pod}-(\\d+)/${pod}.yaml$`).exec(text)?.[1])
  if (Number.isNaN(linked)) faults.push(`the link leads to ${text}`)
  const left = [resources, find(disk, places.manifestDirectory)].flatMap((directory) =>
    [...(directory?.now.entries.keys() ?? [])].filter(isStaged),
  )
  const running = manifest && revisionOf(manifest)
  if (manifest && running === undefined) faults.push(`the live manifest is torn: ${manifest.now.data}`)
  return {
    view: {
      live: running,
      link: linked,
      own: find(disk, ownManifest) !== undefined,
      revisions: revisions.sort((a, b) => a - b),
    },
    torn,
    certificates: serving,
    left,
    fault: faults[0],
  }
}

/** The revision of a manifest that is whole, but for what a fallback adds. */
function revisionOf({ now }: Inode): number | undefined {
  try {
    const { metadata, ...rest } = JSON.parse(now.data) as { metadata: { labels: { revision: string } } }
    const revision = Number(metadata.labels.revision)
    const plain = Object.entries(metadata).filter(([field]) => field !== 'uid' && field !== 'annotations')
    const { apiVersion, kind, spec } = { ...podOf(revision), ...rest }
    const same = JSON.stringify({ apiVersion, kind, metadata: Object.fromEntries(plain), spec })
    return same === JSON.stringify(podOf(revision)) && now.attributes.mode === 0o600 ? revision : undefined
  } catch {
    return undefined
  }
}
