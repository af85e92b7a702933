import type { Descriptor, FileSystem } from './file-system.js'
import type { TargetNames } from './names.js'

/**
 * Fails where the file system has given up: after a flush that failed in another process's fsync, ours answers 0 for what
 * is lost, and only the next mutation tells (EROFS, EIO). It must be one of a directory: ext4 reports the journal's error for
 * an entry that is made or removed, and swallows it for times and modes (ext4_dirty_inode in fs/ext4/inode.c). What a kill
 * leaves of it has a staging name, and goes with the next recovery.
 */
export async function probeJournal(fs: FileSystem, directory: Descriptor, names: TargetNames): Promise<void> {
  const name = names.staging(fs.random())
  await fs.close(await fs.createFile(directory, name))
  await fs.removeFile(directory, name)
}
