import { codeOf } from '../errors.js'
import type { Descriptor, FileSystem } from './file-system.js'
import { currentGeneration } from './generation.js'
import { readWhole } from './read-whole.js'
import { Scope } from './scope.js'
import { withRecord } from './with-record.js'

/** The named files of a published directory, as they are on the disk; those that are gone are left out. */
export async function readPublishedFiles(
  fs: FileSystem,
  target: string,
  paths: readonly string[],
): Promise<Record<string, { content: Uint8Array; mode: number }>> {
  const files: Record<string, { content: Uint8Array; mode: number }> = {}
  await withRecord(fs, target, async (parent, name, [newest]) => {
    if ((await fs.look(parent, name))?.type !== 'directory') return
    const root = await fs.openDirectory(parent, name)
    const scope = new Scope(fs)
    try {
      const generation = newest?.kind === 'symlink' ? await currentGeneration(fs, root) : undefined
      const content = generation === undefined ? root : await scope.keep(fs.openDirectory(root, generation))
      for (const path of paths) {
        const file = await readInside(fs, scope, content, path)
        if (file) files[path] = file
      }
    } finally {
      await scope.closeAll()
      await fs.close(root)
    }
  })
  return files
}

async function readInside(
  fs: FileSystem,
  scope: Scope,
  root: Descriptor,
  path: string,
): Promise<{ content: Uint8Array; mode: number } | undefined> {
  const parts = path.split('/')
  const last = parts.pop() ?? ''
  try {
    let directory = root
    for (const part of parts) directory = await scope.keep(fs.openDirectory(directory, part))
    const file = await scope.keep(fs.openFile(directory, last))
    const { size, mode } = await fs.attributes(file)
    return { content: await readWhole(fs, file, size), mode }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
