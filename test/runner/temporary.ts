/** Where tests make their scratch directories. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Gives the tests a temporary directory below the machine's; the function removes it, unless a test has left something in it.
 *
 * Without a journal, ext4 gives no inode out again for a minute, and passes over each freed one for each new file near it: tests make and
 * remove tens of thousands. `chattr +T` has the directories in this one spread over the disk: static-pods/monitor takes 6.3 s of CPU
 * instead of 8.7 s, as on tmpfs.
 */
export function ownTemporaryDirectory(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-'))
  // As /tmp is: some tests become other users.
  chmodSync(directory, 0o1777)
  // Other file systems refuse it, and have no need of it.
  spawnSync('chattr', ['+T', directory], { stdio: 'ignore' })
  process.env['TMPDIR'] = directory
  return () => {
    try {
      rmdirSync(directory)
    } catch {
      // A test was killed, or has left something mounted.
    }
  }
}
