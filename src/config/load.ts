import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { parseConfiguration, type ConfigurationOptions } from './parse.js'
import { ConfigurationError } from './problem.js'
import type { AgentConfiguration } from './types.js'

/** Bytes; more is no configuration, whatever it is. */
const maximumSize = 4 * 1024 * 1024

/** Reads and parses a configuration file. Throws ConfigurationError for whatever is wrong with the file or in it. */
export async function loadConfiguration(file: string, options: ConfigurationOptions = {}): Promise<AgentConfiguration> {
  return parseConfiguration(await readText(file), file, options)
}

async function readText(file: string): Promise<string> {
  let bytes: Buffer
  try {
    // Without O_NONBLOCK, opening a FIFO that was named by mistake would wait for ever.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const status = await handle.stat()
      if (!status.isFile()) throw unreadable(file, 'is not a regular file')
      if (status.size > maximumSize) throw unreadable(file, `is larger than ${maximumSize} bytes`)
      bytes = await handle.readFile()
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    throw unreadable(file, `cannot be read (${errorCode(error)})`, advice[errorCode(error)])
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable(file, 'is not UTF-8 text')
  }
}

const advice: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EMFILE: 'raise the limit of open files (ulimit -n)',
  EACCES: 'give this user permission to read it',
  ELOOP: 'its symbolic links lead in a circle',
}

function unreadable(file: string, message: string, suggestion?: string): ConfigurationError {
  const problem = { file, line: 0, column: 0, place: '', message }
  return new ConfigurationError([suggestion === undefined ? problem : { ...problem, suggestion }])
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}
