import { ready } from '../../../native/index.js'
import { listed } from '../../listed.js'
import { barrier, closeSynced, StagedEntries, merged } from '../path/index.js'
import type { DurableWriteError } from '../errors.js'
import { aborted, OverlappingTargets, extendError, internalError, leftAsItWas } from '../errors.js'
import { inParallel } from '../../parallel.js'
import type { TargetPublication } from './publication.js'
import { Parents } from '../target/index.js'
import type { ReplaceResult } from '../types.js'

type Publications = readonly TargetPublication[]
type Task = (publication: TargetPublication) => Promise<void>

export type PublishOutcome = ReplaceResult | { error: DurableWriteError }

/** The steps of several targets overlap: each is a row of calls that wait for a thread. */
const targetsAtATime = 8

/**
 * Publishes a batch: all targets share both barriers, so that any number of targets and files costs two. One target's error discards that
 * target alone. Rejects, before it makes anything, when two targets are the same or nested.
 */
export async function publish(
  publications: readonly TargetPublication[],
  signal?: AbortSignal,
): Promise<PublishOutcome[]> {
  const [first] = publications
  if (!first) return []
  await ready()
  const parents = new Parents(first.fs)
  const found = new Parents(first.fs)
  const outcomes = new Map<TargetPublication, PublishOutcome>()
  const going = (): TargetPublication[] => publications.filter((publication) => !outcomes.has(publication))
  const each = async (items: Publications, doing: string, task: Task, width = targetsAtATime): Promise<void> =>
    inParallel(items, width, async (publication) => {
      try {
        await task(publication)
      } catch (error) {
        await end(publication, error, doing)
      }
    })
  const end = async (publication: TargetPublication, error: unknown, doing: string): Promise<void> => {
    outcomes.set(publication, { error: errorOf(publication, error, doing) })
    if (!publication.published) await publication.discard()
  }

  try {
    // 1. Resolve and lock; 2. recover; 3. unchanged?
    await each(publications, 'could not read the content of', (publication) =>
      abortable(publication, signal, () => publication.read()),
    )
    await each(going(), 'could not resolve the path of', async (publication) => {
      await publication.site.resolve(parents)
    })
    refuseNested(publications)
    await each(going(), 'could not open the parent of', (publication) => publication.site.open(publication.options))
    const inOrder = going().sort((a, b) => (a.site.identity < b.site.identity ? -1 : 1))
    refuseSame(inOrder)
    // One after the other, in an order that all callers share: so that none waits for one who waits for it.
    const lock: Task = (publication) => abortable(publication, signal, () => publication.lock(signal))
    await each(inOrder, 'could not lock', lock, 1)
    await each(going(), 'could not prepare the publication of', async (publication) => {
      const result = await publication.prepare(parents)
      if (result) outcomes.set(publication, result)
    })

    // 4. Stage, and have it examined.
    if (going().length === 0) return publications.map((publication) => outcomes.get(publication) ?? unreachable())
    const staged = new StagedEntries<TargetPublication>(first.fs)
    await each(going(), 'could not stage', (publication) =>
      abortable(publication, signal, () => publication.stage(staged)),
    )
    await each(going(), 'could not examine', (publication) =>
      abortable(publication, signal, () => publication.examine()),
    )

    // 5. Barrier 1.
    for (const [publication, failure] of await firstBarrier(going(), staged)) {
      await end(publication, failure, 'could not sync the staged content of')
    }
    if (signal?.aborted)
      for (const publication of going()) await end(publication, abandoned(publication.path, signal), 'aborted')

    // 6. Exchange.
    const swapping = going()
    await each(swapping, 'could not publish', (publication) => publication.swap())

    // 7. Barrier 2, for each visible target, even after an error.
    const visible = swapping.filter(({ published }) => published)
    for (const [publication, failure] of await secondBarrier(visible)) {
      await end(publication, failure, 'could not sync')
    }
    await each(going(), 'could not sync', (publication) => publication.mutate())
    await each(going(), 'could not find again', (publication) => publication.site.confirm(found))

    // 8. Commit, and remove the old content.
    await each(going(), 'could not remove the old content of', async (publication) => {
      outcomes.set(publication, await finished(publication))
    })
    return publications.map((publication) => outcomes.get(publication) ?? unreachable())
  } finally {
    await Promise.all([...publications, parents, found].map((held) => held.close()))
  }
}

