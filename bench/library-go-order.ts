/**
 * The order of calls of OpenShift library-go's atomic directory (pkg/operator/staticpod/internal/atomicdir, sync.go and
 * swap_linux.go), written again for comparison: each file is written, then synced through a second descriptor, then its
 * directory is synced; after the exchange both parents are synced. Synchronous calls, which are Node's fastest for work
 * that is done one call after the other.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, rmdirSync, unlinkSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { exchangePaths } from '../test/disk/libc.js'

export function replaceInLibraryGoOrder(target: string, staging: string, files: Record<string, Uint8Array>): void {
  mkdirSync(target, { recursive: true, mode: 0o755 })
  mkdirSync(staging, { recursive: true, mode: 0o700 })
  for (const [name, content] of Object.entries(files)) {
    const path = join(staging, name)
    const file = openSync(path, 'w', 0o600)
    writeSync(file, content)
    closeSync(file)
    syncPath(path)
    syncPath(staging)
  }
  exchangePaths(target, staging)
  syncPath(dirname(target))
  syncPath(dirname(staging))
  for (const name of readdirSync(staging)) unlinkSync(join(staging, name))
  rmdirSync(staging)
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
