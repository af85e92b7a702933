import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { endsWithin } from '../../deadline.js'
import { OwnFile } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { DirectoryState } from '../directory-state.js'
import { beside } from '../file-systems.js'
import { directoryStatus, isDirectoryStatus, type DirectoryStatus } from './status-file.js'

/* What the last pass of `sync` found, for `status`: without an agent, no other file says why a directory is not as asked. */

export interface LastPass {
  /** RFC 3339. */
  readonly at: string
  readonly directories: readonly DirectoryStatus[]
}

/** Milliseconds to wait for a disk that does not answer: what a pass has published does not depend on it. */
const patience = 3_000

/** @internal */
export function lastPassFileIn(stateDirectory: string): string {
  return join(stateDirectory, 'last-pass.json')
}

/** Never rejects: an init container may have no place for it. */
export async function recordPass(stateDirectory: string, states: readonly DirectoryState[], log: Log): Promise<void> {
  const file = lastPassFileIn(stateDirectory)
  const pass: LastPass = { at: new Date().toISOString(), directories: states.map(directoryStatus) }
  const writing = beside(stateDirectory, async () => {
    await mkdir(stateDirectory, { recursive: true, mode: 0o700 })
    await new OwnFile(file).replace(`${JSON.stringify(pass)}\n`)
  })
  const written = writing.then(() => undefined, messageOf)
  const problem = (await endsWithin(written, patience)) ? await written : `the disk of ${file} does not answer`
  if (problem !== undefined)
    log.info({ path: file }, `could not record the findings of this pass, so status does not show them: ${problem}`)
}

/** undefined without a readable file: the disk and its records tell the rest. */
export async function readLastPass(stateDirectory: string): Promise<LastPass | undefined> {
  try {
    const { at, directories } = JSON.parse(await readFile(lastPassFileIn(stateDirectory), 'utf8')) as Partial<LastPass>
    if (typeof at !== 'string' || Number.isNaN(Date.parse(at))) return undefined
    return Array.isArray(directories) && directories.every(isDirectoryStatus) ? { at, directories } : undefined
  } catch {
    return undefined
  }
}

/** The pass, unless an agent has reported since. */
export function newerPass(pass: LastPass | undefined, reportedAt: string | undefined): LastPass | undefined {
  if (pass === undefined || reportedAt === undefined) return pass
  return Date.parse(pass.at) > Date.parse(reportedAt) ? pass : undefined
}
