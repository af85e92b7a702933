/*
 * The directory that changes with the manifests. The new one is staged beside it under another name and exchanged with the old one, which
 * keeps that name until every pod is proven ready: pods that still run mount it, and the way back exchanges the two again.
 */
import { basename, dirname } from 'node:path'
import { places, type DurableCalls } from '../../durable/index.js'
import type { DirectoryPublicationRequest } from '../../durable/single-calls/index.js'
import type { Identity } from '../../durable/path/index.js'
import type { Log } from '../../log.js'
import { type OpenedDirectory, readMounted } from '../../mounted-volume.js'
import { InvalidInput, StaticPodError } from '../failure.js'
import { readAttributes, readLocalTree, unreadable } from '../install/local-tree.js'
import { besidePath, type RolledTree } from './rollout-state.js'

/**
 * Reads the directory that `--resources` names, for `target`: each entry with the mode, the owner and the ACLs that it has there.
 * @throws InvalidInput
 */
export async function readRolloutTree(
  root: string,
  target: string,
  requireProven: boolean,
): Promise<DirectoryPublicationRequest> {
  const read = async (directory: OpenedDirectory) => {
    const tree = await readLocalTree(directory)
    return { ...tree, entries: await readAttributes(directory, tree) }
  }
  const { files, directories, entries } = await readMounted(root, read, unreadable)
  if (files.size === 0) throw new InvalidInput(`--resources: ${root} holds no file`)
  if (`${target}/`.startsWith(`${root}/`))
    throw new InvalidInput(`--resource-dir: ${target} lies in --resources ${root}`)
  return { target, files: Object.fromEntries(files), emptyDirectories: directories, entries, requireProven }
}

/** A tree that a rollout took out, and that processes still use. */
export interface KeptTree {
  readonly tree: RolledTree
  /** Where it stays, why, and what to do. */
  readonly message: string
}

/** The entries of a directory: no others may go with it. Empty where there is none. */
export async function entriesOfTree(path: string, durable: DurableCalls): Promise<RolledTree['oldContent']> {
  return (await durable.inDirectory(path, (directory) => places.knownContent(durable.fs, directory))) ?? []
}

/** Writes nothing. @throws StaticPodError where something lies there that no rollout knows of */
export async function refuseKeptTrees(target: string, durable: DurableCalls, kept: readonly KeptTree[]): Promise<void> {
  const beside = besidePath(target)
  const found = await durable.inDirectory(dirname(beside), (parent) => durable.fs.look(parent, basename(beside)))
  if (found === undefined) return
  const known = kept.find(({ tree }) => tree.target === target)
  if (known) throw new StaticPodError(`an earlier rollout is not over: ${known.message}; nothing was changed`)
  throw new StaticPodError(
    `${beside} is what an earlier rollout took out, or could not take back; nothing was changed; move it away first`,
  )
}

/** Durable, under its own name; the tree as it then stands in the state. */
export async function stageRolledTree(
  request: DirectoryPublicationRequest,
  { target, oldContent }: RolledTree,
  durable: DurableCalls,
  signal: AbortSignal,
): Promise<RolledTree> {
  const beside = besidePath(target)
  const staging = {
    ...request,
    target: beside,
    inPlaceOf: target,
    foreign: 'same-names',
    publisher: 'rollout',
  } as const
  await durable.publishDirectories([staging], signal)
  const [staged, old] = [await places.identityAt(durable.fs, beside), await places.identityAt(durable.fs, target)]
  if (staged === undefined) throw new StaticPodError(`another program removed ${beside}; nothing was changed`)
  return { target, staged, stagedContent: await entriesOfTree(beside, durable), old: old ?? null, oldContent }
}

/** Finds the tree that was staged before the state file named it: by its record, since another program may have put another there. */
export async function findStaged(tree: RolledTree, durable: DurableCalls): Promise<RolledTree> {
  const beside = besidePath(tree.target)
  const stagedContent = await entriesOfTree(beside, durable)
  // The identity comes after the content: an entry that comes in between is no part of it.
  if (tree.staged !== null || (await durable.isDrifted(beside)) !== false) return tree
  return { ...tree, staged: (await places.identityAt(durable.fs, beside)) ?? null, stagedContent }
}

