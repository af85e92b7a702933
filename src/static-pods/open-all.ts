import type { Descriptor } from '../durable/file-system.js'
import type { Scope } from '../durable/scope.js'

/** Opens a directory with all that is in it, and what holds it. */
export async function openAll(scope: Scope, parent: Descriptor, name: string): Promise<Descriptor[]> {
  const all: Descriptor[] = [parent]
  const walk = async (directory: Descriptor): Promise<void> => {
    all.push(directory)
    for (const entry of await scope.fs.list(directory)) {
      const type = (await scope.fs.look(directory, entry))?.type
      if (type === 'file') all.push(await scope.keep(scope.fs.openFile(directory, entry)))
      if (type === 'directory') await walk(await scope.keep(scope.fs.openDirectory(directory, entry)))
    }
  }
  await walk(await scope.keep(scope.fs.openDirectory(parent, name)))
  return all
}
