import { failureOf } from '../../errors.js'
import {
  adoptionRules,
  type AdoptionLook,
  type OpenedTarget,
  pending,
  refused,
  type AdoptionRule,
  type Scene,
  type RuleVerdict,
} from './adoption-rules.js'
import { DurableWriteError, wrapError } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import { readTarget } from '../look/index.js'
import { Scope, readTree, type Tree } from '../path/index.js'
import { PlannedTree, type Adoption, type AdoptionScene, planFor } from '../publish/index.js'
import { readRecords, isRecorded, type StoredRecord } from '../record/index.js'
import { openTarget, refuseOtherThanDirectory, Site } from '../target/index.js'
import type { Adopting, AdoptionCheck, AdoptionResult, DirectoryRequest, PublicationOptions } from '../types.js'

/*
 * Adoption: another program's directory comes under holdfast's care. First come seven checks, in their order; holdfast changes nothing
 * before all of them have passed. Then an ordinary publication exchanges it for new content, and the old content stays beside it as content
 * 0 of its history, until the next publication.
 *
 * Equal content is exchanged, too, for fresh, synced inodes: a failed fsync of the other program may have left pages that only this
 * kernel's memory holds, and no later fsync says so. (To read them back past the page cache would tell, but some file systems lack
 * O_DIRECT, which asks for aligned sizes, and reads btrfs's compressed and inline extents through the cache all the same.) Its consumers
 * know it: no hook runs.
 */

/** Each check in its order. A publication stops at the first that has not passed. */
async function* adoptionChecks(scene: Scene, missing = false): AsyncGenerator<AdoptionResult> {
  const { fs, path, name, site } = scene
  const scope = new Scope(fs)
  let opening: Promise<OpenedTarget> | undefined
  const open = async (): Promise<OpenedTarget> => {
    const found = await fs.look(site.parent.directory, name)
    if (found) refuseOtherThanDirectory(path, found)
    const { opened } = await openTarget(scope, path, site.parent, name)
    return { opened, tree: await readTree(fs, opened, false) }
  }
  try {
    const attributes = missing ? undefined : await fs.look(site.parent.directory, name)
    const look: AdoptionLook = { ...scene, attributes, target: () => (opening ??= open()) }
    for (const [check, rule] of Object.entries(adoptionRules) as [AdoptionCheck, AdoptionRule][]) {
      const found = await verdictOf(look, rule)
      yield { check, ...found, terminal: found.verdict === 'refused' }
    }
  } finally {
    await scope.closeAll()
  }
}

/** A refusal with a publication's error is terminal. */
async function verdictOf(look: AdoptionLook, rule: AdoptionRule): Promise<RuleVerdict> {
  const { needs, check } = rule
  if (needs !== 'nothing' && look.attributes === undefined) return unseen(`${look.path} does not exist`)
  if (needs === 'directory') {
    const failure = await failureOf(look.target())
    if (failure instanceof DurableWriteError) return unseen(failure.problem)
  }
  try {
    return await check(look)
  } catch (error) {
    if (!(error instanceof DurableWriteError)) throw error
    return refused(error.problem, error.advice ?? 'choose another path')
  }
}

function unseen(why: string): RuleVerdict {
  return pending(`not looked at: ${why}`, 'see the checks before it')
}

/** The publication takes over another program's directory once the seven checks have passed, and stops at the first that has not. */
export function takeOver(adopt: Adopting): Adoption {
  return {
    ...adopt,
    async approve(scene, { digest }) {
      await passChecks({ ...scene, adopt })
      if ((await treeOf(scene))?.digest !== digest) throw changedMeanwhile(scene.path)
    },
    async refuseUnreadable(scene) {
      if (!(await isOwn(scene))) await passChecks({ ...scene, adopt })
    },
  }
}

async function passChecks(scene: Scene): Promise<void> {
  const { path } = scene
  for await (const result of adoptionChecks(scene)) {
    if (result.verdict !== 'passed') throw adoptionError(path, result)
  }
}

/** Whether holdfast has published the content, drifted or not. */
async function isOwn(scene: AdoptionScene): Promise<boolean> {
  const { fs, name, names, site } = scene
  const { valid, newer } = await readRecords(fs, site.parent.directory, name, names)
  if (newer.length > 0) return true
  return valid.length > 0 && isRecorded(valid, await treeOf(scene, valid))
}

/** The content of the target; undefined where no publication can replace it. */
async function treeOf(
  { fs, path, name, site }: AdoptionScene,
  records: readonly StoredRecord[] = [],
): Promise<Tree | undefined> {
  try {
    return await readTarget(fs, path, site.parent.directory, name, 'exchange', records)
  } catch (error) {
    if (error instanceof DurableWriteError) return undefined
    throw error
  }
}

/** All that the seven checks find of a path, without publishing. `own`: holdfast publishes there already. */
export async function examineAdoption(
  fs: FileSystem,
  request: DirectoryRequest & Omit<PublicationOptions, 'adopt'>,
  adopt: Adopting,
): Promise<{ own: boolean; checks: AdoptionResult[] }> {
  const plan = planFor(request.target, { ...request, fs })
  const path = plan.target
  const scope = new Scope(fs)
  const planned = PlannedTree.ofDirectory(plan, fs.user)
  const site = new Site(scope, path)
  const { names } = site
  try {
    const lease = await lookUnderLock(site)
    await planned.read()
    const { tree: desired } = planned
    const keepsOwners = request.attributes === 'keep'
    const scene = { fs, path, name: site.name, names, plan, desired, site, adopt, keepsOwners, busy: lease === 'busy' }
    const own = lease !== 'missing' && (await isOwn(scene))
    const checks: AdoptionResult[] = []
    if (!own) for await (const result of adoptionChecks(scene, lease === 'missing')) checks.push(result)
    return { own, checks }
  } catch (error) {
    throw wrapError(path, error, false, `could not look at ${path}`)
  } finally {
    await planned.close()
    await scope.closeAll()
  }
}

/** Takes an existing lock, so that no other publication changes the target meanwhile; makes none. Opens the site, if its parent exists. */
async function lookUnderLock(site: Site): Promise<'busy' | 'missing' | undefined> {
  if ((await site.resolve()).missing.length > 0) return 'missing'
  await site.open({})
  if ((await site.scope.fs.look(site.parent.directory, site.names.lock)) === undefined) return undefined
  const failure = await failureOf(site.lock(0, undefined))
  if (failure instanceof DurableWriteError && failure.reason === 'Busy') return 'busy'
  if (failure !== undefined) throw failure
  return undefined
}

/** What a publication throws where a check has not passed. Nothing was changed. */
function adoptionError(
  path: string,
  { check, verdict, message, advice }: Omit<AdoptionResult, 'terminal'>,
): DurableWriteError {
  return new DurableWriteError(`${path} cannot be adopted: ${check}: ${message}`, {
    code: verdict === 'pending' ? 'EBUSY' : 'EEXIST',
    syscall: 'none',
    path,
    reason: verdict === 'pending' ? 'AdoptionPending' : 'AdoptionRefused',
    state: 'nothing was changed',
    advice: advice ?? undefined,
  })
}

/** Another program has written there between the checks and the reading. */
function changedMeanwhile(path: string): DurableWriteError {
  const message = 'its content changed while it was looked at'
  const advice = 'stop whoever writes there'
  return adoptionError(path, { check: 'noOtherWriter', verdict: 'pending', message, advice })
}
