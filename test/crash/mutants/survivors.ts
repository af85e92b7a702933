import type { Listed } from './equivalents.js'

/**
 * Mutants that the tests let live, and that are not shown to be equivalent: a draw leaves them out. Each is a test that is missing, or
 * a line that is not needed.
 */
export const survivors: readonly Listed[] = [
  {
    reason: 'not looked at yet',
    mutants: [
      'presentOnce shortened _ && recordFor(_, _, _)',
      'earlier.confirm shortened _.record ?? _',
      'NodeFileSystem.rename swapped await atPath(() => pathOf(_, _), native.rename(_, _, _, _, _))',
      "DirectoryPublication.#open swapped if (codeOf(_) === 'ENOENT') return undefined",
      'TargetPublication.#decide swapped if (!isRepeated(_, this.desired)) refusePinned(_, this.desired.digest, _, _, _.now())',
      'removeSuperseded swapped await reportAttributes(_, _, false)',
      'syncRecord swapped await probeJournal(_.fs, _, _)',
      'Removal.run swapped await refuseTargetBelow({ fs: _, path: _, parent: this.#parent, name: _ }, _)',
    ],
  },
  {
    reason: 'let live by the third of the tests that is asked first, not put before the others, and not looked at yet',
    mutants: [
      'makeRoom counted _.valid.length > 0',
      "NodeFileSystem.openLock unrecognized codeOf(_) === 'EROFS'",
      'RecordFile.markCommitted shortened _ !== undefined && _.holds(_)',
      'identityOf inverted bigint: true',
    ],
  },
]
