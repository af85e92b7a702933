/** The built program, run in a node's namespaces: its `/etc/kubernetes` is the node's. */
import { executable } from '../crash/syscalls/distribution.js'
import { workingDirectory } from '../e2e/guard.js'
import type { Ended, Space } from './space.js'

/** Path of the program, for Node. */
export const holdfastProgram = executable(workingDirectory)

export function holdfast(space: Space, args: readonly string[], input = ''): Promise<Ended> {
  return space.run(process.execPath, [holdfastProgram, ...args], input)
}