async function firstBarrier(
  publications: readonly TargetPublication[],
  staged: StagedEntries<TargetPublication>,
): Promise<Map<TargetPublication, Error>> {
  const [fs] = publications.map((publication) => publication.fs)
  if (!fs) return new Map()
  const going = new Set(publications)
  const all = staged.take()
  const files = all.filter(({ owners }) => owners.some((owner) => going.has(owner)))
  const directories = merged(publications, ({ pendingDirectories }) => pendingDirectories)
  const failures = await barrier(fs, [...files, ...directories])
  await closeSynced(all)
  for (const [publication, failure] of staged.failures) {
    if (going.has(publication)) failures.set(publication, failure)
  }
  return failures
}

async function secondBarrier(publications: readonly TargetPublication[]): Promise<Map<TargetPublication, Error>> {
  const [first] = publications
  if (!first) return new Map()
  return barrier(
    first.fs,
    merged(publications, ({ swapped }) => [swapped]),
  )
}

/** A reader or a check that ends with the caller's signal says nothing about the content. */
async function abortable(
  publication: TargetPublication,
  signal: AbortSignal | undefined,
  step: () => Promise<void>,
): Promise<void> {
  try {
    await step()
  } catch (error) {
    throw signal?.aborted ? abandoned(publication.path, signal) : error
  }
}

function refuseNested(publications: readonly TargetPublication[]): void {
  const paths = publications
    .map((publication) => ({ publication, real: publication.site.reached }))
    .sort((a, b) => (a.real < b.real ? -1 : 1))
  for (const { publication, real } of paths) {
    // What stands in the way of a target is no target for that: two may fail below one file.
    const above = paths.find(
      (other) =>
        other.publication !== publication &&
        other.publication.site.isResolved &&
        `${real}/`.startsWith(`${other.real}/`),
    )
    if (above) throw new OverlappingTargets([publication.path, above.publication.path])
  }
}

/** Two paths that are one target by a bind mount. */
function refuseSame(inOrder: readonly TargetPublication[]): void {
  inOrder.forEach((publication, index) => {
    const next = inOrder[index + 1]
    if (next?.site.identity === publication.site.identity) {
      throw new OverlappingTargets([publication.path, next.path])
    }
  })
}

function abandoned(path: string, signal: AbortSignal): DurableWriteError {
  const details = { state: leftAsItWas(path), syscall: 'renameat2', path, signal }
  return aborted(`the caller aborted the publication of ${path}`, details)
}

/** Not even a defect of this program may keep the rest of a batch from its barriers. */
function errorOf(publication: TargetPublication, error: unknown, doing: string): DurableWriteError {
  try {
    return publication.wrapError(error, doing)
  } catch (defect) {
    return internalError(publication.path, defect, publication.published, doing)
  }
}

/** Step 8 of a publication that is durable. */
async function finished(publication: TargetPublication): Promise<ReplaceResult> {
  await publication.commit()
  await publication.removeOld()
  return publication.result(publication.outcome)
}

function unreachable(): never {
  throw new Error('a publication has no outcome')
}

/**
 * The results of a batch in which nothing failed.
 * @throws DurableWriteError of the gravest failure, unknown durability before all others, with what became of the rest
 */
export function resultsOf(outcomes: readonly PublishOutcome[]): ReplaceResult[] {
  const errors = outcomes.flatMap((outcome) => ('error' in outcome ? [outcome.error] : []))
  const done = outcomes.flatMap((outcome) => ('error' in outcome ? [] : [outcome]))
  const gravest = errors.find(({ published }) => published) ?? errors[0]
  if (gravest === undefined) return done
  const others = errors.filter((error) => error !== gravest).map(({ path }) => path)
  const changed = done.filter(({ outcome }) => outcome !== 'unchanged').map(({ path }) => path)
  throw extendError(gravest, [
    ...(others.length > 0 ? [`these failed too: ${listed(others, 3)}`] : []),
    ...(changed.length > 0 ? [`these were published all the same: ${listed(changed, 3)}`] : []),
  ])
}
