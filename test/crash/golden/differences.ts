/** In which answers a later build may differ from the one that left the disks: each with the reason, and gone once the disks have its answers. */
import type { Answer, GoldenDisk } from './disk.js'

export interface Difference {
  readonly why: string
  /** What this build answers where the other one has answered so. The same answer where the difference has nothing to do with it. */
  readonly now: (answer: Answer, disk: GoldenDisk) => Answer
}

export const differences: readonly Difference[] = [
  {
    why: 'status names rollouts that are not over',
    now: (answer) => ({
      ...answer,
      said: answer.said.replace(/("consumers": \[\])(\n\}\n?)$/, '$1,\n  "rollouts": []$2'),
    }),
  },
]
