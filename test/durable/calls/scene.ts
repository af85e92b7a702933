import type { FileSystem } from '../../../src/durable/file-system.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../../src/durable/publish/replace.js'
import type { DirectoryPublicationOptions } from '../../../src/durable/publish/request.js'
import type { DirectoryRequest, HoldOptions } from '../../../src/durable/types.js'
import type { Log } from '../../../src/log.js'
import { access, byDefault, encoded, listOf } from '../../crash/model/access-lists.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'
import type { RuleName } from './rules.js'

/** A call on a model disk, and the disk before it. */
export interface Scene {
  readonly name: string
  /** Each of its calls fails once, too. */
  readonly fails?: true
  /** A process dies at each of its changes, and each call that reads, stages, syncs or renames fails: `stopped` holds all the same. */
  readonly dies?: true
  /** Wherever the run stops, readers find the whole state before it, or the whole state after it. */
  readonly atOnce?: true
  /** Another publisher comes before each of its calls, and an abort. */
  readonly meets?: true
  /** What another publisher publishes at the same path. Default: a directory that is exchanged. */
  readonly another?: (fs: FileSystem, text: string) => Promise<unknown>
  readonly before?: (disk: ModelDisk, fs: FileSystem) => unknown
  readonly run: (fs: FileSystem, log: Log, signal?: AbortSignal) => Promise<unknown>
  /** Its end: outcomes and reasons, in the order of its calls. */
  readonly ends?: string
  /** Checks the disk after an answer without an error; answers what is wrong. */
  readonly promises?: (disk: ModelDisk, answer: unknown) => string | undefined | Promise<string | undefined>
  /** Checks the disk after a death or a failure; answers what is wrong. */
  readonly stopped?: (disk: ModelDisk) => Promise<string | undefined>
  /** Rules that do not hold here, each with the reason. */
  readonly exempt?: Partial<Record<RuleName, string>>
  /** The same, of what does not hold only where a call fails. */
  readonly exemptFailing?: Partial<Record<RuleName | 'the next run completes', string>>
}

export const target = '/etc/pki/certs'
export const first = { 'tls.crt': 'old certificate', 'tls.key': 'old key', gone: 'old', 'sub/a': '1' }
export const second = {
  'tls.crt': 'new certificate',
  'tls.key': { content: 'new key', mode: 0o640 },
  'sub/a': '1',
  'sub/deep/b': '2',
}
export const object = { kind: 'Secret', namespace: 'a', name: 'b', uid: 'c', resourceVersion: '1', paths: ['tls.crt'] }

type Request = Omit<DirectoryRequest, 'target'> & Partial<DirectoryRequest> & DirectoryPublicationOptions

export const directory =
  (request: Request) =>
  (fs: FileSystem, log?: Log, signal = request.signal): Promise<unknown> =>
    publish([directoryPublication(fs, { target, ...request, ...(log && { log }) })], signal)

export const file =
  (content: string, options: Parameters<typeof filePublication>[3] = {}, path = '/etc/pki/pod.yaml') =>
  (fs: FileSystem, log?: Log, signal?: AbortSignal): Promise<unknown> =>
    publish([filePublication(fs, path, content, { ...options, ...(log && { log }) })], signal)

export const anotherFile = (fs: FileSystem, text: string): Promise<unknown> => file(text)(fs)

export const published = (request: Request) => (_: ModelDisk, fs: FileSystem) => directory(request)(fs)

export const root = { uid: 0, gid: 0, label: '', extended: '' }

export function foreignDirectory(disk: ModelDisk): void {
  const label = 'system_u:object_r:cert_t:s0'
  const lists = encoded(
    new Map([
      [access, listOf(7, 5, 5, 5, 5)],
      [byDefault, listOf(7, 5, 5, 5, 5)],
      ['user.note', 'kept'],
    ]),
  )
  makeDirectory(disk, target, 0o755, label, lists)
  makeEntry(disk, `${target}/tls.crt`, 'file', 0o644, 'foreign', label)
  makeDirectory(disk, `${target}/sub`, 0o500, label)
  makeEntry(disk, `${target}/sub/x`, 'file', 0o644, 'foreign', label)
}

export function link(disk: ModelDisk, path: string, text: string): void {
  const parent = path.slice(0, path.lastIndexOf('/'))
  const number = numberOf(disk, parent)
  disk.create(number, path.slice(parent.length + 1), 'symlink', { mode: 0o777, ...root }, text)
}

export function numberOf(disk: ModelDisk, path: string): number {
  let number = 1
  for (const part of path.split('/').filter((text) => text !== '')) number = disk.child(number, part)?.number ?? 0
  return number
}

/** The disk as a process leaves it that is killed at the nth change of this name. */
export async function killed(
  disk: ModelDisk,
  change: RegExp,
  nth: number,
  work: (fs: FileSystem) => Promise<unknown>,
): Promise<ModelDisk> {
  let left = nth
  let found: ModelDisk | undefined
  disk.changed = (what) => {
    if (change.test(what) && --left === 0) found = disk.fork()
  }
  await work(new ModelProcess(disk))
  disk.changed = undefined
  if (found === undefined) throw new Error(`there is no ${nth}. ${String(change)}`)
  return found
}

export const killedIn =
  (request: Request, change: RegExp, nth = 1, before: Request | null = { files: first }) =>
  async (disk: ModelDisk, fs: FileSystem): Promise<ModelDisk> => {
    if (before) await directory(before)(fs)
    return killed(disk, change, nth, directory(request))
  }

/** The disk under the calls of a scene. */
export const diskOf = (fs: FileSystem): ModelDisk => (fs as unknown as Pick<ModelProcess, 'disk'>).disk

/** The same calls; `then` runs before each, and may make it fail. */
export function watched(fs: FileSystem, then: (disk: ModelDisk, call: string, name: string) => unknown): FileSystem {
  const disk = diskOf(fs)
  return Object.assign(fs, {
    before: async (call: string, name: string): Promise<void> => {
      await then(disk, call, name)
    },
  })
}

/** The options of a call that can be aborted. */
export const by = (log: Log, signal: AbortSignal | undefined): HoldOptions => ({ log, ...(signal && { signal }) })

/** A scene's own word against a call. */
export class Refusal extends Error {}

/** What a call is refused with, as its answer. */
export const refused = (error: unknown): unknown => error
