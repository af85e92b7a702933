/** What every room needs of a logger; pino's logger and `console` are such. Fields first, then the sentence. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Says nothing: what the library uses when its caller gives no logger. */
export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
