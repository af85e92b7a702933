import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeYaml, notText } from '../../yaml/decode.js'
import { parseDocuments } from './documents.js'
import { FileError, fileError } from './error.js'
import { type Stamp, stampFrom, versionOf } from './directory-scan.js'
import { type FileObject, type ReadingContext, readObjects } from './objects.js'

/** Bytes of one file: room for a List of several objects of the size that Kubernetes allows, in base64. */
const maximumFileSize = 16 * 1024 * 1024

/**
 * The objects of one file.
 * @returns undefined if the file is not, or no longer, in the state of the stamp: it is being written
 * @throws FileError
 */
export async function readObjectFile(
  directory: string,
  name: string,
  stamp: Stamp,
  context: Omit<ReadingContext, 'version'>,
): Promise<FileObject[] | undefined> {
  if (stamp.size > maximumFileSize) {
    throw new FileError(`${name}: holds ${stamp.size} bytes; at most ${maximumFileSize} are allowed`)
  }
  const bytes = await readStamped(join(directory, name), stamp).catch((error: unknown) => {
    throw fileError(name, error)
  })
  if (bytes === undefined) return undefined
  const text = decodeYaml(bytes)
  if (text === undefined) throw new FileError(`${name}: ${notText}`)
  // A file that a power cut has left, or that is about to be written.
  if (text.trim() === '') throw new FileError(`${name}: it is empty`)
  const documents = await parseDocuments(name, text)
  const version = versionOf(name, stamp)
  return documents.flatMap((document) => readObjects(document, { ...context, version }))
}

async function readStamped(path: string, stamp: Stamp): Promise<Buffer | undefined> {
  // A pipe of that name would block without it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const matches = async () => stampFrom(await file.stat({ bigint: true })).id === stamp.id
    if (!(await matches())) return undefined
    const bytes = Buffer.alloc(stamp.size)
    let length = 0
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length)
      if (bytesRead === 0) return undefined
      length += bytesRead
    }
    return (await matches()) ? bytes : undefined
  } finally {
    await file.close()
  }
}
