/** Asks the build beside this module, in a process with a root of its own. */
import { join } from 'node:path'
import { own } from './ask.js'
import type { Answer, GoldenDisk } from './disk.js'
import { inOwnRoot } from './own-root.js'

/** Answers by disk, of disks that stand in this file. */
export async function asked(file: string, disks: readonly GoldenDisk[]): Promise<Answer[][]> {
  const names = disks.flatMap(({ entries }) => entries.map(({ path }) => path.split('/')[0] ?? ''))
  const program = join(import.meta.dirname, 'ask-program.js')
  return JSON.parse(await inOwnRoot([...new Set([...names, own])], program, [file])) as Answer[][]
}
