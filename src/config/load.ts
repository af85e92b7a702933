import { isAbsolute } from 'node:path'
import { codeOf } from '../errors.js'
import { readRegularFile, UnfitFileError } from '../regular-file.js'
import { parseConfiguration, type ConfigurationOptions } from './parse.js'
import { ConfigurationError } from './problem.js'
import type { AgentConfiguration } from './types.js'

/** Bytes; no configuration is as large as this. */
const maximumSize = 4 * 1024 * 1024

/** Reads and parses a configuration file. Throws ConfigurationError for every fault of the file and of its content. */
export async function loadConfiguration(file: string, options: ConfigurationOptions = {}): Promise<AgentConfiguration> {
  return parseConfiguration(await readText(file), file, options)
}

/** The same of a stream, which messages call `name`; relative paths begin at the working directory. */
export async function readConfiguration(
  stream: AsyncIterable<Uint8Array>,
  name: string,
  options: ConfigurationOptions = {},
): Promise<AgentConfiguration> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > maximumSize) throw unreadable(name, `is larger than ${maximumSize} bytes`)
    chunks.push(chunk)
  }
  return parseConfiguration(decoded(Buffer.concat(chunks), name), name, options)
}

async function readText(file: string): Promise<string> {
  const bytes = await readRegularFile(file, maximumSize).catch((error: unknown) => {
    if (error instanceof UnfitFileError) throw unreadable(file, error.problem)
    const code = codeOf(error) ?? 'unknown'
    if (code === 'ENOENT' && hasNoBase(file)) {
      throw unreadable(file, 'cannot be read (ENOENT)', 'the working directory was removed: name an absolute path')
    }
    throw unreadable(file, `cannot be read (${code})`, advice[code])
  })
  return decoded(bytes, file)
}

function decoded(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable(file, 'is not UTF-8 text')
  }
}

/** Whether a path is relative to a working directory that was removed. */
function hasNoBase(file: string): boolean {
  if (isAbsolute(file)) return false
  try {
    process.cwd()
    return false
  } catch {
    return true
  }
}

const advice: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EMFILE: 'raise the limit of open files (ulimit -n)',
  EACCES: 'give this user permission to read it',
  ELOOP: 'its symbolic links form a loop',
}

function unreadable(file: string, message: string, suggestion?: string): ConfigurationError {
  const problem = { file, line: 0, column: 0, place: '', message }
  return new ConfigurationError([suggestion === undefined ? problem : { ...problem, suggestion }])
}
