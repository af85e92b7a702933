import type { DirectoryConfiguration } from '../config/types.js'
import { endsWithin } from '../deadline.js'
import { DurableCalls } from '../durable/index.js'
import {
  unfinishedRollouts,
  usualManifestDirectories,
  type RolloutStatus,
} from '../static-pods/rollout/rollout-status.js'

/** Milliseconds: a disk that hangs must not keep the rest from being shown. */
const patience = 2_000

/** The rollouts of static pods that are not over, in the usual manifest directories and in those of the hooks. */
export async function rolloutsOf(
  directories: readonly Pick<DirectoryConfiguration, 'afterPublish'>[],
): Promise<RolloutStatus[]> {
  const hooks = directories.flatMap(({ afterPublish }) => afterPublish)
  const own = hooks.flatMap((hook) => (hook.type === 'staticPod' ? [hook.manifestDirectory] : []))
  const looks = unfinishedRollouts([...usualManifestDirectories, ...own], new DurableCalls())
  return (await endsWithin(looks, patience)) ? looks : []
}
