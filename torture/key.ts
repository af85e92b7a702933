import { randomBytes } from 'node:crypto'
import { open, stat, unlink } from 'node:fs/promises'
import { codeOf, messageOf } from '../src/errors.js'
import { readRegularFile, UnfitFileError } from '../src/regular-file.js'

/** Bytes of a generated key, and the fewest characters of a given one. */
const keyBytes = 32
const fewestCharacters = 32
const mostBytes = 4096

/** The key's file is unfit for use. The message names the file, and never its content. */
class UnfitKey extends Error {
  override readonly name = 'UnfitKey'
  readonly invalid = 'argument'
}

/**
 * The key that node and witness share, without white space around it.
 * @throws UnfitKey where it is not there, others may read it, or it holds too little
 * @throws the errno of open(2) or read(2)
 */
export async function readWitnessKey(path: string): Promise<Buffer> {
  const { mode } = await stat(path).catch((error: unknown) => {
    const problem = codeOf(error) ?? messageOf(error)
    throw new UnfitKey(`cannot find the key file ${path}: ${problem}; copy it from the witness`)
  })
  if ((mode & 0o077) !== 0) {
    throw new UnfitKey(`${path} has mode 0${(mode & 0o777).toString(8)}: others may read the key; chmod 0600 it`)
  }
  const text = await readRegularFile(path, mostBytes).catch((error: unknown) => {
    throw error instanceof UnfitFileError ? new UnfitKey(`${error.message}: it is no key file`) : error
  })
  if (text.length === 0) throw new UnfitKey(`${path} is empty: remove it, and the witness makes a new one`)
  const key = text.toString('latin1').trim()
  if (key.length < fewestCharacters) {
    throw new UnfitKey(
      `${path} holds ${key.length} characters: a key has at least ${fewestCharacters}, as "openssl rand -hex 32" prints them`,
    )
  }
  return Buffer.from(key, 'latin1')
}

/** The key in this file, or a new one where there is no such file: mode 0600. */
export async function readOrMakeKey(path: string): Promise<Buffer> {
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(`${randomBytes(keyBytes).toString('hex')}\n`)
      await file.sync()
    } catch (error) {
      await unlink(path).catch(() => undefined)
      throw error
    } finally {
      await file.close()
    }
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
  return readWitnessKey(path)
}
