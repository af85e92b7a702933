import { basename } from 'node:path'
import { silent } from '../../log.js'
import { DurableWriteError, wrapped } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import { isOtherAgents, type RecordBody, recordBody, type StoredRecord } from '../record/index.js'
import { claimed, publish, resultsOf, directoryPublication } from '../publish/index.js'
import { atPlace, attempt, checkTarget, fsyncAll, namesFor, type Tree } from '../path/index.js'
import {
  isInPlace,
  isThere,
  type Next,
  nextTime,
  NotNow,
  notDirectory,
  notDurable,
  notOurs,
  notWhole,
  refuseChain,
  refuseClaim,
  refuseSame,
  type RelocationOptions,
  requestFor,
  shown,
  userOf,
  wordOn,
} from './relocation-source.js'
import { type PublishedContent, readPublishedContent, speakingRecord } from '../look/index.js'
import { removePublished } from '../remove/index.js'
import { rewriteRecord } from '../operator/index.js'
import type { HoldOptions, Relocation, RelocationState, ReplaceResult } from '../types.js'

/*
 * A directory moves to another path while programs use it. Its publisher publishes the new path as always; this file does all that happens
 * to the old one. The record of the new path has the state, durably before the step that it announces:
 *
 *   staged     the new path holds the content, durably; the old one is as it was
 *   both       each publication of the new path is followed by one of the old path, with the same content
 *   draining   no program uses the old path, and it goes
 *   done       it is gone: another directory at that path is safe, unless this publisher's own record is there again
 *
 * The old path's record names the new one. Another publication there takes that away and so revokes the relocation, which starts over.
 */

/** Where it stands, and why it waits. */
export interface RelocationProgress {
  /** Absent while the new path holds nothing that is durable. */
  readonly state?: RelocationState
  /** State that was recorded now. */
  readonly entered?: RelocationState
  /** What the publication of the old path came to; absent where there was none. */
  readonly result?: ReplaceResult
  /** Why it does not go on, as a sentence without its full stop; absent when it is done. */
  readonly waits?: string
}

/**
 * Takes a relocation as far as it goes now. The publisher of the new path calls it again after each publication, and from time to time.
 * @throws DurableWriteError: the old path is not holdfast's (TargetForeign), is held (Held), is the new one by another name (TargetUnfit),
 *   or the error of its publication or removal. Both paths are whole, and a later call goes on. The signal's reason, between two steps
 */
export async function relocate(fs: FileSystem, to: string, options: RelocationOptions): Promise<RelocationProgress> {
  const move = new Move(fs, checkTarget(to), { ...options, from: checkTarget(options.from) })
  return wrapped(move.from, `could not move ${move.from} to ${move.to}`, move.run())
}

/** Says of a target that its content comes from nowhere, and goes nowhere: it was, or is to be, left where it is. */
export async function endRelocation(fs: FileSystem, path: string, options: HoldOptions = {}): Promise<void> {
  const target = checkTarget(path)
  const doing = { problem: `could not end the relocation of ${target}`, verb: 'move' }
  const change = (record: StoredRecord) =>
    record.relocation === undefined && record.movedTo === undefined
      ? undefined
      : recordBody(record, { relocation: undefined, movedTo: undefined })
  await rewriteRecord(fs, target, doing, change, options)
}

const steps = {
  staged: (move, relocation) => move.claim(relocation),
  both: (move, relocation) => move.follow(relocation),
  draining: (move) => move.drain(),
  done: (move) => move.lookAgain(),
} as const satisfies Record<RelocationState, (move: Move, relocation: Relocation) => Promise<Next>>

class Move {
  #result: ReplaceResult | undefined

  constructor(
    readonly fs: FileSystem,
    readonly to: string,
    readonly options: RelocationOptions,
  ) {}

  get from(): string {
    return this.options.from
  }

  async run(): Promise<RelocationProgress> {
    let relocation = await this.#begin()
    if (typeof relocation === 'string') return { waits: relocation }
    if (relocation.state !== 'done') await refuseSame(this.fs, this.to, this.options)
    let entered: RelocationState | undefined
    for (;;) {
      this.options.signal?.throwIfAborted()
      let waits: string | undefined
      try {
        const step = await steps[relocation.state](this, relocation)
        waits = step.waits
        if (step.next !== undefined) {
          relocation = await this.#enter(step.next)
          entered = step.next
          if (waits === undefined) continue
        }
      } catch (error) {
        waits = nextTime(error, this.#result, this.options)
        if (waits === undefined) throw error
      }
      const { state } = relocation
      const result = this.#result
      const now = { ...(entered && { entered }), ...(result && { result }), ...(waits !== undefined && { waits }) }
      return { state, ...now }
    }
  }

  /** The recorded relocation; a text: why it cannot begin. It begins here where the new path was there before the request. */
  async #begin(): Promise<Relocation | string> {
    const record = await this.#atNew(() => speakingRecord(this.fs, this.to))
    if (!record?.trusted) return notDurable(this.to, record)
    return record.relocation?.from === this.from ? record.relocation : this.#enter('staged')
  }

