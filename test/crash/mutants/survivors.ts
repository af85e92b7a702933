import type { Listed } from './equivalents.js'

/** Mutants that every test lets live, and that are not shown to be equivalent: a draw leaves them out. Each is a test that is missing. */
export const survivors: readonly Listed[] = [
  {
    reason: 'not looked at yet',
    mutants: [
      'target-content.ts: presentOnce shortened newest && recordFor(newest, records, tree)',
      "relocation.ts: Move.drain.confirm swallowed throw new NotNow(from, { next: 'both', waits })",
      'rollback.ts: earlier.confirm shortened now.record ?? newest',
      "lock.ts: lockOnce swapped if (left <= 0 || request.signal?.aborted) throw busy(request, 'another process')",
      'file-system.ts: NodeFileSystem.rename swapped await atPath(() => pathOf(toParent, to), native.rename(fromParent, from, toParent, to, mo…',
      'publication.ts: TargetPublication.#decide swapped if (!isRepeated(found, this.desired)) refusePinned(path, this.desired.digest, found, opti…',
      "directory-publication.ts: DirectoryPublication.#open swapped if (codeOf(error) === 'ENOENT') return undefined",
    ],
  },
]
