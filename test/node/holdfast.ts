/** The built program, run in a node's namespaces: what it sees as `/etc/kubernetes` is the node's. */
import { executable } from '../crash/syscalls/distribution.js'
import { workingDirectory } from '../e2e/guard.js'
import type { Ended, Program, Space } from './space.js'

const program = executable(workingDirectory)

export function holdfast(space: Space, args: readonly string[], input = ''): Promise<Ended> {
  return space.run(process.execPath, [program, ...args], input)
}

/** The same, in the background; its output goes to the space's `holdfast.log`. */
export function startHoldfast(space: Space, args: readonly string[]): Program {
  return space.start('holdfast', process.execPath, [program, ...args])
}
