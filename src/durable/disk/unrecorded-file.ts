import {
  fsyncAll,
  probeJournal,
  lock,
  namesFor,
  type TargetNames,
  attempt,
  remove,
  checkTarget,
  openAncestors,
  openParent,
  type Parent,
  resolve,
  Scope,
} from '../path/index.js'
import { wrapError } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { NodeFileSystem } from '../posix/index.js'
import { silent } from '../../log.js'

/**
 * A file that a process keeps for itself and writes often, as its status: whole and durable as any other, but without a record, a
 * comparison or a lock for each write, since no reader compares it with its record.
 */
export class OwnFile {
  /** The leftovers of a predecessor have gone. */
  #tidied = false
  /** The file as the last write left it, whole and durable; undefined: none has, or one has failed since. */
  #written: Written | undefined

  constructor(
    readonly path: string,
    private readonly fs: FileSystem = new NodeFileSystem(),
  ) {}

  /** Replaces the file's content with this text, mode 0600; durable on return. @throws DurableWriteError */
  async replace(text: string): Promise<void> {
    const { fs, path } = this
    const scope = new Scope(fs)
    let published = false
    this.#written = undefined
    try {
      const place = await resolve(scope, checkTarget(path))
      const parent = await openParent(scope, place)
      const { directory } = parent
      const names = namesFor(place.name)
      if (!this.#tidied) await this.#tidy(scope, parent, names)
      // Another program may have renamed or replaced a directory above since the last write, without a sync.
      const ancestors = await openAncestors(scope, place, directory)
      const staging = names.staging(fs.random())
      const file = await scope.keep(fs.createFile(directory, staging))
      try {
        await fs.write(file, Buffer.from(text))
        await fsyncAll(fs, [file, ...ancestors])
        await fs.rename(directory, staging, directory, place.name, 'replace')
      } catch (error) {
        await attempt(silent, path, 'could not remove the staged content', () => remove(fs, directory, staging))
        throw error
      }
      published = true
      await fsyncAll(fs, [directory])
      await probeJournal(fs, directory, names)
      this.#tidied = true
      this.#written = await lookAt(fs, file)
    } catch (error) {
      throw wrapError(path, error, published, `could not write ${path}`)
    } finally {
      await scope.closeAll()
    }
  }

  /**
   * Adds this text at the end; durable on return. False, and nothing is done, where the file is not as this process left it, whole and
   * durable: then it must be replaced. A power cut, or a failure, may leave a part of the text. An empty one only looks.
   * @throws DurableWriteError
   */
  async append(text: string): Promise<boolean> {
    const { fs, path } = this
    const before = this.#written
    if (before === undefined) return false
    const scope = new Scope(fs)
    this.#written = undefined
    let published = false
    try {
      const place = await resolve(scope, checkTarget(path))
      const { directory } = await openParent(scope, place)
      if ((await fs.look(directory, place.name)) === undefined) return false
      const file = await scope.keep(fs.openAppend(directory, place.name))
      if (!isSame(await lookAt(fs, file), before)) return false
      if (text === '') {
        this.#written = before
        return true
      }
      const ancestors = await openAncestors(scope, place, directory)
      const bytes = Buffer.from(text)
      published = true
      await fs.write(file, bytes)
      await fsyncAll(fs, [file, ...ancestors])
      await probeJournal(fs, directory, namesFor(place.name))
      const after = await lookAt(fs, file)
      if (isSame(after, { ...before, size: before.size + bytes.length })) this.#written = after
      return this.#written !== undefined
    } catch (error) {
      throw wrapError(path, error, published, `could not add to ${path}`)
    } finally {
      await scope.closeAll()
    }
  }

  /** Removes what a predecessor left, unless another one is at it just now. Its lock keeps that out until the scope ends. */
  async #tidy(scope: Scope, parent: Parent, { lock: name, stagingOf, sequenceOf }: TargetNames): Promise<void> {
    const { fs, path } = this
    const { directory } = parent
    // Its record is one of a version that published it as any other file.
    const isLeft = (entry: string): boolean => stagingOf(entry) !== undefined || sequenceOf(entry) !== undefined
    await attempt(silent, path, 'could not remove what was left', async () => {
      if (!(await fs.list(directory)).some(isLeft)) return
      await lock(scope, { parent, name, target: path, timeout: 0, signal: undefined })
      for (const entry of await fs.list(directory)) if (isLeft(entry)) await remove(fs, directory, entry)
    })
  }
}

type Written = Pick<Attributes, 'device' | 'inode' | 'size'>

async function lookAt(fs: FileSystem, file: Descriptor): Promise<Written> {
  const { device, inode, size } = await fs.attributes(file)
  return { device, inode, size }
}

function isSame(found: Written, { device, inode, size }: Written): boolean {
  return found.device === device && found.inode === inode && found.size === size
}
