/*
 * A rollout writes its next step to this file, beside the manifests and their records, durably before the step. After a kill or a power
 * cut, the next run reads in it what may be on the disk, how to prove it, and what stood there before.
 */
import { constants } from 'node:buffer'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { nodeFiles, type DurableCalls } from '../../durable/index.js'
import type { Identity } from '../../durable/path/index.js'
import type { KnownEntry } from '../../durable/record/index.js'
import type { Log } from '../../log.js'
import { StaticPodError } from '../failure.js'
import { asMap } from '../json.js'
import type { ReadinessSettings } from '../ready/readiness.js'

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
  /** Why it goes back. */
  readonly message: string
  /** Directories that earlier rollouts have taken out, and that processes still use. */
  readonly kept?: readonly RolledTree[]
}

/** How the last one ended. */
export interface EndedRollout {
  readonly phase: 'ended'
  readonly outcome: string
  /** Why, where it was taken back. */
  readonly message?: string
  readonly request: string
  /** Directories that this rollout took out, and that processes still use: the next run removes each once it may. */
  readonly kept?: readonly RolledTree[]
}

export interface RolloutOutcome {
  /**
   * `unchanged`: the node had all of it already. `taken-back`: all is as it was before. `not-ready`: the new pods stay, and
   * `--resume` watches them again. `nothing-to-resume`: no rollout had been interrupted; `never-begun`: nor was one ever begun there.
   */
  readonly outcome: 'ready' | 'unchanged' | 'taken-back' | 'not-ready' | 'nothing-to-resume' | 'never-begun'
  /** File names of the manifests, as far as they were made live. */
  readonly manifests: readonly string[]
  readonly message?: string
  /** Where it was taken back: whether the old pods answer again. */
  readonly old?: string
  /** Directories that are out, and still on the disk, since a process uses them, or may do so: where, why, and what to do. */
  readonly kept?: readonly string[]
  /** Present and true where the manifests or the directory lie on a file system on which durability is not proven. */
  readonly unproven?: true
}

const statePath = (manifestDirectory: string): string => join(manifestDirectory, stateName)

/** Where the new tree is staged, and the old one kept. */
export function besidePath(target: string): string {
  return join(dirname(target), `${stateName}-${basename(target)}`)
}

/** The one lock that every rollout of a manifest directory holds from its beginning to its end. */
export function rolloutLockPath(manifestDirectory: string): string {
  return join(manifestDirectory, `${stateName}.lock`)
}

/** Durable on return. @throws DurableWriteError */
export async function writeState(
  manifestDirectory: string,
  state: RolloutState | EndedRollout,
  durable: DurableCalls,
  log: Log,
): Promise<void> {
  const content = Buffer.from(`${JSON.stringify({ version: 1, ...state })}\n`)
  await durable.publishFiles(
    [{ path: statePath(manifestDirectory), content, options: { mode: 0o600, log } }],
    undefined,
  )
}

/**
 * The rollout that is written down; undefined where there is none.
 * @throws StaticPodError for a damaged file: nothing was changed
 */
export async function readState(
  manifestDirectory: string,
  { fs }: DurableCalls,
): Promise<RolloutState | EndedRollout | undefined> {
  const path = statePath(manifestDirectory)
  // It holds each manifest twice, before and after; a longer text could not be written.
  const bytes = await nodeFiles.read(fs, path, { largest: constants.MAX_STRING_LENGTH })
  if (bytes === undefined) return undefined
  const found = parseRolloutState(Buffer.from(bytes).toString('utf8'))
  if (typeof found !== 'string') return found
  throw new StaticPodError(
    `${path} is damaged: ${found}; nothing was changed; holdfast can neither finish that rollout nor take it back: make the manifests in ` +
      `${manifestDirectory}, and a directory that has a .holdfast-rollout-NAME beside it, what they are to be, then remove ${path}`,
  )
}

/** The state; for a damaged file, its fault. */
function parseRolloutState(text: string): RolloutState | EndedRollout | string {
  if (text === '') return 'it is empty'
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'it is no whole JSON'
  }
  const isEnded = asMap(value)?.phase === 'ended'
  return (isEnded ? ended : underWay)(value, '') ?? (value as RolloutState | EndedRollout)
}

