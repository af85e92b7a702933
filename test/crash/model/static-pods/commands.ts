/* Commands on a node with a static pod, and the node before each. */
import { DurableCalls } from '../../../../src/durable/index.js'
import { silent } from '../../../../src/log.js'
import { install } from '../../../../src/static-pods/install/install.js'
import { recordLastKnownGood } from '../../../../src/static-pods/monitor/last-known-good.js'
import { monitor } from '../../../../src/static-pods/monitor/monitor.js'
import { prune } from '../../../../src/static-pods/prune/prune.js'
import type { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { makeDirectory } from '../scenario.js'
import { directories, manifestLock, places, planOf, pod, type View, writeOwnManifest } from './node.js'

export type Command = (durable: DurableCalls) => Promise<unknown>

export interface Story {
  readonly name: string
  /** Makes the node; its unsynced parts may be lost until the command has ended. */
  readonly prepare: (disk: ModelDisk) => Promise<void>
  readonly command: Command
  /** The node after the command. */
  readonly after: View
  /** What another program wrote may be torn until the command has ended. */
  readonly isForeign?: true
  /** The node after the command where a power cut has taken another program's unsynced work back. */
  readonly undone?: View
  /** What it removes does not come back under another name, either. */
  readonly isGone?: true
  /** Comes at each call of the command. `live`: the live revision once it has succeeded, whatever the command does then. */
  readonly meanwhile?: { readonly command: Command; readonly live?: number }
}

const { signal } = new AbortController()

export function installs(revision: number, hasCertificates = true): Command {
  return async (durable) =>
    install(await planOf(revision, hasCertificates), {
      durable,
      log: silent,
      signal,
      manifestDirectory: places.manifestDirectory,
      manifestLock,
      timeLeft: () => 0,
      requireProven: true,
      allowOlder: false,
      checkHostPaths: false,
      warnOfHostPaths: false,
    })
}

export const prunes: Command = async (durable) => {
  const lines = await prune(
    { pod, ...places, maxEligible: undefined, protectedRevisions: [], keep: 0, dryRun: false, lockTimeout: 0 },
    durable,
    silent,
    signal,
  )
  const failed = lines.find(({ outcome }) => outcome === 'failed')
  if (failed) throw new Error(failed.why)
}

export function monitors(state: 'ready' | 'not-ready'): Command {
  const probe = { name: 'the pod', ask: () => Promise.resolve({ state, message: state }) }
  return (durable) =>
    monitor(
      { ...places, revision: 7, timeout: 0, manifestLock, probes: [probe], keepOwnManifest: false },
      { durable, log: silent, signal, timing: { interval: 0 } },
    )
}

export interface Start {
  readonly revisions?: readonly number[]
  /** With the revisions before it, published as install does. */
  readonly live?: number
  readonly link?: number
  readonly own?: true
}

/** A node on which all of this is durable. */
export function nodeWith({ revisions = [], live, link, own }: Start): (disk: ModelDisk) => Promise<void> {
  return async (disk) => {
    for (const path of ['/node', ...directories]) makeDirectory(disk, path, 0o755)
    const through = new DurableCalls(new ModelProcess(disk))
    for (const revision of revisions) {
      const { directory } = await planOf(revision)
      if (directory) await through.publishDirectories([directory], undefined)
    }
    if (live !== undefined) await installs(live)(through)
    if (link !== undefined) await recordLastKnownGood(places, link, through)
    if (own) writeOwnManifest(disk)
    disk.syncAll()
  }
}