/** Puts the new tree in the target's place; durable on return, also where a predecessor was killed before its sync. */
export async function bringTree(tree: RolledTree, { fs }: DurableCalls): Promise<void> {
  const { target } = tree
  const here = await whose(tree, fs)
  if (here === 'new') return places.syncPlaces(fs, target, besidePath(target))
  if (here !== 'old') throw new StaticPodError(`another program replaced ${target} meanwhile: holdfast leaves it alone`)
  const beside = besidePath(target)
  if (isSameTree(tree.staged, await places.identityAt(fs, beside))) return places.swapPlaces(fs, target, beside)
  throw new StaticPodError(
    `another program removed or replaced ${beside}, which was to become ${target}: holdfast leaves both as they are`,
  )
}

/** The old tree again. Otherwise why not: another program has replaced one of the two; then both stay as they are. */
export async function returnTree(tree: RolledTree, { fs }: DurableCalls, log: Log): Promise<string | undefined> {
  const { target, old } = tree
  const beside = besidePath(target)
  const here = await whose(tree, fs)
  if (here === 'old') {
    await places.syncPlaces(fs, target, beside)
    return undefined
  }
  const kept = await places.identityAt(fs, beside)
  if (here === 'new' && (old === null ? kept === undefined : isSameTree(old, kept))) {
    await places.swapPlaces(fs, target, beside)
    return undefined
  }
  const problem =
    here === 'other'
      ? `another program replaced ${target} during the rollout: holdfast leaves it alone, and ${beside} as it is`
      : `another program removed or replaced ${beside}, where the old content was: ${target} stays new`
  log.error({ path: target, kept: beside }, problem)
  return problem
}

/**
 * Removes the directory beside the target, unless a process uses it: a pod goes on with what it has mounted, be it of the API or of a
 * manifest that leads here by a way that holdfast cannot see. Then it stays, and the answer says why, and what to do. A directory with more
 * entries than holdfast knows of gets another name. `wasLive`: false for a tree that was only staged, and no pod has found.
 */
export async function removeKept(
  tree: RolledTree,
  { fs }: DurableCalls,
  log: Log,
  wasLive: boolean,
): Promise<KeptTree | undefined> {
  const { target, staged, stagedContent, old, oldContent } = tree
  const beside = besidePath(target)
  const user = wasLive ? await places.userAt(fs, beside) : undefined
  if (user !== undefined) {
    const message =
      `${beside} stays, which was ${target} before: ${user}; restart what uses it, then holdfast rollout --resume, or the next ` +
      'rollout, removes it: as root, and in a pod with hostPID: true, where it sees all processes'
    log.warn({ path: target, kept: beside }, message)
    return { tree, message }
  }
  const found = await places.identityAt(fs, beside)
  const known = isSameTree(staged, found) ? stagedContent : isSameTree(old, found) ? oldContent : []
  const quarantined = await places.removeTarget(fs, beside, known)
  if (quarantined === undefined) return undefined
  log.warn(
    { path: target, quarantined },
    `another program changed what the rollout took out of ${target}; holdfast keeps it as ${quarantined} beside it: move out ` +
      'what belongs elsewhere, then remove it',
  )
  return undefined
}

/** The same for all that earlier rollouts have kept; answers what still stays. */
export async function removeAllKept(
  trees: readonly RolledTree[],
  durable: DurableCalls,
  log: Log,
): Promise<KeptTree[]> {
  const kept: KeptTree[] = []
  for (const tree of trees) {
    const stays = await removeKept(tree, durable, log, true)
    if (stays) kept.push(stays)
  }
  return kept
}

/** Where the old tree lies: still at its place, or, once exchanged, beside it. undefined: there is none, or another program moved it. */
export async function oldTreeAt(tree: RolledTree, fs: DurableCalls['fs']): Promise<string | undefined> {
  for (const path of [tree.target, besidePath(tree.target)]) {
    if (isSameTree(tree.old, await places.identityAt(fs, path))) return path
  }
  return undefined
}

async function whose({ target, staged, old }: RolledTree, fs: DurableCalls['fs']): Promise<'old' | 'new' | 'other'> {
  const found = await places.identityAt(fs, target)
  if (isSameTree(staged, found)) return 'new'
  return isSameTree(old, found) || (old === null && found === undefined) ? 'old' : 'other'
}

function isSameTree(known: Identity | null, found: Identity | undefined): boolean {
  return known !== null && known.inode === found?.inode && known.birth === found.birth
}
