/** The times that watching lives by: milliseconds, unless a comment names another unit. Tests give shorter ones. */
export interface WatchTiming {
  /** The first delay after a failure; each further one doubles it. */
  readonly firstDelay: number
  readonly longestDelay: number
  /** While no watch at all gets through, one of them tries at least this often: a server that is back is soon noticed. */
  readonly scoutDelay: number
  /** When that one got through, the others follow at random within this time. */
  readonly wakeSpread: number
  /** That time is at least so long for each that follows. */
  readonly wakeInterval: number
  /** A Retry-After is honoured up to this. */
  readonly longestRetryAfter: number
  /** A stream that is open for so long is a success, although it has said nothing: delays start from the first one again. */
  readonly healthyAfter: number
  /** For the answer to a read, and for the head of a watch. */
  readonly requestTimeout: number
  /** A watch whose initial events have not ended by then starts with a list. */
  readonly initialEventsTimeout: number
  /** Seconds: each watch asks for a random length between the two, so that they do not all end at once. */
  readonly watchSeconds: readonly [shortest: number, longest: number]
  /** After a refusal of streaming lists by one collection, they are tried again there. */
  readonly streamingRetry: number
  /**
   * A stream that has carried nothing for so long is cut, where the server sends bookmarks: it sends one each minute
   * (k8s.io/apiserver, storage/cacher, defaultBookmarkFrequency).
   */
  readonly silence: number
  /** A watch that the server ends before this, and that has said nothing, has failed; client-go calls it very short. */
  readonly shortWatch: number
  /** A watch that outlives its requested time by this is cut: the server, or something between, has forgotten it. */
  readonly overrun: number
  /**
   * Only after this time does a denial hide known content: an API server that has just started denies
   * every request, until it has read its roles.
   */
  readonly denialGrace: number
}

export const defaultTiming: WatchTiming = {
  firstDelay: 500,
  longestDelay: 30_000,
  scoutDelay: 2_000,
  wakeSpread: 500,
  wakeInterval: 20,
  longestRetryAfter: 120_000,
  healthyAfter: 10_000,
  requestTimeout: 15_000,
  initialEventsTimeout: 10_000,
  streamingRetry: 600_000,
  silence: 180_000,
  watchSeconds: [300, 600],
  shortWatch: 1_000,
  overrun: 30_000,
  denialGrace: 5_000,
}
