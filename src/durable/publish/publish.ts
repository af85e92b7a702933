import { ready } from '../../../native/index.js'
import { listed } from '../../message-text.js'
import { attempt, barrier, closeSynced, inScope, placeKey, Scope, StagedEntries, merged } from '../path/index.js'
import { failureOf } from '../../errors.js'
import type { DurableWriteError } from '../errors.js'
import { aborted, OverlappingTargets, extendError, internalError, leftAsItWas } from '../errors.js'
import { inParallel } from '../../parallel.js'
import type { TargetPublication } from './publication.js'
import { Parents } from '../target/index.js'
import type { ReplaceResult } from '../types.js'

type Publications = readonly TargetPublication[]
type Task = (publication: TargetPublication) => Promise<void>

export type PublishOutcome = ReplaceResult | { error: DurableWriteError }

/** A caller gets the removal of what others filled of a target, and runs it once; the default runs it before publish() answers. */
export type Later = (path: string, removal: () => Promise<void>) => Promise<void> | void

/** The steps of several targets overlap: each is a row of calls that wait for a thread. */
const targetsAtATime = 8

/**
 * Publishes a batch: all targets share both barriers, so that any number of targets and files costs two. Where the process may not have a
 * descriptor for all that each target holds open, it publishes them in parts, each with its own two. One target's error discards that
 * target alone. Rejects, before it makes anything, when two targets are the same or nested.
 */
export async function publish(
  publications: Publications,
  signal?: AbortSignal,
  later: Later = (_, removal) => removal(),
): Promise<PublishOutcome[]> {
  const outcomes = await publishInParts(publications, signal)
  for (const publication of publications.filter(({ hasRest }) => hasRest)) {
    const { path, log } = publication
    // Who removes later holds no content until then.
    const rest = publication.withoutContent()
    const removal = () => attempt(log, path, 'could not remove the rest of the old content', () => rest?.sweep(signal))
    await later(path, removal)
  }
  return outcomes
}

async function publishInParts(publications: Publications, signal: AbortSignal | undefined): Promise<PublishOutcome[]> {
  const most = publications[0]?.fs.openTargets ?? Infinity
  if (publications.length <= most) return publishTogether(publications, signal)
  const outcomes: PublishOutcome[] = []
  try {
    await refuseOverlapping(publications)
    for (let from = 0; from < publications.length; from += most)
      outcomes.push(...(await publishTogether(publications.slice(from, from + most), signal)))
    return outcomes
  } finally {
    await Promise.all(publications.slice(outcomes.length).map((publication) => publication.close()))
  }
}

async function publishTogether(publications: Publications, signal?: AbortSignal): Promise<PublishOutcome[]> {
  const [first] = publications
  if (!first) return []
  await ready()
  const shared = new Scope(first.fs)
  const parents = new Parents(shared)
  const found = new Parents(shared)
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
    // 1. Read the new content, resolve and lock.
    await each(publications, 'could not read the content of', (publication) =>
      abortable(publication, signal, () => publication.read()),
    )
    await each(going(), 'could not resolve the path of', async (publication) => {
      await publication.site.resolve(parents)
    })
    refuseNested(publications)
    await each(going(), 'could not open the parent of', (publication) => publication.site.open(publication.options))
    const inOrder = going().sort((a, b) => (a.site.identity < b.site.identity ? -1 : 1))
    refuseSame(inOrder.map((publication) => [publication, publication.site.identity]))
    // One after the other, in an order that all callers share: so that none waits for one who waits for it.
    const lock: Task = (publication) => abortable(publication, signal, () => publication.lock(signal))
    await each(inOrder, 'could not lock', lock, 1)

    // 2. Recover; 3. unchanged?
    await each(going(), 'could not prepare the publication of', async (publication) => {
      const result = await publication.prepare(parents)
      if (result) outcomes.set(publication, result)
    })

    // 4. Stage, and have it examined. Of more files than may be open, barrier 1 begins here: the first are synced, and closed.
    if (going().length === 0) return publications.map((publication) => outcomes.get(publication) ?? unreachable())
    const staged = new StagedEntries<TargetPublication>(first.fs)
    await each(going(), 'could not stage', (publication) =>
      abortable(publication, signal, () => publication.stage(staged, publications.length === 1)),
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
    await each(swapping, 'could not publish', async ({ content }) => content?.swap())

    // 7. Barrier 2, for each visible target, even after an error. Then one change, which shows an aborted journal: the first old file goes.
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
    await Promise.all([...publications.map((publication) => publication.close()), shared.closeAll()])
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
    merged(publications, ({ content }) => (content ? [content.swapped] : [])),
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

/** Two paths that are one target by a bind mount. `inOrder`: by what is equal for such two. */
function refuseSame(inOrder: readonly (readonly [TargetPublication, string])[]): void {
  inOrder.forEach(([publication, identity], index) => {
    const [next, other] = inOrder[index + 1] ?? []
    if (next && other === identity) throw new OverlappingTargets([publication.path, next.path])
  })
}

/** Looks at the targets of all parts of a batch, and keeps nothing open; a failure shows again where the target is published. */
async function refuseOverlapping(publications: Publications): Promise<void> {
  const found: [TargetPublication, string][] = []
  await inParallel(publications, 1, async (publication) => {
    const { fs, site, names } = publication
    const looking = inScope(fs, async (scope) => {
      const { anchor, missing } = await site.resolve(new Parents(scope))
      found.push([publication, [placeKey(await fs.attributes(anchor), names.lock), ...missing].join('/')])
    })
    // A path that fails leads nowhere, and so to no other target.
    await failureOf(looking)
  })
  refuseNested(publications)
  refuseSame(found.sort(([, a], [, b]) => (a < b ? -1 : 1)))
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
