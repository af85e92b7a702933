import type { PastContent } from '../../durable/types.js'
import { print } from '../output/print.js'
import { objectText, shortDigest, table } from '../output/table.js'
import { targetArgument } from '../words/target.js'
import { command } from '../words/command.js'
import { reportFlags, headersFlag } from '../words/options.js'

const flags = [headersFlag, ...reportFlags]

/** `holdfast history PATH` */
export const historyCommand = command({
  name: 'history',
  summary: "show a directory's earlier contents",
  description: `Lists what PATH holds and what it held before, newest first: the earlier contents that "history: N" keeps beside it. Each is compared
with the digest of what was published; one that is damaged is never published again.`,
  words: [['<path>', 'a directory or file that holdfast has published']],
  flags,
  examples: `  holdfast history /etc/kubernetes/certs
  holdfast history /etc/kubernetes/certs -o json`,
  exitCodes: `0 shown, 1 nothing is published there, or it cannot be read, 2 wrong usage.`,
  run: async ({ io: { stdout }, options }, target) => {
    const path = await targetArgument(target)
    const { history } = await import('../../durable/index.js')
    const contents = await history.read(path)
    if (contents === undefined) {
      throw new Error(`holdfast has published nothing at ${path}: there is no record beside it`)
    }
    await print(stdout, options.output, { path, contents: contents.map(shown) }, (wide) =>
      table([
        ...(options.headers ? [['SEQUENCE', 'PUBLISHED', 'REPLACED', 'WHY', 'STATE', 'DIGEST', 'OBJECTS']] : []),
        ...contents.map((content) => generationRow(content, wide)),
      ]),
    )
  },
})

/** The reasons in people's words; the words of the JSON are those of the record. */
const causes = {
  published: 'published',
  driftRepaired: 'drift repaired',
  rolledBack: 'rolled back',
  adopted: 'adopted',
} as const satisfies Record<PastContent['why'], string>

function generationRow(content: PastContent, wide: boolean): string[] {
  const { sequence, publishedAt, replacedAt, why, state, problem, digest, objects } = content
  return [
    String(sequence),
    // The record does not tell when another program put it there.
    sequence === 0 ? '-' : publishedAt.toISOString(),
    replacedAt?.toISOString() ?? '-',
    causes[why],
    problem === undefined ? state : `${state}: ${problem}`,
    wide ? digest : shortDigest(digest),
    objects.length === 0 ? '-' : objects.map(objectText).join(', '),
  ]
}

function shown({ publishedAt, replacedAt, problem, objects, ...content }: PastContent) {
  return {
    ...content,
    publishedAt: content.sequence === 0 ? null : publishedAt.toISOString(),
    replacedAt: replacedAt?.toISOString() ?? null,
    problem: problem ?? null,
    objects: objects.map(({ kind, namespace, name, uid, resourceVersion }) => ({
      kind,
      namespace,
      name,
      uid,
      resourceVersion,
    })),
  }
}
