import { basename, dirname, join, resolve as resolvePath } from 'node:path'
import { codeOf } from '../../errors.js'
import { leftAsItWas, unfit, wrapError, type DurableWriteError } from '../errors.js'
import type { Attributes, Descriptor, FileSystem, Mount } from '../file-system.js'
import { checkTarget, namesFor, type TargetNames } from './names.js'
import { inScope, type Scope } from './scope.js'

/** Where a target is, before a publication makes anything for it. */
export interface Place {
  /** The path as it was asked for, absolute. */
  readonly target: string
  readonly name: string
  /** The parent's path without symbolic links, whether all of it exists or not. */
  readonly realParent: string
  /** The deepest directory of it that exists, open. */
  readonly anchor: Descriptor
  /** The missing directories below the anchor, outermost first. */
  readonly missing: readonly string[]
  /** Directories that hold the symbolic links which were followed. */
  readonly linksIn: readonly string[]
}

/** As many as the kernel follows (path_resolution(7)). */
const maximumLinks = 40
/** Mode of ancestors that have to be made. */
const ancestorMode = 0o755

/**
 * Finds the target's parent. Symbolic links in it are followed only where link and containing directory belong to root (or to us) and the
 * directory is not writable by the world: /var/run is a link on ordinary hosts, and no other user shall send root elsewhere. Makes nothing.
 * Throws DurableWriteError (ELOOP, ENOTDIR) and what the file system throws.
 */
export async function resolve(scope: Scope, target: string): Promise<Place> {
  const asked = dirname(target)
  const name = basename(target)
  const { fs } = scope
  const direct = await tryOpen(scope, asked)
  if (direct.fd !== undefined) {
    return { target, name, realParent: asked, anchor: direct.fd, missing: [], linksIn: [] }
  }
  const linksIn: string[] = []
  const realParent = direct.code === 'ELOOP' ? await followTrusted(fs, asked, target, linksIn) : asked
  const missing: string[] = []
  for (let path = realParent; ; path = dirname(path)) {
    const opened = await tryOpen(scope, path)
    if (opened.fd !== undefined) return { target, name, realParent, anchor: opened.fd, missing, linksIn }
    if (opened.code === 'ELOOP') {
      if (direct.code === 'ELOOP') throw changed(target, path)
      // The link leads to a directory that the walk found missing: follow it as any other.
      return {
        ...(await resolve(scope, `${await followTrusted(fs, asked, target, linksIn)}/${name}`)),
        target,
        linksIn,
      }
    }
    if (opened.code !== 'ENOENT') {
      throw unfit(`${path} is not a directory`, {
        code: opened.code,
        syscall: 'openat2',
        path,
        state: leftAsItWas(target),
        advice: 'name a path in which each part above the last is a directory',
      })
    }
    missing.unshift(basename(path))
  }
}

/** Hands over where a target is; closes the descriptors of the way, and of `scope`, after `use`. @throws what `resolve` throws */
export async function atPlace<T>(
  fs: FileSystem,
  target: string,
  use: (place: Place, scope: Scope) => Promise<T>,
): Promise<T> {
  return inScope(fs, async (scope) => use(await resolve(scope, target), scope))
}

function changed(target: string, path: string): Error {
  return unfit(`${path} became a symbolic link while holdfast resolved it`, {
    code: 'ELOOP',
    syscall: 'openat2',
    path,
    state: leftAsItWas(target),
    advice: 'another program is changing these directories: stop it, then try again',
  })
}

async function tryOpen(
  scope: Scope,
  path: string,
): Promise<{ fd: Descriptor; code?: undefined } | { fd?: undefined; code: string }> {
  try {
    return { fd: await scope.keep(scope.fs.openPath(path)) }
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ELOOP' || code === 'ENOENT' || code === 'ENOTDIR') return { code }
    throw error
  }
}

/** A symbolic link on the way along a path. */
interface MetLink {
  readonly path: string
  readonly entry: Attributes
  /** The directory that holds it. */
  readonly holder: string
  /** How many have been met, this one included. */
  readonly count: number
  /** What comes after it in the path. */
  readonly rest: readonly string[]
}

/**
 * Goes along an absolute path as the kernel does (path_resolution(7)), and answers where it leads. It asks `met` about each link before it
 * follows it. The way ends at a missing part, with the rest unchanged; `through`: that part counts as a directory instead.
 */
