/** A program of a user of the package: the compiler checks it under each way of resolving modules. */
import {
  DurableWriteError,
  replaceDirectories,
  replaceDirectory,
  replaceFile,
  type FileContent,
  type ReplaceDirectoryOptions,
  type ReplaceResult,
} from 'holdfast'

const files: Record<string, FileContent> = { 'tls.crt': 'certificate', 'tls.key': new Uint8Array(1) }
const options: ReplaceDirectoryOptions = { files, mode: 0o755, fileMode: 0o600 }

export async function publish(target: string): Promise<ReplaceResult['outcome']> {
  try {
    await replaceFile(`${target}.yaml`, 'content')
    await replaceDirectories([{ target: `${target}-other`, files }])
    // @ts-expect-error -- what stands in the place of a target is a path
    await replaceDirectory(1, options)
    return (await replaceDirectory(target, options)).outcome
  } catch (error) {
    if (error instanceof DurableWriteError && error.published) console.error(error.message)
    throw error
  }
}
