/* The authorities and credentials of a probe: each try reads the files again, for another program may renew them. */
import { codeOf, messageOf } from '../../errors.js'
import { readRegularFile } from '../../regular-file.js'
import { authorityCodes, authorityProblem } from '../../x509/authorities.js'

/** All files as they are, or as a rollout finds or makes them. */
export interface FileVersion {
  /** @throws UnfitProbeFile */
  readonly read: (path: string) => Promise<Buffer>
  /** A file that was read has come from elsewhere than from its place on the disk. */
  readonly hasOwn: boolean
}

/** The files as the disk holds them now. */
export const presentVersion: FileVersion = { read: (path) => readProbeFile(path), hasOwn: false }

/** The versions that count, in this order. The first one must hold what a probe needs. */
export class ProbeFiles {
  constructor(readonly versions: readonly [FileVersion, ...FileVersion[]]) {}

  /** The contents of a file, each once. @throws UnfitProbeFile */
  async read(path: string): Promise<readonly Buffer[]> {
    const [first, ...others] = this.versions
    const contents = [await first.read(path).catch(unreadable(path))]
    for (const other of others) {
      const content = await other.read(path).catch(() => undefined)
      if (content && !contents.some((known) => known.equals(content))) contents.push(content)
    }
    return contents
  }
}

/** The disk's files alone. */
export const presentFiles = new ProbeFiles([presentVersion])

/** Kubeconfigs with inline data of many clusters reach some hundred KiB. */
const largest = 8 * 1024 * 1024

/** A file that a probe needs cannot be read, or holds something else. It has no code: it is none of a connection. */
export class UnfitProbeFile extends Error {
  readonly advice = 'name a file that is there, and holds this'
}

/** @throws UnfitProbeFile */
export async function readProbeFile(path: string): Promise<Buffer> {
  return readRegularFile(path, largest).catch(unreadable(path))
}

function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof UnfitProbeFile) throw error
    throw new UnfitProbeFile(`could not read ${path}: ${codeOf(error) ?? messageOf(error)}`)
  }
}

/** All authorities to trust, in PEM; undefined for those of the system. @throws UnfitProbeFile where the file holds none now */
export async function readAuthorities(files: ProbeFiles, path: string | null): Promise<string | undefined> {
  if (path === null) return undefined
  const [present, ...others] = await files.read(path)
  const problem = authorityProblem(String(present ?? ''))
  if (problem !== undefined) throw new UnfitProbeFile(`${path} ${problem}`)
  return [present, ...others].join('\n')
}

/**
 * Why no try reaches the server: no trusted authority has signed its certificate, that is for another name, or the resolver says that
 * there is no such host. A resolver that does not answer (EAI_AGAIN) says nothing.
 */
export function serverFault(error: unknown): 'authority' | 'name' | 'host' | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = codeOf(at) ?? ''
    if (authorityCodes.has(code)) return 'authority'
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'name'
    if (code === 'ENOTFOUND') return 'host'
  }
  return undefined
}
