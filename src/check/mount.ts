import { fault, ok, warn, type Verdict } from './findings.js'
import { rootMount, type MountDetails } from '../durable/index.js'

/** Where the target's parent is mounted, and whether mounts that are made on it later are seen from here. */
export function mountVerdict(mount: MountDetails, root = rootMount()): Verdict {
  const found = `${mount.source} on ${mount.mountPoint}`
  const inContainer = root?.type === 'overlay'
  if (inContainer && mount.id === root.id) {
    return warn(
      'mount',
      `${found}: the container's own layer, which goes with the container`,
      'mount the parent of the target from the host (hostPath)',
    )
  }
  if (inContainer && !mount.receives) {
    return warn(
      'mount',
      `${found}; a mount that the host makes on the target would not be seen here, and be detached by a publication`,
      'set mountPropagation: HostToContainer on the volumeMount',
    )
  }
  if (mount.options.includes('ro')) {
    return fault(
      'mount',
      `${found}, read-only`,
      'mount it read-write: look into the kernel log for an error of the disk',
    )
  }
  return ok('mount', found)
}

/** Whether the guarantees about power cuts are proven on this file system. */
export function typeVerdict({ type, options }: MountDetails, proven: boolean, requireProven: boolean): Verdict {
  if (proven) return ok('file system', `${type}${type === 'ext4' ? ' with its journal' : ''}: durability is proven`)
  const off = options.find((option) => option === 'nobarrier' || option === 'barrier=0')
  const why = type !== 'ext4' ? '' : off === undefined ? ' without a journal' : ` with ${off}`
  const found = `${type}${why}: durability is not proven, a power cut may undo or tear what was published`
  const advice = 'put the target on ext4 with a journal, xfs or btrfs, with barriers on'
  return requireProven
    ? fault('file system', `${found}, and requireProven is set`, `${advice}, or do without requireProven`)
    : warn('file system', found, advice)
}
