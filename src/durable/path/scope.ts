import type { Descriptor, FileSystem } from '../file-system.js'

/** The descriptors that one operation holds; its end closes them all, after a failure, too. */
export class Scope {
  readonly #open = new Set<Descriptor>()

  constructor(readonly fs: FileSystem) {}

  async keep(opening: Promise<Descriptor>): Promise<Descriptor> {
    const descriptor = await opening
    this.#open.add(descriptor)
    return descriptor
  }

  holds(descriptor: Descriptor): boolean {
    return this.#open.has(descriptor)
  }

  async close(descriptor: Descriptor): Promise<void> {
    if (this.#open.delete(descriptor)) await this.fs.close(descriptor)
  }

  async closeAll(): Promise<void> {
    const open = [...this.#open]
    this.#open.clear()
    // A close that fails has still closed (close(2)); fsync has reported the failed writes before.
    await Promise.allSettled(open.map((descriptor) => this.fs.close(descriptor)))
  }
}
