/**
 * A static pod whose every generation is a revision: installed, recorded as the last known good one, and the older ones are pruned. The
 * target is its live manifest.
 */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type * as durableModule from '../../../src/durable/index.js'
import type * as logModule from '../../../src/log.js'
import type * as installerModule from '../../../src/static-pods/install/install.js'
import type * as plansModule from '../../../src/static-pods/install/install-plan.js'
import type * as manifestsModule from '../../../src/static-pods/pod/manifest.js'
import type * as linksModule from '../../../src/static-pods/monitor/last-known-good.js'
import type * as prunerModule from '../../../src/static-pods/prune/prune.js'
import { isKind } from '../judge/names.js'
import { module, type Result } from './library.js'
import { differenceAt } from './observe.js'
import { filesOf, type Target, type WantedFile, wholeFile } from './targets.js'

const pod = 'web-pod'
/** Staged entries, and those on their way out. */
const isStaged = isKind('staging', 'foreign')

function placesOf(mountPoint: string, { path }: Target) {
  return {
    manifestDirectory: dirname(join(mountPoint, path)),
    resourceDirectory: join(mountPoint, 'pods'),
    target: 'web',
  }
}

/** What a revision holds beside the copy of its manifest. */
function objectsOf(target: Target, generation: number): Map<string, WantedFile> {
  const copies = filesOf({ ...target, kind: 'directory', content: 'few' }, generation)
  return new Map([...copies].map(([name, file]) => [`secrets/serving/${name}`, file]))
}

function prunesLast(generation: number): boolean {
  return generation % 2 === 1
}

export async function publishPod(mountPoint: string, target: Target, generation: number): Promise<Result> {
  const { DurableCalls } = await module<typeof durableModule>('durable/index')
  const { silent } = await module<typeof logModule>('log')
  const { install } = await module<typeof installerModule>('static-pods/install/install')
  const { revisionRequest } = await module<typeof plansModule>('static-pods/install/install-plan')
  const { parseManifest } = await module<typeof manifestsModule>('static-pods/pod/manifest')
  const { recordLastKnownGood } = await module<typeof linksModule>('static-pods/monitor/last-known-good')
  const { prune } = await module<typeof prunerModule>('static-pods/prune/prune')
  const places = placesOf(mountPoint, target)
  const { signal } = new AbortController()
  const durable = new DurableCalls()
  const content = filesOf(target, generation).get(wholeFile)?.content ?? Buffer.alloc(0)
  const manifests = [{ name: `${pod}.yaml`, content, manifest: await parseManifest(content, pod) }]
  const files = objectsOf(target, generation)
  const directories = ['secrets', 'secrets/serving']
  const directory = revisionRequest(places.resourceDirectory, pod, generation, {
    files,
    directories,
    manifests,
    objects: [],
  })
  const installed = await install(
    { pod, revision: generation, directory, lasting: [], manifests },
    {
      ...places,
      durable,
      log: silent,
      signal,
      manifestLock: undefined,
      timeLeft: () => 0,
      requireProven: false,
      allowOlder: false,
      checkHostPaths: false,
      warnOfHostPaths: false,
    },
  )
  const request = {
    ...places,
    pod,
    maxEligible: undefined,
    protectedRevisions: [],
    keep: 0,
    dryRun: false,
    lockTimeout: 0,
  }
  const prunes = async (): Promise<void> => {
    const failed = (await prune(request, durable, silent, signal)).find((line) => line.outcome === 'failed')
    if (failed) throw new Error(failed.why)
  }
  // Either is the last one in turns: what comes after it could make it durable.
  if (!prunesLast(generation)) await prunes()
  await recordLastKnownGood(places, generation, durable)
  if (prunesLast(generation)) await prunes()
  const outcome = installed.manifests[0]?.outcome
  if (outcome === undefined || outcome === 'kept') throw new Error('no manifest was installed')
  return { outcome }
}

/** The fault beside the live manifest, where it is one of these generations; 0 is none. */
export function podProblem(mountPoint: string, target: Target, allowed: readonly number[]): string | undefined {
  if (target.kind !== 'pod') return undefined
  const { resourceDirectory } = placesOf(mountPoint, target)
  if (!lstatSync(resourceDirectory, { throwIfNoEntry: false }))
    return allowed.includes(0) ? undefined : 'there are no revisions'
  const link = linkedRevision(join(resourceDirectory, 'web-last-known-good'))
  if (!allowed.includes(link)) return `the link leads to ${link}`
  const entries = readdirSync(resourceDirectory)
  const revisions = entries
    .filter((name) => name.startsWith(`${pod}-`))
    .map((name) => Number(name.slice(pod.length + 1)))
  for (const revision of revisions) {
    const manifest = filesOf(target, revision).get(wholeFile)
    const wanted = new Map([...objectsOf(target, revision), ...(manifest ? [[`${pod}.yaml`, manifest] as const] : [])])
    const problem = differenceAt(join(resourceDirectory, `${pod}-${revision}`), target, wanted)
    if (problem !== undefined) return `revision ${revision}: ${problem}`
  }
  for (const needed of new Set([link, ...(allowed.length === 1 ? allowed : [])])) {
    if (needed !== 0 && !revisions.includes(needed)) return `revision ${needed} is missing`
  }
  if (allowed.length > 1) return undefined
  const [current = 0] = allowed
  const others = revisions.filter((revision) => revision !== current)
  // The link protected one while the others were removed.
  const other = prunesLast(current) ? others[0] : others[1]
  if (other !== undefined) return `revision ${other} was removed, and is back`
  const left = entries.find((name) => isStaged(name) && lstatSync(join(resourceDirectory, name)).isDirectory())
  return left === undefined ? undefined : `${left} was removed, and is back`
}

function linkedRevision(path: string): number {
  if (!lstatSync(path, { throwIfNoEntry: false })) return 0
  return Number(/\/web-pod-(\d+)\/web-pod\.yaml$/.exec(readlinkSync(path))?.[1])
}
