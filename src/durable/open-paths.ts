import type { Descriptor } from './file-system.js'

/** What descriptors were opened as: for errors that a person can read. */
export class OpenPaths {
  readonly #paths = new Map<Descriptor, string>()

  remember(descriptor: Descriptor, path: string): void {
    this.#paths.set(descriptor, path)
  }

  forget(descriptor: Descriptor): void {
    this.#paths.delete(descriptor)
  }

  of(descriptor: Descriptor): string {
    return this.#paths.get(descriptor) ?? `descriptor ${descriptor}`
  }

  /** A name in an open directory. */
  inside(directory: Descriptor, name: string): string {
    const path = this.of(directory)
    return path === '/' ? `/${name}` : `${path}/${name}`
  }
}
