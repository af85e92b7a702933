import type { Listed } from './equivalents.js'

/**
 * Mutants that the tests let live, and that are not shown to be equivalent: a draw leaves them out. Each is a test that is missing, or
 * a line that is not needed.
 */
export const survivors: readonly Listed[] = [
  {
    reason: 'not looked at yet',
    mutants: [
      'target-content.ts: presentOnce shortened newest && recordFor(newest, records, tree)',
      'rollback.ts: earlier.confirm shortened now.record ?? newest',
      'file-system.ts: NodeFileSystem.rename swapped await atPath(() => pathOf(toParent, to), native.rename(fromParent, from, toParent, to, mo…',
      "directory-publication.ts: DirectoryPublication.#open swapped if (codeOf(error) === 'ENOENT') return undefined",
      'publication.ts: TargetPublication.#decide swapped if (!isRepeated(found, this.desired)) refusePinned(path, this.desired.digest, found, opti…',
      'record-files.ts: rewrite dropped await failureOf(remove(fs, parent, staging))',
      'clean.ts: removeSuperseded swapped await reportAttributes(area, found, false)',
      "clean.ts: recordAgent compared publisher !== 'agent'",
      'write-record.ts: syncRecord swapped await probeJournal(scope.fs, directory, names)',
      'claim.ts: takeIn dropped await parents.close()',
      'removal.ts: Removal.run swapped await refuseTargetBelow({ fs, path, parent: this.#parent, name }, tree)',
    ],
  },
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      'watch-start.ts: WatchStart.constructor swapped this.#path = join(resourceDirectory, `.holdfast-${id}.watch`)',
    ],
  },
  {
    reason: 'let live by the third of the tests that is asked first, not put before the others, and not looked at yet',
    mutants: [
      'clean.ts: makeRoom counted records.valid.length > 0',
      "file-system.ts: NodeFileSystem.openLock unrecognized codeOf(error) === 'EROFS'",
      'record-files.ts: lastCounts inverted keepsAttributes: true',
      'record-files.ts: rewrite dropped await setMetadata(fs, file, { target: name, mode, owner: { uid, gid } })',
      'record-files.ts: RecordFile.markCommitted shortened file !== undefined && scope.holds(file)',
      'watch-start.ts: identityOf inverted bigint: true',
    ],
  },
]
