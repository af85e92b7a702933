/* New file systems in files, mounted for one test; root only. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Why these programs cannot make and mount a file system here; false where they can. */
export function noLoop(...programs: readonly string[]): string | false {
  if (process.geteuid?.() !== 0) return 'needs root (mount)'
  const missing = programs.filter(
    (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined,
  )
  return missing.length > 0 && `needs ${missing.join(', ')}`
}

/** A directory on a file system that this command makes, mounted for the test alone. `mebibytes`: its size. */
export function mounted(t: Test, command: readonly string[], mebibytes: number): string {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-loop-'))
  const [file, at] = [join(root, 'image'), join(root, 'mounted')]
  const [program = '', ...args] = command
  chmodSync(root, 0o755)
  mkdirSync(at)
  writeFileSync(file, '')
  truncateSync(file, mebibytes * 2 ** 20)
  execFileSync(program, [...args, file], { stdio: 'pipe' })
  execFileSync('mount', ['-o', 'loop', file, at])
  t.teardown(() => {
    execFileSync('umount', [at])
    rmSync(root, { recursive: true })
  })
  return at
}