async function walk(
  fs: FileSystem,
  path: string,
  met: (link: MetLink) => Promise<void>,
  through = false,
): Promise<string> {
  const todo = path.split('/').filter((part) => part !== '')
  let real = ''
  let count = 0
  for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
    if (part === '.') continue
    if (part === '..') {
      real = real === '' ? '' : dirname(real).replace(/^\/$/, '')
      continue
    }
    const next = `${real}/${part}`
    const entry = await fs.lookPath(next)
    if (entry === undefined && !through) return [next, ...todo].join('/')
    if (entry?.type !== 'symlink') {
      real = next
      continue
    }
    count += 1
    const holder = real === '' ? '/' : real
    await met({ path: next, entry, holder, count, rest: todo })
    const text = await fs.readLinkPath(next)
    todo.unshift(...text.split('/').filter((piece) => piece !== ''))
    if (text.startsWith('/')) real = ''
  }
  return real === '' ? '/' : real
}

/**
 * The path with its trusted links resolved; adds the directories that hold them to `linksIn`. Opens nothing. Throws DurableWriteError
 * (ELOOP) at the first untrusted link.
 */
export async function followTrusted(fs: FileSystem, path: string, target: string, linksIn: string[]): Promise<string> {
  return walk(fs, path, async ({ path: link, entry, holder, count }) => {
    const above = await fs.lookPath(holder)
    if (count > maximumLinks || above === undefined || !isTrusted(fs, entry, above)) {
      throw unfit(
        `holdfast does not follow the symbolic link ${link}: the link and its directory must belong to root or to this user, ` +
          `and not everybody may write to the directory`,
        {
          code: 'ELOOP',
          syscall: 'openat2',
          path: link,
          state: leftAsItWas(target),
          advice: 'name the real path',
        },
      )
    }
    linksIn.push(holder)
  })
}

/**
 * The names of a path that another program uses: each link on the way, with the rest of the path, and last where it leads, through links of
 * any owner. A missing part counts as a directory, since that program can make it.
 * @throws what the kernel answers: ELOOP, EACCES, ENOTDIR
 */
export async function namesOf(fs: FileSystem, path: string): Promise<string[]> {
  const names: string[] = []
  const end = await walk(
    fs,
    path,
    ({ path: link, count, rest }) => {
      const code = 'ELOOP'
      if (count > maximumLinks) {
        const error = new Error(`${link}: more symbolic links than the kernel follows: ${code}`)
        return Promise.reject(Object.assign(error, { code, syscall: 'openat2', path: link }))
      }
      if (!rest.includes('..')) names.push(join(link, ...rest).replace(/(?<=.)\/+$/, ''))
      return Promise.resolve()
    },
    true,
  )
  return [...names, end]
}

function isTrusted(fs: FileSystem, link: Attributes, holder: Attributes): boolean {
  const trusted = (uid: number): boolean => uid === 0 || uid === fs.user.uid
  return trusted(link.uid) && trusted(holder.uid) && (holder.mode & 0o002) === 0
}

/** The target's parent, open; its ancestors made where they were missing. */
export interface Parent {
  readonly directory: Descriptor
  readonly attributes: Attributes
}

/**
 * A path through symbolic links in its last part: the place of each link and, last, of their end. `found`: the inode there; a link where
 * there are too many, or where `follow` is false.
 */
export async function resolveLinks(
  scope: Scope,
  path: string,
  follow = true,
): Promise<{ places: readonly Place[]; found: Attributes | undefined }> {
  const places: Place[] = []
  for (let at = path; ;) {
    const place = await resolve(scope, at)
    places.push(place)
    const { anchor, name, missing, realParent } = place
    const found = missing.length === 0 ? await scope.fs.look(anchor, name) : undefined
    if (found?.type !== 'symlink' || !follow || places.length > maximumLinks) return { places, found }
    at = resolvePath(realParent, await scope.fs.readLink(anchor, name))
  }
}

/** Makes the missing ancestors, 0755, and opens the parent. */
export async function openParent(scope: Scope, place: Place): Promise<Parent> {
  const { fs } = scope
  let directory = place.anchor
  for (const part of place.missing) {
    const own = await makeDirectory(fs, directory, part)
    directory = await scope.keep(fs.openDirectory(directory, part))
    if (own && (await fs.attributes(directory)).mode !== ancestorMode) {
      // An unusual umask.
      await fs.setMode(directory, ancestorMode)
    }
  }
  const attributes = await fs.attributes(directory)
  if ((attributes.mode & 0o1002) === 0o002) {
    throw unfit(
      `everybody may write to ${place.realParent}, which is not sticky, and so could replace ${place.target}`,
      { code: 'EPERM', syscall: 'fstat', path: place.realParent, advice: `chmod o-w ${place.realParent}` },
    )
  }
  return { directory, attributes }
}

