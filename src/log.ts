/** What every room needs of a logger; pino's logger and `console` are such. Fields first, then the sentence. */
export interface Log {
  /** What helps to find a defect. */
  debug(fields: object, message: string): void
  /** What holdfast does. */
  info(fields: object, message: string): void
  /** What a person should look at. */
  warn(fields: object, message: string): void
  /** What failed. */
  error(fields: object, message: string): void
}

/** Says nothing: what the library uses when its caller gives no logger. */
export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
