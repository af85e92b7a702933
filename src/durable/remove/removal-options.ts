import type { StoredRecord } from '../record/index.js'
import type { HoldOptions } from '../types.js'

/** How something is taken away: see removal.ts. */
export interface RemovalOptions extends HoldOptions {
  /** Even what is not as it was published, or where not all processes can be looked at; default false. What has no record stays in any case. */
  readonly force?: boolean
  /** Even where the target is held or rolled back; default false. */
  readonly release?: boolean
  /** Who uses it that is no process, in a few words. Default: nobody. */
  readonly usedBy?: () => Promise<string | undefined>
  /** Looks at the record under the lock, before anything is changed; throws what refuses it. Default: nobody does. */
  readonly confirm?: (
    record: Pick<StoredRecord, 'publisher' | 'onDrop' | 'movedTo' | 'pin' | 'agent' | 'letGo' | 'publishedAt'>,
  ) => void | Promise<void>
}
