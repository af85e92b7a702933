import { join } from 'node:path'
import type { Log } from '../../log.js'
import type { DurableCalls } from '../../durable/index.js'
import type { DirectoryChange } from '../../durable/publish/index.js'
import type { DirectoryPublicationRequest } from '../../durable/single-calls/index.js'
import type { RecordedObject } from '../../durable/types.js'
import { revisionFamily, revisionName } from '../names.js'
import {
  objectDirectory,
  objectFiles,
  type FetchedObject,
  type RevisionFile,
  type Substitutions,
} from './object-files.js'
import type { KnownNode, Manifest } from '../pod/manifest.js'

/** A manifest that is to be live. */
export interface PlannedManifest {
  /** File name in the manifest directory, and of the copy in the revision. */
  readonly name: string
  readonly content: Uint8Array
  readonly manifest: Manifest
}

/** All that one installation writes, complete and checked before its first byte is written. */
export interface InstallPlan {
  readonly pod: string
  readonly revision: number | undefined
  /** The revision's own directory; undefined where a manifest is installed alone. */
  readonly directory: DirectoryPublicationRequest | undefined
  /** Directories that live longer than a revision: one target for each object. */
  readonly lasting: readonly DirectoryPublicationRequest[]
  /** Reads the objects of one of those targets once more; undefined where they are gone. */
  readonly reread?: (target: string) => Promise<DirectoryPublicationRequest | undefined>
  /** In the order in which they become live; the pod itself last. */
  readonly manifests: readonly PlannedManifest[]
  readonly node?: KnownNode
}

export interface InstallSettings {
  readonly durable: DurableCalls
  readonly log: Log
  /** Aborts at the deadline and on SIGTERM: before a manifest is renamed, never in the middle. */
  readonly signal: AbortSignal
  readonly manifestDirectory: string
  /** undefined: the installation takes no manifest lock. */
  readonly manifestLock: string | undefined
  /** Milliseconds that remain to wait for locks. */
  readonly timeLeft: () => number
  readonly requireProven: boolean
  /** An older revision may replace a newer live one. */
  readonly allowOlder: boolean
  /** Refuse host paths that do not exist; otherwise they are warned of, if `warnOfHostPaths`. */
  readonly checkHostPaths: boolean
  readonly warnOfHostPaths: boolean
}

/** What an installation is asked for, wherever its content comes from. */
export interface InstallRequest extends Pick<
  InstallSettings,
  'manifestDirectory' | 'manifestLock' | 'requireProven' | 'allowOlder' | 'checkHostPaths'
> {
  /** Milliseconds for the whole run. */
  readonly timeout: number
  readonly dryRun: boolean
}

/** The outcome of one path. `kept`: the same was there already, and stayed untouched because a live manifest names it. */
export interface InstallLine {
  readonly path: string
  readonly outcome: 'created' | 'replaced' | 'unchanged' | 'kept'
  readonly digest?: string
  readonly unproven?: true
  readonly changes?: readonly DirectoryChange[]
}

export interface InstallResult {
  readonly pod: string
  readonly revision: number | undefined
  readonly directories: readonly InstallLine[]
  readonly manifests: readonly InstallLine[]
}

/** The revision's directory: everything in it becomes visible in one rename. */
export function revisionRequest(
  resourceDirectory: string,
  pod: string,
  revision: number,
  content: {
    readonly files: ReadonlyMap<string, RevisionFile>
    readonly directories: readonly string[]
    readonly manifests: readonly PlannedManifest[]
    readonly objects: RecordedObject[]
  },
): DirectoryPublicationRequest {
  const files = new Map(content.files)
  for (const { name, content: bytes } of content.manifests) files.set(name, { content: bytes, mode: 0o600 })
  return {
    target: join(resourceDirectory, revisionName(pod, revision)),
    files: Object.fromEntries(files),
    emptyDirectories: content.directories,
    family: revisionFamily(pod),
    objects: content.objects,
  }
}

/** Files, directories and origin of the revision's objects, all together. */
export function revisionContent(
  objects: readonly FetchedObject[],
  words: Substitutions,
): {
  files: Map<string, RevisionFile>
  directories: string[]
  objects: RecordedObject[]
} {
  const files = new Map<string, RevisionFile>()
  const records: RecordedObject[] = []
  for (const fetched of objects) {
    const directory = objectDirectory(fetched)
    const own = objectFiles(fetched, words)
    for (const [key, file] of own) files.set(`${directory}/${key}`, file)
    records.push(
      recordedObject(
        fetched,
        [...own.keys()].map((key) => `${directory}/${key}`),
      ),
    )
  }
  return { files, directories: objects.map(objectDirectory), objects: records }
}

/** One target for each object below the directory of certificates: it stays, and is never exchanged itself. */
export function lastingRequests(
  directory: string,
  objects: readonly FetchedObject[],
  words: Substitutions,
): DirectoryPublicationRequest[] {
  return objects.map((fetched) => {
    const files = objectFiles(fetched, words)
    return {
      target: join(directory, objectDirectory(fetched)),
      files: Object.fromEntries(files),
      publisher: 'install',
      objects: [recordedObject(fetched, [...files.keys()])],
    }
  })
}

function recordedObject({ object }: FetchedObject, paths: string[]): RecordedObject {
  const { reference, uid, resourceVersion } = object
  return { ...reference, uid, resourceVersion, paths }
}
