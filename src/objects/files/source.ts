/**
 * Secrets and ConfigMaps out of the files of one directory, which is watched.
 *
 * A caller may rely on this: the source reads a file only after it has come to rest; it reports an unreadable or faulty file with
 * its place, and keeps the last good content of it; it reads the files of an exchanged directory, or of a mounted ConfigMap that
 * changes, from one version of it; an object is absent only if every
 * file could be read; a directory that cannot be read is no absence.
 */
import { objectName } from '../../message-text.js'
import { type Log, silent } from '../../log.js'
import type { ObservableSource } from '../first-answers.js'
import { ObjectStore } from '../store.js'
import { isSameData } from '../same-state.js'
import type {
  KubernetesObject,
  LoadedState,
  ObjectReference,
  ObservedState,
  SourceListener,
  DesiredObject,
} from '../types.js'
import { Catalog, type LoadedFile } from './catalog.js'
import { DirectoryWatch } from '../../directory-watch.js'
import { FileError, fileError } from './error.js'
import { type DirectoryScan, FileStability, identify, scanDirectory, type Stamp } from './directory-scan.js'
import { type FileObject, readObjectFile } from './objects.js'

export interface FileSourceOptions {
  readonly log?: Log
  /** Milliseconds without a change, after which a file counts as written. */
  readonly quiet?: number
  /** Milliseconds after which a file that does not come to rest no longer holds up the others. */
  readonly patience?: number
  /** Milliseconds between looks that nothing has asked for. */
  readonly rescan?: number
}

const defaults = { quiet: 50, patience: 2_000, rescan: 10_000 }

/** Of several objects in one file, those that were not changed with it stay the version that they were. */
function unlessSame(entry: FileObject, before: readonly FileObject[]): FileObject {
  const name = objectName(entry.object.reference)
  const earlier = before.find(({ object }) => objectName(object.reference) === name)
  if (earlier === undefined || !isSameContent(earlier.object, entry.object)) return entry
  return { ...entry, object: earlier.object }
}

function isSameContent(a: KubernetesObject, b: KubernetesObject): boolean {
  return a.uid === b.uid && a.terminating === b.terminating && isSameData(a.data, b.data)
}

export class FileSource implements ObservableSource {
  readonly #store: ObjectStore
  readonly #catalog = new Catalog()
  readonly #stability: FileStability
  readonly #watch: DirectoryWatch
  readonly #log: Log
  readonly #quiet: number
  readonly #rescan: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #again = false
  #closed = false
  #lastProblem: string | undefined

  /** @param directory an absolute path; it may appear later */
  constructor(
    private readonly directory: string,
    private readonly defaultNamespace: string,
    listener: SourceListener,
    options: FileSourceOptions = {},
  ) {
    const { quiet, patience, rescan } = { ...defaults, ...options }
    this.#store = new ObjectStore(listener)
    this.#log = options.log ?? silent
    this.#quiet = quiet
    this.#stability = new FileStability(quiet, patience)
    this.#watch = new DirectoryWatch(directory, () => this.#schedule(), this.#log)
    this.#rescan = setInterval(() => this.#look(), rescan).unref()
    this.#look()
  }

