/** In which answers a later build may differ from the one that left the disks: each with the reason, and gone once the disks have its answers. */
import type { Answer, GoldenDisk } from './disk.js'

export interface Difference {
  readonly why: string
  /** What this build answers where the other one has answered so. The same answer where the difference has nothing to do with it. */
  readonly now: (answer: Answer, disk: GoldenDisk) => Answer
}

const left = String.raw`\.\.(?:\d+-…|data_tmp)`

/** A target of links holds what a killed publication left inside, and where it has nothing else, it is as it was published. */
function withoutLeftInside({ asked, code, said, changed }: Answer): Answer {
  const now = said
    .replace(new RegExp(`\\n *\\{\\n *"path": "${left}",\\n *"problem": "unexpected"\\n *\\},?`, 'g'), '')
    .replace(new RegExp(`\\n *"${left} was not published",?`, 'g'), '')
    .replace(/\[\n *\]/g, '[]')
    .replace(new RegExp(`${left} was not published, `, 'g'), '')
    .replace(new RegExp(`^.* WARN .*: ${left} was not published\\n`, 'gm'), '')
    .replace(
      new RegExp(`DriftRepaired (\\S+) is repaired; on the disk these differed: ${left} was not published`, 'g'),
      'Published $1 is replaced, and durable',
    )
    .replace(
      new RegExp(
        `"False",(\\n *"reason": )"SourceUnavailable",(\\n *"message": ")[^"]*: ${left} was not published"`,
        'g',
      ),
      '"True",$1"Published",$2the disk holds the content that was published last"',
    )
    .replace(/"state": "differs"(,[^}[]*"differences": \[\],\n *"details": \[\])/g, '"state": "ok"$1')
  const isOk = now !== said && !/"state": "(?!ok")/.test(now)
  return { asked, code: code === 4 && isOk ? 0 : code, said: now, changed }
}

export const differences: readonly Difference[] = [
  { why: 'what a publication has left inside a target of links is no drift', now: withoutLeftInside },
  {
    why: 'status names rollouts that are not over',
    now: (answer) => ({
      ...answer,
      said: answer.said.replace(/("consumers": \[\])(\n\}\n?)$/, '$1,\n  "rollouts": []$2'),
    }),
  },
]
