import { codeOf, failureOf, toError } from '../errors.js'
import type { TargetNames } from '../durable/path/index.js'
import type { Descriptor, FileSystem } from '../durable/file-system.js'

export interface ProbeOutcome {
  /** Why it failed; undefined: two directories were exchanged in one step. */
  readonly failure: Error | undefined
  readonly step: 'create' | 'exchange'
  /** Names that could not be removed again. */
  readonly left: readonly string[]
}

/** How often it starts again where another process has cleaned up, in the same instant, what it took for leftovers. */
const tries = 3

/**
 * Exchanges two empty directories that it makes beside the target, and removes them. Their names are those of staging: what a
 * kill leaves of them goes with the next recovery. The target itself is not touched.
 */
export async function probeExchange(fs: FileSystem, parent: Descriptor, names: TargetNames): Promise<ProbeOutcome> {
  let outcome: ProbeOutcome
  let tried = 0
  do {
    outcome = await probeOnce(fs, parent, names)
    tried += 1
  } while (tried < tries && codeOf(outcome.failure) === 'ENOENT')
  return outcome
}

async function probeOnce(fs: FileSystem, parent: Descriptor, names: TargetNames): Promise<ProbeOutcome> {
  const made: string[] = []
  let step: ProbeOutcome['step'] = 'create'
  let failure: Error | undefined
  try {
    const [one, other] = [names.staging(fs.random()), names.staging(fs.random())]
    for (const name of [one, other]) {
      await fs.createDirectory(parent, name)
      made.push(name)
    }
    const before = await fs.look(parent, one)
    step = 'exchange'
    await fs.rename(parent, one, parent, other, 'exchange')
    const after = await fs.look(parent, other)
    if (before === undefined || before.inode !== after?.inode) {
      failure = new Error('the kernel reported success, but the two directories did not change places')
    }
  } catch (error) {
    failure = toError(error)
  }
  const left: string[] = []
  for (const name of made) {
    const unremoved = await failureOf(fs.removeDirectory(parent, name))
    if (unremoved !== undefined && codeOf(unremoved) !== 'ENOENT') left.push(name)
  }
  return { failure, step, left }
}
