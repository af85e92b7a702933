/* What is done to a node with a static pod: each command on the model disk, from a node that is as its name says. */
import { Disk } from '../../../../src/durable/index.js'
import { silent } from '../../../../src/log.js'
import { install } from '../../../../src/static-pods/install.js'
import { recordLastKnownGood } from '../../../../src/static-pods/last-known-good.js'
import { monitor } from '../../../../src/static-pods/monitor.js'
import { prune } from '../../../../src/static-pods/prune.js'
import type { Readiness } from '../../../../src/static-pods/readiness.js'
import type { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { makeDirectory } from '../scenario.js'
import {
  directories,
  manifestLock,
  places,
  planOf,
  pod,
  type View,
  writeLive,
  writeOwnManifest,
  writeRevision,
} from './node.js'

export type Command = (disk: Disk) => Promise<unknown>

export interface Story {
  readonly name: string
  /** Makes the node; what is not synced there may be lost until the command has ended. */
  readonly prepare: (disk: ModelDisk) => Promise<void>
  readonly command: Command
  /** What it makes of the node. */
  readonly after: View
  /** What another program wrote may be torn until the command has ended. */
  readonly isForeign?: true
  /** What it removes does not come back under another name, either. */
  readonly isGone?: true
  /** Comes at each call of the command. `live`: the live revision once it has succeeded, whatever the command does then. */
  readonly meanwhile?: { readonly command: Command; readonly live?: number }
}

const { signal } = new AbortController()

function installs(revision: number, hasCertificates = true): Command {
  return async (disk) =>
    install(await planOf(revision, hasCertificates), {
      disk,
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

const prunes: Command = async (disk) => {
  const lines = await prune(
    { pod, ...places, maxEligible: undefined, protectedRevisions: [], keep: 0, dryRun: false, lockTimeout: 0 },
    disk,
    silent,
    signal,
  )
  const failed = lines.find(({ outcome }) => outcome === 'failed')
  if (failed) throw new Error(failed.why)
}

function monitors(state: Readiness['state']): Command {
  const probe = { name: 'the pod', ask: () => Promise.resolve({ state, message: state }) }
  return (disk) =>
    monitor(
      { ...places, revision: 7, timeout: 0, manifestLock, probes: [probe], keepOwnManifest: false },
      { disk, log: silent, signal, timing: { interval: 0 } },
    )
}

interface Start {
  readonly revisions?: readonly number[]
  /** With the revisions before it, published as install does. */
  readonly live?: number
  readonly link?: number
  readonly own?: true
}

/** A node on which all of this is durable. */
function nodeWith({ revisions = [], live, link, own }: Start): (disk: ModelDisk) => Promise<void> {
  return async (disk) => {
    for (const path of ['/node', ...directories]) makeDirectory(disk, path, 0o755)
    const through = new Disk(new ModelProcess(disk))
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

/** Another program has made all of the node, and synced nothing. */
async function writtenByAnother(disk: ModelDisk): Promise<void> {
  for (const path of ['/node', ...directories]) makeDirectory(disk, path, 0o755)
  await writeLive(disk, 7)
  await writeRevision(disk, 7)
}

/** The same, but that its manifest is durable. */
async function writtenBelow(disk: ModelDisk): Promise<void> {
  for (const path of ['/node', ...directories.slice(0, 2)]) makeDirectory(disk, path, 0o755)
  await writeLive(disk, 7)
  disk.syncAll()
  for (const path of directories.slice(2)) makeDirectory(disk, path, 0o755)
  await writeRevision(disk, 7)
}

const old = { revisions: [5], live: 6, link: 6 } as const
const installed: View = { live: 7, link: 6, own: false, revisions: [5, 6, 7] }
const toWatch = { revisions: [5, 6], live: 7, own: true } as const
const fellBack: View = { live: 6, link: 6, own: false, revisions: [5, 6, 7] }

export const stories: readonly Story[] = [
  {
    name: 'static pod: the first install',
    prepare: nodeWith({}),
    command: installs(7),
    after: { live: 7, link: undefined, own: false, revisions: [7] },
  },
  { name: 'static pod: install', prepare: nodeWith(old), command: installs(7), after: installed },
  {
    name: 'static pod: install of a revision that another program wrote',
    prepare: async (disk) => {
      await nodeWith(old)(disk)
      await writeRevision(disk, 7)
    },
    command: installs(7),
    after: installed,
    isForeign: true,
  },
  {
    name: 'static pod: install of a revision that another program wrote and made live',
    prepare: writtenByAnother,
    command: installs(7, false),
    after: { live: 7, link: undefined, own: false, revisions: [7] },
    isForeign: true,
  },
  {
    name: 'static pod: prune',
    prepare: nodeWith({ revisions: [3, 4, 5], live: 6, link: 5 }),
    command: prunes,
    after: { live: 6, link: 5, own: false, revisions: [5, 6] },
    isGone: true,
  },
  {
    name: 'static pod: monitor, ready',
    prepare: nodeWith({ ...toWatch, link: 6 }),
    command: monitors('ready'),
    after: { live: 7, link: 7, own: false, revisions: [5, 6, 7] },
  },
  {
    name: 'static pod: monitor, ready for the first time',
    prepare: nodeWith(toWatch),
    command: monitors('ready'),
    after: { live: 7, link: 7, own: false, revisions: [5, 6, 7] },
  },
  {
    name: 'static pod: monitor, ready, on a node that another program wrote',
    prepare: writtenBelow,
    command: monitors('ready'),
    after: { live: 7, link: 7, own: false, revisions: [7] },
    isForeign: true,
  },
  {
    name: 'static pod: fallback to the last known good revision',
    prepare: nodeWith({ ...toWatch, link: 6 }),
    command: monitors('not-ready'),
    after: fellBack,
  },
  {
    name: 'static pod: fallback to the newest older revision',
    prepare: nodeWith(toWatch),
    command: monitors('not-ready'),
    after: fellBack,
  },
  {
    name: 'static pod: prune meets install',
    prepare: nodeWith(old),
    command: prunes,
    after: { live: 6, link: 6, own: false, revisions: [6] },
    meanwhile: { command: installs(7), live: 7 },
  },
  {
    name: 'static pod: install meets prune',
    prepare: nodeWith(old),
    command: installs(7),
    after: installed,
    meanwhile: { command: prunes },
  },
  {
    name: 'static pod: install meets a newer install',
    prepare: nodeWith(old),
    command: installs(7),
    after: installed,
    meanwhile: { command: installs(8), live: 8 },
  },
  {
    name: 'static pod: fallback meets install',
    prepare: nodeWith({ ...toWatch, link: 6 }),
    command: monitors('not-ready'),
    after: fellBack,
    meanwhile: { command: installs(8), live: 8 },
  },
]