/** What is wrong with a value of the file, which stands `at` this place. Shows no value: manifests may hold secrets. */
type ValueCheck = (value: unknown, at: string) => string | undefined

function checkThat(isFit: (value: unknown) => boolean, wrong: string): ValueCheck {
  return (value, at) => (isFit(value) ? undefined : `${at} ${wrong}`)
}

function eachItem(each: ValueCheck): ValueCheck {
  return (value, at) => {
    if (!Array.isArray(value)) return `${at} is no list`
    return value.map((item, index) => each(item, `${at}[${index}]`)).find((fault) => fault !== undefined)
  }
}

function mapOf(fields: Readonly<Record<string, ValueCheck>>): ValueCheck {
  return (value, at) => {
    const map = asMap(value) ?? {}
    const faults = Object.entries(fields).map(([key, each]) => each(map[key], at === '' ? key : `${at}.${key}`))
    return faults.find((fault) => fault !== undefined)
  }
}

const orNull =
  (each: ValueCheck): ValueCheck =>
  (value, at) =>
    value === null ? undefined : each(value, at)
const orAbsent =
  (each: ValueCheck): ValueCheck =>
  (value, at) =>
    value === undefined ? undefined : each(value, at)

const text = checkThat((value) => typeof value === 'string', 'is no text')
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0
const count = checkThat(isCount, 'is no number from 0 on')
const number = checkThat((value) => typeof value === 'number' && value >= 0, 'is no number from 0 on')
const flag = checkThat((value) => typeof value === 'boolean', 'is neither true nor false')
const path = checkThat((value) => typeof value === 'string' && isAbsolute(value), 'is no absolute path')
const url = checkThat((value) => typeof value === 'string' && URL.canParse(value), 'is no URL')
const isBase64 = (value: unknown): boolean => typeof value === 'string' && bytesOf(value).toString('base64') === value
const base64 = checkThat(isBase64, 'is no base64')
const fileName = checkThat(
  (value) => typeof value === 'string' && value !== '' && !value.startsWith('.') && !value.includes('/'),
  'is no file name of a manifest',
)
const version = checkThat((value) => value === 1, 'is not 1, which this version of holdfast writes')
const identity = orNull(mapOf({ inode: text, birth: text }))
const entries = eachItem(mapOf({ path: text, type: text }))
const tree = mapOf({ target: path, staged: identity, stagedContent: entries, old: identity, oldContent: entries })
const kept = orAbsent(eachItem(tree))
const manifest = mapOf({
  name: fileName,
  previous: orNull(base64),
  mode: count,
  owner: orNull(mapOf({ uid: count, gid: count })),
  next: base64,
})
const optionalPath = orNull(path)
const readiness = mapOf({
  readyFor: orAbsent(number),
  urls: eachItem(url),
  authority: optionalPath,
  commands: eachItem(text),
  kubelet: orNull(
    mapOf({ url, authority: optionalPath, certificate: optionalPath, key: optionalPath, tokenFile: optionalPath }),
  ),
  mirrorPod: orNull(mapOf({ kubeconfig: path, context: orNull(text), namespace: orNull(text), nodeName: text })),
})

const ended = mapOf({ version, outcome: text, request: text, message: orAbsent(text), kept })

const phases = new Set<unknown>(['staging', 'going', 'back', 'proven'] satisfies RolloutState['phase'][])

const fields = mapOf({
  version,
  phase: checkThat((value) => phases.has(value), 'is none that this version of holdfast knows'),
  request: text,
  manifests: eachItem(manifest),
  reached: count,
  tree: orNull(tree),
  since: orNull(mapOf({ boot: text, uptime: number })),
  timeout: count,
  fallback: flag,
  manifestLock: optionalPath,
  readiness,
  message: text,
  kept,
})

const underWay: ValueCheck = (value, at) => {
  const fault = fields(value, at)
  if (fault !== undefined) return fault
  const { reached, manifests } = value as RolloutState
  return reached > manifests.length ? 'reached is more than there are manifests' : undefined
}

/** Removes what a rollout that was killed has staged of the file. */
export async function tidyState(manifestDirectory: string, durable: DurableCalls): Promise<void> {
  await durable.tidy(statePath(manifestDirectory))
}

export function bytesOf(base64: string): Buffer {
  return Buffer.from(base64, 'base64')
}
