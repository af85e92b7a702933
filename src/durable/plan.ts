import { compare } from './inspect.js'
import type { TargetPublication } from './publication.js'
import type { Outcome } from './types.js'

export interface DirectoryChange {
  path: string
  change: 'add' | 'change' | 'remove'
}

export interface DirectoryPlanResult {
  outcome: Outcome
  digest: string
  /** Files that would change; directories only where nothing but themselves changes. */
  changes: DirectoryChange[]
}

const kinds = {
  missing: 'add',
  unexpected: 'remove',
  content: 'change',
  mode: 'change',
  owner: 'change',
  type: 'change',
} as const

/** What publishing would do, by paths and digest; writes nothing, takes no lock, and refuses what publishing would refuse. */
export async function plan(publication: TargetPublication): Promise<DirectoryPlanResult> {
  try {
    const { outcome, wanted, found } = await publication.preview()
    const files = new Set(wanted.entries.filter(({ type }) => type === 'file').map(({ path }) => path))
    const changes = compare(wanted, found)
      .map(({ path, problem }) => ({ path, change: kinds[problem] }))
      .filter(({ path, change }) => change !== 'add' || files.has(path))
    return { outcome, digest: wanted.digest, changes }
  } catch (error) {
    throw publication.fault(error, 'could not plan')
  } finally {
    await publication.close()
  }
}
