/* Commands on a node with a static pod, the node before each, and what is promised of it. */
import { DurableCalls } from '../../../../src/durable/index.js'
import { silent } from '../../../../src/log.js'
import { install } from '../../../../src/static-pods/install/install.js'
import { recordLastKnownGood } from '../../../../src/static-pods/monitor/last-known-good.js'
import { monitor } from '../../../../src/static-pods/monitor/monitor.js'
import { prune } from '../../../../src/static-pods/prune/prune.js'
import type { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { makeDirectory } from '../scenario.js'
import type { Command, Judge, Story } from './explore.js'
import {
  directories,
  type Found,
  intactRevision,
  look,
  manifestLock,
  places,
  planOf,
  pod,
  type View,
  writeOwnManifest,
} from './node.js'

export interface PodStory extends Pick<Story, 'name' | 'prepare' | 'command'> {
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

/** What a power cut takes back of two renames is one of many states. */
export function judged(story: PodStory): Story {
  return { ...story, share: story.undone ? 2 : 1 / 2, judge: (before) => judgeOf(story, before) }
}

async function judgeOf(story: PodStory, disk: ModelDisk): Promise<Judge> {
  await intactRevision(7)
  const { view: before } = await look(disk)
  const { undone, isForeign } = story
  const doneAs =
    (asked: PodStory): Judge['done'] =>
    async ({ disk }, wrong, isCut) =>
      done(asked, await look(disk), wrong, isCut)
  return {
    whole: async (disk, wrong) => isForeign ?? whole(story, before, await look(disk), wrong),
    done: doneAs(story),
    next: async (disk, isCut) => {
      // What another program wrote and did not sync may be lost, and the command with it: it ended in nothing.
      if (isCut && isForeign) return []
      const { view } = await look(disk)
      const isUndone = undone !== undefined && view.live === undone.live && view.link === undone.link
      return [[story.command, doneAs(isUndone ? { ...story, after: undone } : story)]]
    },
  }
}

type Wrong = Parameters<Judge['whole']>[1]

/** All of it is as it was, or as it is to be. */
function whole({ after, undone }: PodStory, before: View, found: Found, wrong: Wrong): void {
  const { view, torn, certificates, fault } = found
  if (fault !== undefined) wrong(fault)
  for (const revision of torn) wrong(`revision ${revision} is torn`)
  for (const part of ['live', 'link', 'own'] as const) {
    if (![before, after, undone ?? after].some((known) => known[part] === view[part])) wrong(`${part} is ${view[part]}`)
  }
  for (const revision of before.revisions) {
    if (after.revisions.includes(revision) && !view.revisions.includes(revision)) wrong(`revision ${revision} is gone`)
  }
  for (const revision of [view.live, view.link]) {
    if (revision !== undefined && !view.revisions.includes(revision))
      wrong(`revision ${revision} is named, and is not there`)
  }
  if (view.live !== before.live && view.live === after.live && (after.live ?? 0) > (before.live ?? 0)) {
    if (certificates !== after.live) wrong(`revision ${view.live} is live with the certificates of ${certificates}`)
  }
  // The next process takes the monitor for done.
  const isDone = view.live === after.live && view.link === after.link
  if (before.own && !view.own && !isDone) wrong("the monitor's manifest is gone before its work is done")
}

function done({ after, isGone }: PodStory, { view, torn, left, fault }: Found, wrong: Wrong, isCut = false): void {
  const broken = fault ?? torn.map((revision) => `revision ${revision} is torn`)[0]
  if (broken !== undefined) wrong(`after success: ${broken}`)
  const [found, expected] = [view, after].map(({ live, link, own, revisions }) =>
    [live, link, own, ...revisions].join(),
  )
  if (found !== expected) wrong(`after success: ${found}, not ${expected}`)
  if (left.length > 0 && (isGone || !isCut)) wrong(`after success: ${left.join()} is left`)
}
