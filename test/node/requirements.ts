/** The requirements of a machine that becomes a node. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { workingDirectory } from '../e2e/guard.js'
import { haveCgroups } from './cgroups.js'
import { Space } from './space.js'

/** Why this machine leaves these tests out, in one line; undefined where they can run. */
export async function unfit(): Promise<string | undefined> {
  const missing = await missingForNode()
  return missing && `left out: the node tests need ${missing}`
}

/** The first thing that this machine lacks to be a node; undefined where it can be one. */
export async function missingForNode(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'root'
  for (const program of ['containerd', 'ctr', 'runc', 'unshare', 'nsenter']) {
    if (!(await answers(program))) return `${program} (Debian: containerd runc util-linux)`
  }
  if (!haveCgroups()) return 'control groups with cpu, cpuset, memory and pids'
  const directory = mkdtempSync(join(workingDirectory, 'fit-'))
  try {
    await (await Space.create(directory)).end()
    return undefined
  } catch {
    const why = readFileSync(join(directory, 'space.log'), 'utf8').trim().replaceAll('\n', '; ')
    return `namespaces and overlay mounts of their own: ${why}`
  }
}

async function answers(program: string): Promise<boolean> {
  try {
    await promisify(execFile)(program, ['--version'])
    return true
  } catch {
    return false
  }
}
