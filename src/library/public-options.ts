import type {
  DirectoryRequest,
  PublicationOptions,
  ReplaceDirectoryOptions,
  ReplaceFileOptions,
} from '../durable/types.js'

/**
 * What every publication takes: `lockTimeout` in milliseconds, for another process's lock; `signal`, which stops it before the exchange and
 * never after; `requireProven`, which refuses file systems on which durability is not proven; `log`, such as pino's.
 */
export type CallOptions = Pick<PublicationOptions, 'lockTimeout' | 'signal' | 'requireProven' | 'log'>

/** What the target keeps, if it is there. */
interface AttributesOption {
  /**
   * `set`: mode and owner are as requested. `keep`: existing entries keep theirs, and a change of them is no drift; the requested ones apply
   * to what is new.
   */
  attributes?: 'set' | 'keep'
}

/** What replaceDirectory takes. */
export type DirectoryOptions = ReplaceDirectoryOptions &
  CallOptions &
  Pick<PublicationOptions, 'publish' | 'foreign' | 'allowEmpty'> &
  AttributesOption

/**
 * What replaceFile takes. An existing file keeps the mode and the owner that are not named here; `attributes: 'set'` gives it the defaults
 * of a new file, and `attributes: 'keep'` has `mode` and `owner` apply to a new file alone. A mode that another user may have set is not
 * kept: that of a former owner, or of a user who may have made the file. `parents` (default false) makes the directories above it that are
 * missing.
 */
export type FileOptions = ReplaceFileOptions &
  CallOptions &
  Pick<PublicationOptions, 'parents' | 'allowEmpty'> &
  AttributesOption

/** One of a batch; what stops the batch is an option of the batch. */
export type BatchRequest = DirectoryRequest & Omit<DirectoryOptions, 'signal'>
