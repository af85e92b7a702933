/** The report of the agent on a node about its directories, from the file that it keeps on the node's disk. */
import { readFileSync } from 'node:fs'
import type { Space } from './space.js'

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export function conditionOf(space: Space, directory: string, type: string): Condition | undefined {
  const { directories } = JSON.parse(readFileSync(space.onDisk('/var/lib/holdfast/status.json'), 'utf8')) as {
    directories: { path: string; conditions: Condition[] }[]
  }
  return directories.find(({ path }) => path === directory)?.conditions.find((condition) => condition.type === type)
}
