import type { StoredRecord } from '../record/index.js'
import type { HoldOptions } from '../types.js'

/** How to take a target away: see removal.ts. */
export interface RemovalOptions extends HoldOptions {
  /** Even a changed target, or one whose users are not all visible; default false. A target without a record stays in any case. */
  readonly force?: boolean
  /** Even where the target is held or rolled back; default false. */
  readonly release?: boolean
  /** Looks alone: refuses as the removal would, takes no lock and changes nothing; default false. */
  readonly dryRun?: boolean
  /** A user that is no process, in a few words. Default: none. */
  readonly usedBy?: () => Promise<string | undefined>
  /** Checks the record under the lock, before any change; throws to refuse. Default: no check. */
  readonly confirm?: (
    record: Pick<StoredRecord, 'publisher' | 'removing' | 'movedTo' | 'pin' | 'agent' | 'letGo' | 'publishedAt'>,
  ) => void | Promise<void>
}
