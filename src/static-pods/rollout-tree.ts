/*
 * The directory that changes with the manifests. The new one is staged under a name of its own and exchanged with the old one, which
 * keeps that name until every pod is proven ready: pods that still run mount it, and the way back exchanges the two again.
 */
import { lstat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  identityAt,
  removeTarget,
  swapPlaces,
  syncPlaces,
  type DirectoryPublicationRequest,
  type Disk,
  type Identity,
} from '../durable/index.js'
import type { Log } from '../log.js'
import { InvalidInput, StaticPodError } from './failure.js'
import { readLocalTree } from './local-tree.js'
import type { RolledTree } from './rollout-state.js'

/**
 * What `--resources` names, to be read at `target`, with its files' modes; the owner and the mode of directories are those of what is there now.
 * @throws InvalidInput
 */
export async function readRolloutTree(
  root: string,
  target: string,
  requireProven: boolean,
): Promise<DirectoryPublicationRequest> {
  const { files, directories } = await readLocalTree(root)
  if (files.size === 0) throw new InvalidInput(`--resources: ${root} holds no file`)
  if (`${target}/`.startsWith(`${root}/`))
    throw new InvalidInput(`--resource-dir: ${target} lies in --resources ${root}`)
  const found = await lstat(target).catch(() => undefined)
  return {
    target,
    files: Object.fromEntries(files),
    emptyDirectories: directories,
    requireProven,
    ...(found && { mode: found.mode & 0o7777, owner: { uid: found.uid, gid: found.gid } }),
  }
}

/** Where the new tree is staged, and the old one kept. */
function besidePath(target: string): string {
  return join(dirname(target), `.holdfast-rollout-${basename(target)}`)
}

/** @throws StaticPodError where something lies there that no rollout knows of */
export async function refuseKept(target: string, { fs }: Disk): Promise<void> {
  const beside = besidePath(target)
  if ((await identityAt(fs, beside)) === undefined) return
  throw new StaticPodError(
    `${beside} is what an earlier rollout took out, or could not take back; nothing was changed; move it away first`,
  )
}

/** Durable, under its own name; the tree as it then stands in the state. */
export async function stageTree(
  request: DirectoryPublicationRequest,
  { target }: RolledTree,
  disk: Disk,
  signal: AbortSignal,
): Promise<RolledTree> {
  const beside = besidePath(target)
  await disk.publishDirectories([{ ...request, target: beside, foreign: 'always' }], signal)
  const [staged, old] = [await identityAt(disk.fs, beside), await identityAt(disk.fs, target)]
  if (staged === undefined) throw new StaticPodError(`another program removed ${beside}; nothing was changed`)
  return { target, staged, old: old ?? null }
}

/** Makes the new tree the one that is read; durable on return, also where a predecessor was killed before its sync. */
export async function bringTree(tree: RolledTree, { fs }: Disk): Promise<void> {
  const { target } = tree
  const here = await whose(tree, fs)
  if (here === 'new') return syncPlaces(fs, target, besidePath(target))
  if (here === 'old') return swapPlaces(fs, target, besidePath(target))
  throw new StaticPodError(`another program replaced ${target} meanwhile: holdfast leaves it alone`)
}

/** The old tree again. False where another program has replaced the new one: that stays, and so does what was kept. */
export async function returnTree(tree: RolledTree, { fs }: Disk, log: Log): Promise<boolean> {
  const { target } = tree
  const here = await whose(tree, fs)
  if (here === 'old') await syncPlaces(fs, target, besidePath(target))
  else if (here === 'new') await swapPlaces(fs, target, besidePath(target))
  else {
    log.error(
      { path: target, kept: besidePath(target) },
      `another program replaced ${target} during the rollout: holdfast leaves it alone, and keeps the old content as ${besidePath(target)}`,
    )
    return false
  }
  return true
}

export async function removeKept({ target }: RolledTree, { fs }: Disk): Promise<void> {
  await removeTarget(fs, besidePath(target))
}

async function whose({ target, staged, old }: RolledTree, fs: Disk['fs']): Promise<'old' | 'new' | 'other'> {
  const found = await identityAt(fs, target)
  if (isSame(staged, found)) return 'new'
  return isSame(old, found) || (old === null && found === undefined) ? 'old' : 'other'
}

function isSame(known: Identity | null, found: Identity | undefined): boolean {
  return known !== null && known.inode === found?.inode && known.birth === found.birth
}