/** Whether this call made it; another process may have been quicker. */
async function makeDirectory(fs: FileSystem, parent: Descriptor, name: string): Promise<boolean> {
  try {
    // With its mode at once: a process that finds it after a crash cannot tell that a chmod was to follow.
    await fs.createDirectory(parent, name, ancestorMode)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/**
 * Opens every ancestor of the parent up to the root of its mount, and the directories that hold the links on the way to it, with their
 * ancestors. This process, a predecessor that died before its sync, or a rename a moment ago may have put them there, and nothing on them
 * shows it: so each publication syncs them all. Those that this user may not read come from another user. `on`: the mount of the parent, where
 * it is known.
 */
export async function openAncestors(scope: Scope, place: Place, parent: Descriptor, on?: Mount): Promise<Descriptor[]> {
  const { id } = on ?? (await scope.fs.mount(parent))
  const opened = new Map<string, Descriptor>()
  await openUpwards(scope, dirname(place.realParent), id, opened)
  for (const holder of place.linksIn) await openUpwards(scope, holder, undefined, opened)
  opened.delete(place.realParent)
  return [...opened.values()]
}

/** Opens a directory and those above it, up to the root of its mount, whose number is `mount`. */
async function openUpwards(
  scope: Scope,
  from: string,
  mount: number | undefined,
  opened: Map<string, Descriptor>,
): Promise<void> {
  for (let path = from, id = mount; !opened.has(path); path = dirname(path)) {
    try {
      const directory = await scope.keep(scope.fs.openPath(path))
      const found = await scope.fs.mount(directory)
      if (found.id !== (id ??= found.id)) return
      opened.set(path, directory)
    } catch (error) {
      if (codeOf(error) !== 'EACCES') throw error
    }
    if (path === '/') return
  }
}

/** What is open while something works at a path. */
export interface AtTarget {
  readonly fs: FileSystem
  readonly scope: Scope
  readonly name: string
  readonly names: TargetNames
  /** Open, and made where it was missing. */
  readonly parent: Descriptor
  readonly attributes: Attributes
  /** Opens every directory above the parent: another program may have renamed one, without a sync. */
  readonly above: () => Promise<Descriptor[]>
  /** From here on readers see a change, and an error says so. */
  readonly visible: () => void
}

interface Work {
  /** As an error begins, before the path. */
  readonly doing: string
  /** The state that a failure leaves once the change is visible. Default: that of a publication. */
  readonly changed?: string | undefined
}

/** Works at a path. @throws DurableWriteError; `published: true` once the change is visible */
export async function atTarget<T>(
  fs: FileSystem,
  path: string,
  { doing, changed }: Work,
  work: (at: AtTarget) => Promise<T>,
): Promise<T> {
  let published = false
  try {
    return await inScope(fs, async (scope) => {
      const place = await resolve(scope, checkTarget(path))
      const { name } = place
      const { directory, attributes } = await openParent(scope, place)
      const above = (): Promise<Descriptor[]> => openAncestors(scope, place, directory)
      return work({
        fs,
        scope,
        name,
        names: namesFor(name),
        parent: directory,
        attributes,
        above,
        visible: () => (published = true),
      })
    })
  } catch (error) {
    throw wrapError(path, error, published, `${doing} ${path}`, changed)
  }
}

/* Whether writes at a path are known to survive a power cut. */

/** Whether a path is on a file system without proven durability. @throws DurableWriteError where the options refuse such a one */
export async function unprovenAt(fs: FileSystem, path: string, requireProven?: boolean): Promise<{ unproven?: true }> {
  const mount = await atPlace(fs, path, ({ anchor }) => fs.mount(anchor))
  return isUnproven(path, mount, requireProven) ? { unproven: true } : {}
}

/** The same of a path for which this mount decides. */
export function isUnproven(path: string, { type, proven }: Mount, requireProven: boolean | undefined): boolean {
  if (!proven && requireProven === true) throw unprovenRefused(path, type, 'leave out --require-proven')
  return !proven
}

/** `otherwise`: what to do to have it done all the same. */
export function unprovenRefused(path: string, type: string, otherwise: string): DurableWriteError {
  return unfit(
    `${path} is on ${type}, where durability is not proven (proven: ext4 with a journal and inodes of 256 bytes, xfs and btrfs, with barriers on)`,
    { code: 'ENOTSUP', syscall: 'fstatfs', path, advice: `choose another file system, or ${otherwise}` },
  )
}