  async #enter(state: RelocationState): Promise<Relocation> {
    const { fs, to, from } = this
    const relocation: Relocation = { from, as: 'removed', state, since: fs.now() }
    const change = (record: StoredRecord) => recordBody(record, { relocation })
    // Who waits for this record's lock waits for no thread of the old path's file system.
    await this.#atNew(() => rewriteRecord(fs, to, this.#doing, change, this.options))
    return relocation
  }

  #atNew<T>(work: () => Promise<T>): Promise<T> {
    return this.options.atNew ? this.options.atNew(work) : work()
  }

  get #doing() {
    return { problem: `could not move ${this.from} to ${this.to}`, verb: 'move' }
  }

  /** staged: the old content must be holdfast's own, and its record says from now on where it goes. */
  async claim({ since }: Relocation): Promise<Next> {
    const { fs, from, to, options } = this
    const record = await speakingRecord(fs, from)
    if (record === undefined) {
      if (await isThere(fs, from, basename(from))) throw notOurs(from, to)
      // Its disk may come later.
      const end = since + options.keep
      return fs.now() < end ? { waits: `${from} is not there, which may change until ${shown(end)}` } : this.#end()
    }
    if (record.kind === 'file') throw notDirectory(from, to)
    const change = (found: StoredRecord, tree: Tree | undefined): RecordBody => {
      refuseClaim(found, options, fs.now())
      refuseChain(from, found, to)
      return recordBody(found, { ...claimed(from, found, tree, to, options.publication?.agent), movedTo: to })
    }
    await rewriteRecord(fs, from, this.#doing, change, options)
    return { next: 'both' }
  }

  /** both: the old path gets the new one's content, until no program needs it. */
  async follow({ since }: Relocation): Promise<Next> {
    const { fs, from, to, options } = this
    const lost = await this.#whereItWent()
    if (lost) return lost
    const content = await this.#contentOfNew()
    if (content === undefined) return { waits: notWhole(to) }
    try {
      this.#result = await this.#publishOld(content)
    } catch (error) {
      if (error instanceof NotNow) return (await this.#whereItWent()) ?? { waits: error.problem }
      throw error
    }
    const old = await speakingRecord(fs, from)
    const word = old && wordOn(from, old, fs.now())
    if (word !== undefined) return { waits: word }
    const user = (await userOf(fs, from)) ?? (await options.usedBy?.())
    if (user !== undefined) return { waits: `${from} is in use: ${user}` }
    const end = since + options.keep
    return fs.now() < end ? { waits: `${from} stays until ${shown(end)} at least` } : { next: 'draining' }
  }

  /** draining: the removal itself checks once more for users. A path that stays gets each update. */
  async drain(): Promise<Next> {
    const { fs, from, to, options } = this
    // It may hold the last copy.
    if ((await this.#contentOfNew()) === undefined) return { next: 'both', waits: notWhole(to) }
    const lost = await this.#whereItWent()
    if (lost) return lost
    const confirm = ({ movedTo }: Pick<StoredRecord, 'movedTo'>): void => {
      if (movedTo !== to) throw new NotNow(from, { next: 'staged' })
    }
    try {
      await removePublished(fs, from, { ...options, confirm })
    } catch (error) {
      if (error instanceof NotNow) return error.next
      const again = isInPlace(error) ?? nextTime(error, this.#result, options)
      if (again !== undefined) return { next: 'both', waits: again }
      if (error instanceof DurableWriteError && !error.published) await this.#stay()
      throw error
    }
    return { next: 'done' }
  }

  async #stay(): Promise<void> {
    const { to, options } = this
    const enter = async (): Promise<void> => {
      await this.#enter('both')
    }
    await attempt(options.log ?? silent, to, 'could not record that the old path stays', enter)
  }

  /** done: it was not there for its time, and came with its disk; or it was taken back, and named once more. */
  async lookAgain(): Promise<Next> {
    const { publisher, agent } = this.options.publication ?? {}
    const record = await speakingRecord(this.fs, this.from)
    if (record === undefined || record.kind === 'file' || record.removing) return {}
    const isOwn = publisher !== undefined && record.publisher === publisher && !isOtherAgents(record, agent)
    return isOwn || record.movedTo === this.to ? { next: 'staged' } : {}
  }

  /**
   * The old path is gone: the move is over once the new one holds the content, which a power cut may have kept from it, and once no power
   * cut brings back a record that a killed removal has unlinked.
   */
  async #end(): Promise<Next> {
    const { fs, from, to } = this
    if ((await this.#contentOfNew()) === undefined) return { waits: notWhole(to) }
    await atPlace(fs, from, ({ anchor }) => fsyncAll(fs, [anchor]))
    return { next: 'done' }
  }

  #contentOfNew(): Promise<PublishedContent | undefined> {
    return this.#atNew(() => readPublishedContent(this.fs, this.to))
  }

  /** It has been removed, or another call has published it; undefined: neither. */
  async #whereItWent(): Promise<Next | undefined> {
    const { fs, from } = this
    const record = await speakingRecord(fs, from)
    if (record !== undefined) return record.movedTo === this.to ? undefined : { next: 'staged' }
    // The lock of a target stays for ever: without it, this is not the directory that it was in.
    const isKnown = await isThere(fs, from, namesFor(basename(from)).lock)
    return isKnown
      ? this.#end()
      : { waits: `the directory of ${from} is not there, or empty: its disk may not be mounted` }
  }

  async #publishOld(content: PublishedContent): Promise<ReplaceResult> {
    const old = await speakingRecord(this.fs, this.from)
    if (old === undefined) throw new NotNow(this.from, {})
    const [result] = resultsOf(
      await publish(
        [directoryPublication(this.fs, requestFor(old, content, this.to, this.options))],
        this.options.signal,
      ),
    )
    if (result === undefined) throw new Error('publish() returned nothing')
    return result
  }
}
