import { atTarget, type AtTarget, attempt, fsyncAll, lock, remove, replaceEntry, settle } from '../path/index.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { system } from '../posix/index.js'
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
    private readonly fs: FileSystem = system,
  ) {}

  /** Replaces the file's content with this text, mode 0600; durable on return. @throws DurableWriteError */
  async replace(text: string): Promise<void> {
    const { fs, path } = this
    this.#written = undefined
    await atTarget(fs, path, { doing: 'could not write' }, async (at) => {
      const { scope, name, parent } = at
      if (!this.#tidied) await this.#tidy(at)
      // Another program may have renamed or replaced a directory above since the last write, without a sync.
      const above = await at.above()
      const file = await replaceEntry(at, name, async (staging) => {
        const made = await scope.keep(fs.createFile(parent, staging))
        await fs.write(made, Buffer.from(text))
        await fsyncAll(fs, [made, ...above])
        return made
      })
      at.visible()
      await settle(at, [parent])
      this.#tidied = true
      this.#written = await lookAt(fs, file)
    })
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
    this.#written = undefined
    return atTarget(fs, path, { doing: 'could not add to' }, async (at) => {
      const { scope, name, parent } = at
      if ((await fs.look(parent, name)) === undefined) return false
      const file = await scope.keep(fs.openAppend(parent, name))
      if (!isSame(await lookAt(fs, file), before)) return false
      if (text === '') {
        this.#written = before
        return true
      }
      const above = await at.above()
      const bytes = Buffer.from(text)
      at.visible()
      await fs.write(file, bytes)
      await settle(at, [file, ...above])
      const after = await lookAt(fs, file)
      if (isSame(after, { ...before, size: before.size + bytes.length })) this.#written = after
      return this.#written !== undefined
    })
  }

  /** Removes what a predecessor left, unless another one is at it just now. Its lock keeps that out until the work ends. */
  async #tidy({ fs, scope, parent: directory, attributes, names }: AtTarget): Promise<void> {
    const { path } = this
    const { lock: name, stagingOf, sequenceOf } = names
    // Its record is one of a version that published it as any other file.
    const isLeft = (entry: string): boolean => stagingOf(entry) !== undefined || sequenceOf(entry) !== undefined
    await attempt(silent, path, 'could not remove what was left', async () => {
      if (!(await fs.list(directory)).some(isLeft)) return
      const parent = { directory, attributes }
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
