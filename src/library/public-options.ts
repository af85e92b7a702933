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

export type DirectoryOptions = ReplaceDirectoryOptions &
  CallOptions &
  Pick<PublicationOptions, 'publish' | 'foreign' | 'attributes'>

export type FileOptions = ReplaceFileOptions & CallOptions & Pick<PublicationOptions, 'attributes'>

/** One of a batch; what stops the batch is an option of the batch. */
export type BatchRequest = DirectoryRequest & Omit<DirectoryOptions, 'signal'>
