import * as fs from 'node:fs'
import { decodeName } from './file-names.js'
import type { Entry, EntryType } from './file-system.js'
import { call } from './node-calls.js'

/** Names come as Latin-1, one character for each byte: most are ASCII, and need no buffer to be decoded from. */
const encoding = 'latin1'

/** The names in a directory. */
export async function listNames(path: () => string, directory: string): Promise<string[]> {
  const names = await call<string[]>(path, (done) => fs.readdir(directory, { encoding }, done))
  return names.map(decoded)
}

/** The names in a directory with what they are, as the directory itself tells, else by lstat(2). */
export async function listEntries(path: () => string, directory: string): Promise<Entry[]> {
  const entries = await call<fs.Dirent[]>(path, (done) =>
    fs.readdir(directory, { encoding, withFileTypes: true }, done),
  )
  return entries.map((entry) => ({ name: decoded(entry.name), type: typeOf(entry) }))
}

function typeOf(entry: fs.Dirent): EntryType {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'symlink' : 'other'
}

const ascii = /^[ -~]*$/

function decoded(bytes: string): string {
  return ascii.test(bytes) ? bytes : decodeName(Buffer.from(bytes, 'latin1'))
}
