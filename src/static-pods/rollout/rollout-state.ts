/*
 * A rollout writes its next step to this file, beside the manifests and their records, durably before the step. After a kill or a power
 * cut, the next run reads in it what may be on the disk, how to prove it, and what stood there before.
 */
import { join } from 'node:path'
import type { Disk } from '../../durable/index.js'
import type { Identity } from '../../durable/path/index.js'
import type { KnownEntry } from '../../durable/record/index.js'
import type { Log } from '../../log.js'
import { StaticPodError } from '../failure.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { readNodeFile } from '../node-files.js'
import type { ReadinessSettings } from '../ready/readiness-settings.js'

/** kubelet reads no name with a leading dot. */
const stateName = '.holdfast-rollout'

export interface RolledManifest {
  /** File name in the manifest directory. */
  readonly name: string
  /** Base64; null: there was none. */
  readonly previous: string | null
  /** Of the previous manifest. */
  readonly mode: number
  readonly owner: { readonly uid: number; readonly gid: number } | null
  /** Base64. */
  readonly next: string
}

/** The directory that changes with the manifests. */
export interface RolledTree {
  readonly target: string
  /** null: not staged yet. */
  readonly staged: Identity | null
  readonly stagedContent: readonly KnownEntry[]
  /** null: there was none. */
  readonly old: Identity | null
  /** Its entries, read before the comparison with the new one: an entry that comes later is another program's. */
  readonly oldContent: readonly KnownEntry[]
}

/**
 * `staging`: nothing that a pod reads has changed. `going`: the tree and the first `reached` manifests may be new. `back`: all goes
 * back. `proven`: every pod was ready; the old tree may go.
 */
export interface RolloutState {
  readonly phase: 'staging' | 'going' | 'back' | 'proven'
  /** Identifies the request: the same manifests and the same tree have the same. */
  readonly request: string
  readonly manifests: readonly RolledManifest[]
  readonly reached: number
  readonly tree: RolledTree | null
  /** When the watch of the newest manifest began; null: with the next look. */
  readonly since: { readonly boot: string; readonly uptime: number } | null
  /** Milliseconds for each pod. */
  readonly timeout: number
  readonly fallback: boolean
  readonly manifestLock: string | null
  readonly readiness: ReadinessSettings
  /** Keys of the probes that could ask before anything changed; absent where an earlier version of holdfast wrote it. */
  readonly couldAsk?: readonly string[]
  /** Why it goes back. */
  readonly message: string
  /** Directories that earlier rollouts have taken out, and that processes still use. */
  readonly kept?: readonly RolledTree[]
}

/** How the last one ended. */
export interface EndedRollout {
  readonly phase: 'ended'
  readonly outcome: string
  readonly request: string
  /** Directories that this rollout took out, and that processes still use: the next run removes each once it may. */
  readonly kept?: readonly RolledTree[]
}

export interface RolloutOutcome {
  /**
   * `unchanged`: the node had all of it already. `taken-back`: all is as it was before. `not-ready`, `unknown`: the new pods stay, and
   * `--resume` watches them again. `nothing-to-resume`: no rollout had been interrupted.
   */
  readonly outcome: 'ready' | 'unchanged' | 'taken-back' | 'not-ready' | 'unknown' | 'nothing-to-resume'
  /** File names of the manifests, as far as they were made live. */
  readonly manifests: readonly string[]
  readonly message?: string
  /** Directories that are out, and still on the disk, since a process uses them, or may do so: where, why, and what to do. */
  readonly kept?: readonly string[]
  /** Present and true where the manifests or the directory lie on a file system on which durability is not proven. */
  readonly unproven?: true
}

interface Stored {
  readonly version: 1
}

function statePath(manifestDirectory: string): string {
  return join(manifestDirectory, stateName)
}

/** The one lock that every rollout of a manifest directory holds from its beginning to its end. */
export function rolloutLockPath(manifestDirectory: string): string {
  return join(manifestDirectory, `${stateName}.lock`)
}

/** Durable on return. @throws DurableWriteError */
export async function writeState(
  manifestDirectory: string,
  state: RolloutState | EndedRollout,
  disk: Disk,
  log: Log,
): Promise<void> {
  const stored: (RolloutState | EndedRollout) & Stored = { version: 1, ...state }
  const content = Buffer.from(`${JSON.stringify(stored)}\n`)
  await disk.publishFiles([{ path: statePath(manifestDirectory), content, options: { mode: 0o600, log } }], undefined)
}

/**
 * The rollout that is written down; undefined where there is none.
 * @throws StaticPodError for a file that cannot be read: nothing was changed
 */
export async function readState(
  manifestDirectory: string,
  { fs }: Disk,
): Promise<RolloutState | EndedRollout | undefined> {
  const path = statePath(manifestDirectory)
  const bytes = await readNodeFile(fs, path)
  if (bytes === undefined) return undefined
  let value: JsonMap | undefined
  try {
    value = asMap(JSON.parse(Buffer.from(bytes).toString('utf8')))
  } catch {
    value = undefined
  }
  if (isEnded(value)) return value as unknown as EndedRollout
  if (!isState(value)) {
    throw new StaticPodError(
      `${path} is not what this version of holdfast writes about a rollout; nothing was changed; ` +
        'use the version that wrote it, or remove the file once the manifests are as they should be',
    )
  }
  return value as unknown as RolloutState
}

const phases = new Set<unknown>(['staging', 'going', 'back', 'proven'] satisfies RolloutState['phase'][])

function isEnded(value: JsonMap | undefined): boolean {
  return value?.version === 1 && value.phase === 'ended' && typeof value.outcome === 'string'
}

function isState(value: JsonMap | undefined): boolean {
  if (value?.version !== 1 || !phases.has(value.phase) || typeof value.reached !== 'number') return false
  const named = asList(value.manifests).every((manifest) => asText(asMap(manifest)?.next) !== undefined)
  return named && asMap(value.readiness) !== undefined && typeof value.timeout === 'number'
}

/** Removes what a rollout that was killed has staged of the file. */
export async function tidyState(manifestDirectory: string, disk: Disk): Promise<void> {
  await disk.tidy(statePath(manifestDirectory))
}

export function bytesOf(base64: string): Buffer {
  return Buffer.from(base64, 'base64')
}
