/* Commands on a node with a static pod: each on the model disk, from the node in its name. */
import type { DurableCalls } from '../../../../src/durable/index.js'
import { recordLastKnownGood } from '../../../../src/static-pods/monitor/last-known-good.js'
import { elsewhere, moveAway, putBack } from '../foreigners.js'
import type { ModelDisk } from '../model-disk.js'
import { makeDirectory, makeEntry } from '../scenario.js'
import { installs, judged, monitors, nodeWith, type PodStory, prunes, type Start } from './commands.js'
import type { Story } from './explore.js'
import {
  directories,
  lastKnownGoodLink,
  liveManifest,
  ownManifest,
  places,
  type View,
  writeLink,
  writeLive,
  writeRevision,
} from './node.js'
import { rollouts } from './rollouts.js'

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

/** Another program has moved all of the node away and back, and synced nothing: a power cut may find it where it was meanwhile. */
function movedMeanwhile(start: Start): (disk: ModelDisk) => Promise<void> {
  return async (disk) => {
    makeDirectory(disk, '/etc', 0o755)
    await nodeWith(start)(disk)
    moveAway(disk, '/node')
    putBack(disk, '/node')
  }
}

/** Another program has replaced the entry at the path, and synced its bytes, but not its rename. */
function replacedByAnother(
  path: string,
  write: (disk: ModelDisk, path: string) => void | Promise<void>,
  start: Start,
): (disk: ModelDisk) => Promise<void> {
  return async (disk) => {
    makeDirectory(disk, '/etc', 0o755)
    await nodeWith(start)(disk)
    await write(disk, elsewhere)
    disk.syncAll()
    putBack(disk, path)
  }
}

const old = { revisions: [5], live: 6, link: 6 } as const
const installed: View = { live: 7, link: 6, own: false, revisions: [5, 6, 7] }
const toWatch = { revisions: [5, 6], live: 7, own: true } as const
const fellBack: View = { live: 6, link: 6, own: false, revisions: [5, 6, 7] }

export const podStories: readonly PodStory[] = [
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
    name: 'static pod: prune, after another program has replaced the live manifest',
    prepare: replacedByAnother(liveManifest, (disk, path) => writeLive(disk, 6, path), { revisions: [4, 6], live: 5 }),
    command: prunes,
    after: { live: 6, link: undefined, own: false, revisions: [6] },
    undone: { live: 5, link: undefined, own: false, revisions: [5] },
  },
  {
    name: 'static pod: prune, after another program has written the live manifest',
    prepare: async (disk) => {
      await nodeWith({ revisions: [4, 5, 6] })(disk)
      await writeLive(disk, 6)
    },
    command: prunes,
    after: { live: 6, link: undefined, own: false, revisions: [6] },
    isForeign: true,
  },
  {
    name: 'static pod: prune, after another program has replaced what the live manifest leads to',
    prepare: async (disk) => {
      makeDirectory(disk, '/etc', 0o755)
      await nodeWith({ revisions: [4, 5, 6] })(disk)
      await writeLive(disk, 5, '/etc/web.yaml')
      makeEntry(disk, liveManifest, 'symlink', 0o777, '/etc/web.yaml')
      await writeLive(disk, 6, elsewhere)
      disk.syncAll()
      putBack(disk, '/etc/web.yaml')
    },
    command: prunes,
    after: { live: 6, link: undefined, own: false, revisions: [6] },
    undone: { live: 5, link: undefined, own: false, revisions: [5] },
  },
  {
    name: 'static pod: prune, after another program has replaced the link',
    prepare: replacedByAnother(lastKnownGoodLink, (disk, path) => writeLink(disk, 6, path), {
      revisions: [4, 5, 6],
      live: 7,
      link: 5,
    }),
    command: prunes,
    after: { live: 7, link: 6, own: false, revisions: [6, 7] },
    undone: { live: 7, link: 5, own: false, revisions: [5, 7] },
  },
  ...(
    [
      ['install', old, installs(7), installed],
      [
        'prune',
        { revisions: [3, 4, 5], live: 6, link: 5 },
        prunes,
        { live: 6, link: 5, own: false, revisions: [5, 6] },
      ],
      ['monitor, ready', { ...toWatch, link: 6 }, monitors('ready'), { ...installed, link: 7 }],
      ['fallback', { ...toWatch, link: 6 }, monitors('not-ready'), fellBack],
      [
        'link',
        { ...toWatch, link: 6 },
        (durable: DurableCalls) => recordLastKnownGood(places, 7, durable),
        { ...toWatch, link: 7, revisions: [5, 6, 7] },
      ],
      [
        'removal of a manifest',
        toWatch,
        (durable: DurableCalls) => durable.removeFile(ownManifest),
        { live: 7, link: undefined, own: false, revisions: [5, 6, 7] },
      ],
    ] as const
  ).map(([name, start, command, after]): PodStory => ({
    name: `static pod: ${name}, below a directory that another program has moved`,
    prepare: movedMeanwhile(start),
    command,
    after,
    isForeign: true,
  })),
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

export const stories: readonly Story[] = [
  ...podStories.filter(({ meanwhile }) => meanwhile === undefined).map(judged),
  ...rollouts,
]
