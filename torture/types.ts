/** The files on the disk, compared with those that the seed makes of each generation. */
export type Found =
  | { readonly state: 'missing' }
  /** Every file of this generation, and nothing else. */
  | { readonly state: 'whole'; readonly generation: number }
  /** `mixed`: files of several generations. `torn`: bytes of no generation. */
  | { readonly state: 'mixed' | 'torn'; readonly problem: string }

/** One block device below the file system, as sysfs describes it. */
export interface Device {
  /** `sda`, `nvme0n1`: the whole disk, not its partition. */
  readonly name: string
  readonly model?: string
  readonly vendor?: string
  readonly firmware?: string
  readonly bytes?: number
  /** `write back`: the disk has a volatile cache; `write through`: it says that it has none. */
  readonly writeCache?: string
}

/** Where the generations are published. */
export interface DiskDescription {
  /** `ext4` */
  readonly fileSystem: string
  readonly mountPoint: string
  /** Which directory of the file system is mounted there. */
  readonly root: string
  readonly source: string
  readonly options: readonly string[]
  readonly uuid?: string
  readonly devices: readonly Device[]
}

/** The node's description of itself, once, when it begins. */
export interface Run {
  readonly id: string
  readonly seed: string
  /** Tells nodes apart; a digest of /etc/machine-id. */
  readonly machine: string
  /** The directory that the operator named; the run makes its directory in it. */
  readonly directory: string
  readonly disk: DiskDescription
  readonly kernel: string
  readonly version: string
  readonly startedAt: string
}

/** The kind of an outage, and the fate of the generations that were acknowledged before it. */
export interface Examination {
  readonly at: string
  /**
   * `power`: the power went while a generation was being written; only this counts. `idle`: nothing was in flight. `orderly`: the
   * program had ended before the machine did. `reset`: the operator says that the disk kept its power.
   */
  readonly outage: 'power' | 'idle' | 'orderly' | 'reset'
  readonly acknowledged: number
  readonly announced: number
  readonly found: Found
  /** `unknown`: the disk holds a generation that the witness never heard of. */
  readonly result: 'kept' | 'lost' | 'torn' | 'unknown'
  /** Acknowledged generations that are gone. */
  readonly lost: number
}

export interface Verdict {
  /** `none`: no power cut with a write in flight has been examined. */
  readonly verdict: 'kept' | 'lost' | 'none'
  readonly run: Run
  /** The file system is none on which durability is proven, so a loss may be its doing. */
  readonly unproven: boolean
  readonly cuts: number
  /** Outages that count for nothing. */
  readonly notCounted: Readonly<Record<'idle' | 'orderly' | 'reset' | 'unknown', number>>
  readonly acknowledged: number
  readonly lost: number
  readonly torn: number
  /** The newest, and the newest of those in which something was not kept. */
  readonly examinations: readonly Examination[]
  /** Examinations that are counted above, and not among these. */
  readonly omitted: number
}

/** A mark on the disk of a program that could not report its end to the witness: the machine went on without it. */
export interface EndMark {
  readonly boot: string
  /** The newest generation that it was about to publish. */
  readonly generation: number
}

/** A node's requests, one at a time; each gets an answer. */
export type Request =
  | { readonly type: 'open'; readonly boot: string; readonly machine: string }
  | { readonly type: 'begin'; readonly run: Run }
  | {
      readonly type: 'examined'
      readonly found: Found
      readonly outage: 'power' | 'reset'
      readonly marks: readonly EndMark[]
    }
  | { readonly type: 'announce'; readonly generation: number }
  | { readonly type: 'acknowledge'; readonly generation: number; readonly unproven: boolean }
  | { readonly type: 'ping' }
  | { readonly type: 'verdict' }
  | { readonly type: 'end' }

/** The state of a run by the witness, for a node that (re)connects. */
export interface Standing {
  readonly run: Run
  /** Number of the directory, in the run's directory, that takes the publications: a faulty one stays where it is. */
  readonly place: number
  readonly announced: number
  /** The machine has been off since something was announced: the disk is to be examined before anything is written. */
  readonly due: boolean
}

export type Answer =
  | { readonly type: 'standing'; readonly standing?: Standing }
  | { readonly type: 'done' }
  | { readonly type: 'examination'; readonly examination: Examination }
  | { readonly type: 'verdict'; readonly verdict: Verdict }
  | { readonly type: 'refused'; readonly problem: string }
