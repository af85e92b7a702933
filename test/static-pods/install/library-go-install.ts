/**
 * The order of calls of OpenShift library-go's installer (pkg/operator/staticpod/installerpod/cmd.go and copy.go), written again
 * for comparison: each object's directory in turn, in the order of its atomic directory; then the manifest's copy; then the
 * live manifest, which is removed first. Each file it writes is synced through a second descriptor, then its directory is.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { replaceInLibraryGoOrder } from '../../../bench/library-go-order.js'

export function installInLibraryGoOrder(
  revision: string,
  manifestPath: string,
  manifest: Uint8Array,
  /** `secrets/NAME` or `configmaps/NAME`, and the files of each. */
  objects: ReadonlyMap<string, Record<string, Uint8Array>>,
): void {
  mkdirSync(revision, { recursive: true, mode: 0o755 })
  for (const [directory, files] of objects) {
    replaceInLibraryGoOrder(join(revision, directory), join(revision, 'staging/installer', directory), files)
  }
  mkdirSync(dirname(manifestPath), { recursive: true, mode: 0o755 })
  writeSynced(join(revision, 'web-pod.yaml'), manifest)
  rmSync(manifestPath, { force: true })
  writeSynced(manifestPath, manifest)
}

function writeSynced(path: string, content: Uint8Array): void {
  writeFileSync(path, content, { mode: 0o600 })
  for (const synced of [path, dirname(path)]) {
    const descriptor = openSync(synced, 'r')
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }
}
