/**
 * What holdfast obeys as its own user, root for the most: configuration, kubeconfig and the files that it names, credential plugins,
 * programs of hooks. A user who may write to one of them, or to a directory above it, is root, too.
 */
import { lstat, readlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { codeOf, describeCode, type DeclaredInvalid } from './errors.js'
import type { Log } from './log.js'
import { mountAbove, mounts } from './mountinfo.js'
import { othersWrite, type PathPart } from './writers.js'

/** A file that holdfast obeys. */
export interface Obeyed {
  /** For people: `kubeconfig`, `program of hook exec reload`. */
  readonly what: string
  readonly path: string
}

/** `requireTrusted` refuses it. */
class UntrustedError extends Error implements DeclaredInvalid {
  override readonly name = 'UntrustedError'
  readonly invalid = 'configuration'
}

export const trustAdvice =
  'let root own it and each directory above it, and take the right to write from all others (chmod go-w)'

/** The one door: warns of each doubt once, or refuses. */
export class Trust {
  /** `requireTrusted` of the configuration in force. */
  required = false
  readonly #warned = new Map<string, string>()

  constructor(private readonly log: Log) {}

  /** @throws UntrustedError */
  async obey({ what, path }: Obeyed, required = this.required): Promise<void> {
    const doubt = await doubtOf(path).catch((error: unknown) => {
      if (!required) return undefined
      throw new UntrustedError(
        `${what} ${path}: its owners could not be looked at (${describeCode(codeOf(error) ?? 'unknown')})`,
      )
    })
    const about = `${what} ${path}: ${doubt ?? ''}, and so may choose what holdfast does as its own user`
    if (doubt !== undefined && required) {
      throw new UntrustedError(`${about}: requireTrusted refuses it; ${trustAdvice}`)
    }
    if (doubt !== undefined && this.#warned.get(path) !== doubt) this.log.warn({ path }, `${about}; ${trustAdvice}`)
    if (doubt === undefined) this.#warned.delete(path)
    else this.#warned.set(path, doubt)
  }
}

/** Links that lead from one to the next: as many as the kernel follows (path_resolution(7)). */
const mostLinks = 40

/**
 * Why a user other than root and this process's own may change what a path leads to; undefined: none may. Of a path that does not exist
 * yet, the directories above it decide who may create it. Mounts that are read-only here have no writers: kubelet's volumes of ConfigMaps
 * have mode 0777.
 */
export async function doubtOf(path: string): Promise<string | undefined> {
  const self = process.geteuid?.() ?? 0
  const table = mounts()
  let rest = partsOf(resolve(path))
  let at = '/'
  for (let links = 0; ;) {
    const part = await partAt(at)
    if (part === undefined) return undefined
    const doubt = doubtOfPart(part, self, table)
    if (doubt !== undefined) return doubt
    if (part.kind === 'link') {
      links += 1
      if (links > mostLinks) return undefined
      const target = await readlink(at)
      rest = [...partsOf(resolve(dirname(at), target)), ...rest]
      at = '/'
      continue
    }
    const [next, ...later] = rest
    if (next === undefined) return undefined
    at = join(at, next)
    rest = later
  }
}

function doubtOfPart(part: PathPart, self: number, table: ReturnType<typeof mounts>): string | undefined {
  const mount = mountAbove(part.path, table)
  if (mount?.options.includes('ro') === true) return undefined
  // The server of a FUSE file system says what its files hold, and who owns them (fusermount3(1), user_id).
  const server = /^user_id=(\d+)$/.exec(mount?.options.find((option) => option.startsWith('user_id=')) ?? '')?.[1]
  if (server !== undefined && server !== '0' && Number(server) !== self)
    return `user ${server} serves ${part.path} (FUSE)`
  return othersWrite(part, self)
}

function partsOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '')
}

/** undefined: it does not exist, or cannot be looked at, and then holdfast cannot obey it either. */
async function partAt(path: string): Promise<PathPart | undefined> {
  try {
    const status = await lstat(path)
    const kind = status.isFile()
      ? 'file'
      : status.isDirectory()
        ? 'directory'
        : status.isSymbolicLink()
          ? 'link'
          : 'other'
    return { path, kind, uid: status.uid, gid: status.gid, mode: status.mode & 0o7777 }
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return undefined
  }
}
