import { barrier, type TargetNames } from '../path/index.js'
import { type DurableWriteError, foreign } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { isAt } from './visible-rename.js'

/*
 * An exchange must take out the directory that the publication has read: otherwise another program has put its own there meanwhile, and
 * gets it back.
 */

/** An exchange that made staged content visible. */
interface Exchange {
  readonly fs: FileSystem
  readonly directory: Descriptor
  readonly name: string
  /** Of the target, for people. */
  readonly path: string
  readonly names: TargetNames
  /** Of the staging name, which what came out has now. */
  readonly random: string
  readonly staged: Attributes
}

/** What became of another program's content that came out. */
interface Foreign {
  readonly error: DurableWriteError
  /** The staged content is still visible. */
  readonly published: boolean
  /** The caller must delete nothing. */
  readonly keep: boolean
}

/** undefined: `old` came out. */
export async function giveBackForeign(exchange: Exchange, old: Attributes): Promise<Foreign | undefined> {
  const { fs, directory, name, path, names, random, staged } = exchange
  const staging = names.staging(random)
  const out = await fs.look(directory, staging)
  if (out?.inode === old.inode && out.device === old.device && out.type === old.type) return undefined
  let published = true
  let failure: Error | undefined
  if (out !== undefined) {
    await fs.rename(directory, staging, directory, name, 'exchange')
    published = !(await isAt(fs, directory, staging, staged))
    // A power cut can leave the first exchange without the second. So sync before the staged content goes: else the target could come back
    // half deleted, with a foreign directory under a staging name.
    if (!published) failure = await syncDirectory(fs, directory)
  }
  const keep = published || failure !== undefined
  return { error: errorFor(path, staging, names.quarantine(random), published, failure), published, keep }
}

async function syncDirectory(fs: FileSystem, directory: Descriptor): Promise<Error | undefined> {
  const owner = 'the target'
  return (await barrier(fs, [{ descriptor: directory, type: 'directory', owners: [owner] }])).get(owner)
}

/** `quarantine`: the name that the next run gives to foreign content under the staging name. */
function errorFor(
  path: string,
  staging: string,
  quarantine: string,
  published: boolean,
  failure: Error | undefined,
): DurableWriteError {
  const back = 'holdfast put its content back'
  const unsure =
    failure &&
    `${back}, but this may not survive a power cut (${failure.message}): if the new content is there after one, that ` +
      `program's content is ${staging} beside the target, and ${quarantine} after the next run; holdfast deleted nothing`
  const state = published
    ? `what it put there is now ${staging} beside the target, and ${quarantine} after the next run; holdfast deleted nothing`
    : (unsure ?? back)
  return foreign(`another program replaced ${path} meanwhile`, path, { published, state })
}
