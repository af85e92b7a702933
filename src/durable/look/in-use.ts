import { basename, dirname } from 'node:path'
import { namesFor, pathWithin } from '../path/index.js'
import {
  commandOf,
  type Holding,
  type HoldingKind,
  holdingsOn,
  type Location,
  processText,
  type Unseen,
} from '../posix/index.js'
import * as mountTable from '../../mountinfo.js'

/* The processes that use a target, or its old content. A process keeps the directory that it has opened, not its path. */

/** What one process has of one target, in one way. */
interface Use {
  readonly pid: number
  /** The process's name (comm); empty where it has ended meanwhile. */
  readonly command: string
  readonly what: HoldingKind
  /** The first of them, as the process sees it. */
  readonly path: string
  readonly count: number
  /** It is old content: what the process reads there is never published again. */
  readonly retired: boolean
  /** The process's control groups, the text of /proc/PID/cgroup. */
  readonly cgroup: string
}

interface UseReport {
  /** For each target, in order. */
  readonly uses: readonly (readonly Use[])[]
  readonly unseen: Unseen
}

/**
 * The other processes that have something of these targets open, mapped or mounted, or work in it. `targets`: absolute paths whose parents
 * hold no symbolic link. Reads procfs alone; some milliseconds for each hundred processes.
 */
export async function usesOf(targets: readonly string[]): Promise<UseReport> {
  const table = mountTable.mounts()
  const places = targets.map((target) => {
    const mount = mountTable.mountAbove(target, table)
    const name = basename(target)
    const within = mount && pathWithin(mount, target)
    return { name, names: namesFor(name), device: mount?.device, parent: within && dirname(within) }
  })
  const isOfOne = ({ locations }: Holding): boolean =>
    locations.some((location) => places.some((place) => relationOf(location, place) !== undefined))
  const { holdings, unseen } = await holdingsOn(new Set(places.flatMap(({ device }) => device ?? [])), isOfOne)
  const uses = places.map((place) => {
    const found = new Map<string, Use>()
    for (const holding of holdings) {
      const relations = holding.locations.map((location) => relationOf(location, place))
      const retired = relations.includes('retired')
      if (!retired && !relations.includes('live')) continue
      const { pid, what, path } = holding
      const key = `${pid} ${what} ${retired}`
      const count = (found.get(key)?.count ?? 0) + 1
      found.set(key, { ...(found.get(key) ?? { ...about(holding), what, path, retired }), count })
    }
    return [...found.values()]
  })
  return { uses, unseen }
}

interface TargetPlace {
  readonly name: string
  readonly names: ReturnType<typeof namesFor>
  readonly device: string | undefined
  readonly parent: string | undefined
}

/** Old content keeps the name under which it was taken out, even once it is removed: the kernel tells the last name. */
function relationOf(location: Location, { name, names, device, parent }: TargetPlace): 'live' | 'retired' | undefined {
  const { within, deleted } = location
  const prefix = parent === '/' ? '/' : `${parent}/`
  if (location.device !== device || !within.startsWith(prefix)) return undefined
  const [entry = ''] = within.slice(prefix.length).split('/', 1)
  if (names.stagingOf(entry) !== undefined || names.quarantineOf(entry) !== undefined) return 'retired'
  if (entry !== name) return undefined
  return deleted ? 'retired' : 'live'
}

function about({ pid }: Holding): Pick<Use, 'pid' | 'command' | 'cgroup'> {
  return { pid, command: commandOf(pid), cgroup: processText(pid, 'cgroup') }
}
