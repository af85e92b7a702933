import { isSystemError, messageOf } from '../../errors.js'
import { unfit, type DurableWriteError } from '../errors.js'
import type { Descriptor } from '../file-system.js'
import { inScope, inTree, readTree, readWhole, type TreeEntry } from '../path/index.js'
import type { StoredRecord } from '../record/index.js'
import type { TargetSnapshot } from './snapshot.js'
import type { Generation } from '../types.js'

/* The bytes of an earlier content, for those who publish it again or compare it. See history.ts. */

export interface EarlierContent {
  readonly entries: readonly TreeEntry[]
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** The earlier contents that a record keeps, as far as they are there: the removal of a copy writes no record. */
export async function generationsOf(
  { fs, parent }: TargetSnapshot,
  { history }: Pick<StoredRecord, 'history'>,
): Promise<Generation[]> {
  if (history === undefined || history.generations.length === 0) return []
  const names = new Set(await fs.list(parent))
  return history.generations.filter(({ name }) => names.has(name))
}

/** Its entries, or why it cannot be read; undefined where it differs from its record: it can then be of any size. */
export async function readEarlier(
  seen: TargetSnapshot,
  { name, digest }: Generation,
): Promise<EarlierContent | Error | undefined> {
  const { fs } = seen
  return inGeneration(seen, name, async (root) => {
    const { entries, digest: found } = await readTree(fs, root, false)
    if (found !== digest) return undefined
    const files = new Map<string, Uint8Array>()
    await inTree(fs, root, async (directories) => {
      for (const { path, type } of entries) {
        if (type !== 'file') continue
        files.set(
          path,
          await directories.useFile(path, async (file) => readWhole(fs, file, (await fs.attributes(file)).size)),
        )
      }
    })
    return { entries, files }
  })
}

/** Works in an earlier content. Answers the system's error, where one keeps it from being read. */
export async function inGeneration<T>(
  { fs, parent, name: target }: TargetSnapshot,
  name: string,
  work: (root: Descriptor) => Promise<T>,
): Promise<T | Error> {
  try {
    return await inScope(fs, async (scope) => {
      const holder = await scope.keep(fs.openDirectory(parent, name))
      return work(await scope.keep(fs.openDirectory(holder, target)))
    })
  } catch (error) {
    if (isSystemError(error)) return error
    throw error
  }
}

export function damaged(target: string, { sequence, name }: Generation, cause?: Error): DurableWriteError {
  const why = cause === undefined ? 'it is not what was published' : `it cannot be read: ${messageOf(cause)}`
  return unfit(`the content ${sequence} of ${target} is damaged: ${why}`, {
    code: 'EBADMSG',
    syscall: 'read',
    path: `${target.slice(0, target.lastIndexOf('/'))}/${name}`,
    advice: `choose another one (holdfast history ${target})`,
    cause,
  })
}

export function noneEarlier(target: string, problem: string): DurableWriteError {
  return unfit(problem, {
    code: 'ENOENT',
    syscall: 'open',
    path: target,
    advice: `holdfast history ${target} lists what there is; history: N in the configuration keeps more`,
  })
}
