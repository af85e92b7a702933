/** Plays a history on a ground, and judges each call of the program in it. */
import { takeOver } from '../../../src/durable/adopt/adoption.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { join } from 'node:path'
import { Killed } from '../../durable/intercepted.js'
import { DurableWriteError, wrapError } from '../../../src/durable/errors.js'
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import { speakingRecord } from '../../../src/durable/look/snapshot.js'
import { type PublishedContent, readPublishedContent } from '../../../src/durable/look/target-content.js'
import { endRelocation, relocate } from '../../../src/durable/move/relocation.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import type { DirectoryRequest, PublicationOptions } from '../../../src/durable/types.js'
import type { Log } from '../../../src/log.js'
import { publicationOf } from './contents.js'
import { type Answer, type CallOutcome, faultsOfCall, mayLeadElsewhere } from './judge.js'
import { Knowledge } from './knowledge.js'
import type { Random } from '../../random.js'
import type { Change, Operation, Publication } from './operations.js'
import type { History } from './generate.js'
import type { Snapshot } from './snapshot.js'

/** A disk, a kernel and the processes of one boot. */
export interface Ground {
  /** What another program does; where it cannot be done, nothing. */
  change(operation: Change): void
  /** The program; `killedBefore`: dies before that call of the FileSystem interface. */
  publish(publication: Publication, killedBefore?: number): Promise<Answer | undefined>
  /** A process of this boot; `before` comes before each of its calls of the FileSystem interface, and stops it by throwing. */
  run<T>(
    work: (fs: FileSystem, base: string) => Promise<T>,
    before?: (call: string) => void | Promise<void>,
  ): Promise<T>
  sync(): void | Promise<void>
  /** In good order: all content is durable. */
  reboot(): void | Promise<void>
  look(): Snapshot
  /** The power goes now. */
  losePower(random: Random): void
  /** What its processes are told of the clock on the wall, in milliseconds since the epoch. */
  now: number
}

export const clockStart = Date.UTC(2026, 0, 1)

export interface Played {
  readonly knowledge: Knowledge
  readonly faults: readonly string[]
}

/** All but the last operation. */
export async function playPast(ground: Ground, history: History): Promise<Played> {
  const knowledge = new Knowledge()
  knowledge.durable(ground.look())
  const faults: string[] = []
  for (const operation of history.slice(0, -1)) {
    faults.push(...(await playOne(ground, knowledge, operation)))
  }
  return { knowledge, faults }
}

async function playOne(ground: Ground, knowledge: Knowledge, operation: Operation): Promise<string[]> {
  if (operation.do === 'sync' || operation.do === 'reboot') {
    await ground[operation.do]()
    knowledge.durable(ground.look())
  } else if (operation.do === 'publish') {
    if (mayLeadElsewhere(operation, ground.look())) return []
    return (await playCall(ground, knowledge, operation)).faults
  } else if (operation.do === 'killed') {
    const { publication, before } = operation
    if (mayLeadElsewhere(publication, ground.look())) return []
    const answer = await ground.publish(publication, before)
    // It may have ended before it was to be killed: then it has answered like any other.
    if (answer !== undefined) noteAnswer(knowledge, publication, answer, ground.look())
    else {
      if (publication.meanwhile) knowledge.changedBy(publication.meanwhile)
      knowledge.published(publication, undefined, ground.look())
    }
  } else {
    ground.change(operation)
    knowledge.changedBy(operation)
  }
  return []
}

/** One call of the program, judged by what can be seen. */
export async function judgedCall(
  ground: Ground,
  publication: Publication,
): Promise<{ faults: string[]; answer: Answer }> {
  const before = ground.look()
  const answer = (await ground.publish(publication)) ?? { outcomes: [], told: '' }
  const faults = faultsOfCall(
    publication,
    { before, meanwhile: answer.meanwhile ?? before, after: ground.look() },
    answer,
  )
  return { faults, answer }
}

/** The same, and notes the answer. */
export async function playCall(
  ground: Ground,
  knowledge: Knowledge,
  publication: Publication,
): Promise<{ faults: string[]; answer: Answer }> {
  const played = await judgedCall(ground, publication)
  noteAnswer(knowledge, publication, played.answer, ground.look())
  return played
}

/** Unchanged content that another program has moved away and back teaches nothing new. */
export function noteAnswer(knowledge: Knowledge, publication: Publication, answer: Answer, now: Snapshot): void {
  if (publication.meanwhile && answer.meanwhile) knowledge.changedBy(publication.meanwhile)

  publication.targets.forEach((target, index) => {
    const outcome = answer.outcomes[index]
    const isUnchanged = outcome !== undefined && !('error' in outcome) && outcome.outcome === 'unchanged'
    // It waits, or was over before: that says nothing of either path.
    const isStill = outcome !== undefined && !('error' in outcome) && ['waits', 'unchanged'].includes(outcome.outcome)
    if (publication.content === 'moved' && (outcome === undefined || 'error' in outcome || isStill)) {
      knowledge.published(publication, undefined, now)
      return
    }
    if (outcome === undefined || (isUnchanged && (publication.meanwhile || knowledge.mayHaveReturned(target, now))))
      return
    knowledge.answered(publication, target, outcome, now)
  })
}