  follow(desired: readonly DesiredObject[]): void {
    if (this.#closed) return
    this.#store.follow(desired)
    this.#look()
  }

  latest(reference: ObjectReference): ObservedState | undefined {
    return this.#store.latest(reference)
  }

  load(reference: ObjectReference): Promise<LoadedState | undefined> {
    return Promise.resolve(this.#store.loaded(reference))
  }

  /** Files have no order: any content of theirs is current. */
  published(): void {
    // Nothing to raise.
  }

  clientCertificateNotAfter(): undefined {
    return undefined
  }

  subscribe(changed: () => void): () => void {
    return this.#store.subscribe(changed)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#store.close()
    clearInterval(this.#rescan)
    clearTimeout(this.#timer)
    await this.#looking
    this.#watch.close()
  }

  /** Scans soon. One scan sees all changes within that time. */
  #schedule(): void {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#look()
    }, this.#quiet)
  }

  /** Looks now, or once more if it is looking already. */
  #look(): void {
    if (this.#closed) return
    if (this.#looking) {
      this.#again = true
      return
    }
    this.#looking = this.#lookOnce().finally(() => {
      this.#looking = undefined
      if (!this.#again) return
      this.#again = false
      this.#look()
    })
  }

  async #lookOnce(): Promise<void> {
    await this.#watch.arm()
    try {
      const scan = await scanDirectory(this.directory)
      if (await this.#load(scan)) this.#report()
      else this.#schedule()
      this.#lastProblem = undefined
    } catch (error) {
      this.#reportError(error instanceof FileError ? error : fileError(this.directory, error))
    }
  }

  /** @returns false if the directory has not come to rest: nothing is to be reported yet */
  async #load(scan: DirectoryScan): Promise<boolean> {
    const loaded = new Map<string, LoadedFile>()
    let resting = true
    for (const [name, stamp] of scan.stamps) {
      const before = this.#catalog.get(name)
      if (before?.stamp === stamp.id) continue
      const state = this.#stability.state(name, stamp, scan.startedAt)
      if (state === 'changing') resting = false
      else loaded.set(name, await this.#read(name, stamp, state === 'restless'))
    }
    const gone = this.#catalog.names().filter((name) => !scan.stamps.has(name))
    // A file that is replaced by renaming is away for a moment.
    if (gone.some((name) => !this.#stability.isGone(name, scan.startedAt))) resting = false
    if (!resting) return false
    // Another directory, or another version of a mounted ConfigMap, has taken its place meanwhile: look at that one.
    if ((await identify(this.directory)) !== scan.identity) return false
    for (const [name, file] of loaded) this.#catalog.set(name, file)
    for (const name of gone) this.#catalog.delete(name)
    this.#stability.keepOnly([...scan.stamps.keys()])
    return true
  }

  async #read(name: string, stamp: Stamp, restless: boolean): Promise<LoadedFile> {
    const before = this.#catalog.get(name)?.objects ?? []
    try {
      const { defaultNamespace } = this
      const context = { defaultNamespace, log: this.#log }
      const objects = restless ? undefined : await readObjectFile(this.directory, name, stamp, context)
      if (objects === undefined) {
        this.#schedule()
        // No file has an empty stamp, so the next look reads this one again.
        return { stamp: '', objects: before, error: new FileError(`${name}: another program is still writing it`) }
      }
      if (objects.length === 0 && before.length > 0) {
        throw new FileError(`${name}: it no longer holds any object: remove the file to remove its objects`)
      }
      return { stamp: stamp.id, objects: objects.map((entry) => unlessSame(entry, before)), error: undefined }
    } catch (thrown) {
      const error = thrown instanceof FileError ? thrown : fileError(name, thrown)
      const known = this.#catalog.get(name)?.error?.message === error.message
      this.#log[known ? 'debug' : 'warn'](
        { directory: this.directory, reason: error.reason },
        `${error.message}; holdfast keeps what it read from this file before`,
      )
      // A fault in a file stays until a program writes it again. A silent disk, or a process without a free descriptor, is another
      // matter: no file has an empty stamp, so the next look reads it again.
      return { stamp: error.reason === 'ObjectInvalid' ? stamp.id : '', objects: before, error }
    }
  }

  #report(): void {
    // Selections come first: their matches change the set of followed objects, and an object that goes must not be reported before.
    for (const isSelection of [true, false]) {
      for (const stored of this.#store.values()) {
        if ((stored.reference.selector !== undefined) !== isSelection) continue
        const { observation, confirmed } = this.#catalog.answer(stored.reference, stored.latest)
        stored.say(observation)
        if (confirmed) stored.current()
      }
    }
  }

  /** The directory cannot be read. The known states stay. */
  #reportError({ message, reason, permanent }: FileError): void {
    this.#log[this.#lastProblem === message ? 'debug' : 'warn']({ directory: this.directory, reason }, message)
    this.#lastProblem = message
    for (const stored of this.#store.values()) {
      if (stored.latest === undefined || stored.latest.state === 'unknown') {
        stored.say({ state: 'unknown', reason, message, ...(permanent && { permanent }) })
      }
    }
  }
}
