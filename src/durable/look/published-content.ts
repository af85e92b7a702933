import { hash } from 'node:crypto'
import type { FileSystem } from '../file-system.js'
import { lookUntilQuiet, publicationIn, readPublishedFiles, refuseMissed } from './inspect.js'
import { describes, type StoredRecord, withRecord } from '../record/index.js'

/* The published content of a target, with its bytes, for a publisher of another path, too. */

export interface PublishedContent {
  readonly record: StoredRecord
  /** By their relative paths: just what the record says. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/**
 * undefined where holdfast has published nothing, where the target differs from its record or may not be durable, and while another call
 * publishes it. Takes no lock.
 */
export async function readPublishedContent(fs: FileSystem, target: string): Promise<PublishedContent | undefined> {
  const record = await lookUntilQuiet(() =>
    withRecord(fs, target, async (parent, name, records, missed) => {
      refuseMissed(target, records, missed)
      const seen = await publicationIn(fs, target, parent, name, records)
      if (seen === undefined) return undefined
      // A record in a copy of the directory vouches for files that no fsync has reached.
      const isWhole = seen.state.durable && describes(seen.record, seen.tree)
      return { state: isWhole ? seen.record : undefined, sequence: seen.record.sequence, quiet: true }
    }),
  )
  if (record === undefined) return undefined
  const expected = record.entries.filter(({ type }) => type === 'file')
  const paths = expected.map(({ path }) => path)
  const found = await readPublishedFiles(fs, target, paths)
  const files = new Map<string, Uint8Array>()
  for (const { path, sha256 } of expected) {
    const content = found[path]?.content
    if (content === undefined || hash('sha256', content) !== sha256) return undefined
    files.set(path, content)
  }
  return { record, files }
}