/** The interruption of a call before each of its calls of the FileSystem interface. */
export class Interruption {
  #calls = 0
  /** The disk after another program's change. */
  meanwhile: Snapshot | undefined

  constructor(
    readonly ground: Ground,
    readonly publication: Publication,
    readonly killedBefore: number,
  ) {}

  get isKilled(): boolean {
    return this.#calls >= this.killedBefore
  }

  before(call: string): void {
    this.#calls += 1
    if (this.isKilled) throw new Killed('killed')
    const { meanwhile } = this.publication
    if (call !== 'rename' || meanwhile === undefined || this.meanwhile) return
    this.ground.change(meanwhile)
    this.meanwhile = this.ground.look()
  }
}

/** The program's call, on whichever file system; `base`: where the history's root is. */
export async function call(fs: FileSystem, base: string, publication: Publication): Promise<Answer> {
  const told: string[] = []
  const hear = (fields: object, message: string): void => {
    told.push(`${JSON.stringify(fields)} ${message}`)
  }
  const log: Log = { debug() {}, info() {}, warn: hear, error: hear }
  const { targets, content, careful, adopting } = publication
  const adopt = adopting && takeOver({ replace: true })
  const options = { log, foreign: careful ? 'same-names' : 'always', ...(adopt && { adopt }) } as const
  try {
    if (content === 'moved') {
      const outcome = await move(
        fs,
        targets.map((target) => join(base, target)),
        log,
      )
      return { outcomes: targets.map(() => outcome), told: told.join('\n') }
    }
    if (content === 'none' || content === 'earlier') {
      const one = content === 'none' ? removal : rollback
      const outcomes: CallOutcome[] = []
      for (const target of targets) outcomes.push(await one(fs, join(base, target), log))
      return { outcomes, told: told.join('\n') }
    }
    const outcomes = await publish(targets.map((target) => publicationOf(fs, base, target, content, options)))
    return { outcomes, told: told.join('\n') }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { outcomes: [], told: told.join('\n'), rejected: error }
  }
}

function removal(fs: FileSystem, path: string, log: Log): Promise<CallOutcome> {
  return outcomeOf(async () => {
    await removePublished(fs, path, { log, release: true })
    return { outcome: 'removed' }
  })
}

function rollback(fs: FileSystem, path: string, log: Log): Promise<CallOutcome> {
  return outcomeOf(async () => {
    const { outcome } = await rollBack(fs, path, { log, pin: { reason: '', until: 'released' } })
    return { outcome: outcome === 'unchanged' ? outcome : 'rolledBack' }
  })
}

/** As by `movedFrom`, where the source says at the new path what the old one has held. */
function move(fs: FileSystem, [to = '', from = '']: readonly string[], log: Log): Promise<CallOutcome> {
  return outcomeOf(async () => {
    const content = await readPublishedContent(fs, from).catch((error: unknown) => {
      throw wrapError(from, error, false, `could not read ${from}`)
    })
    const { relocation, removing } = (await speakingRecord(fs, to)) ?? {}
    const isMoving = relocation?.from === from && removing === undefined
    if (content === undefined && !isMoving) return { outcome: 'waits' }
    if (content !== undefined) {
      // It has moved before, was published since, and is named once more.
      if (isMoving && relocation.state === 'done') await endRelocation(fs, to, { log })
      resultsOf(await publish([directoryPublication(fs, { ...requestFor(content, from, to), log })]))
    }
    const { state, entered } = await relocate(fs, to, { from, keep: 0, log })
    if (state !== 'done') return { outcome: 'waits' }
    return { outcome: entered === undefined ? 'unchanged' : 'moved' }
  })
}

/** The old path's content, with its modes and in its form. */
function requestFor(
  { record, files }: PublishedContent,
  from: string,
  to: string,
): DirectoryRequest & PublicationOptions {
  const [root] = record.entries
  const modes = new Map(record.entries.map(({ path, mode }) => [path, mode]))
  return {
    target: to,
    files: Object.fromEntries([...files].map(([path, content]) => [path, { content, mode: modes.get(path) }])),
    mode: root?.mode,
    owner: root,
    ...(record.history && { history: { keep: record.history.keep, maxAge: record.history.maxAge } }),
    ...(record.kind === 'symlink' && { publish: 'symlink' }),
    foreign: 'same-names',
    movedFrom: from,
    movedTo: null,
  }
}

async function outcomeOf(call: () => Promise<CallOutcome>): Promise<CallOutcome> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof DurableWriteError) return { error }
    throw error
  }
}
