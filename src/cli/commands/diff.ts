import { objectName } from '../../message-text.js'
import { formatMode } from '../../config/mode.js'
import type { EntryChange } from '../../directories/compare.js'
import type { TargetContent } from '../../durable/look/index.js'
import { askSource, type Asked } from '../content/ask-source.js'
import { painter, wantsColour } from '../output/colour.js'
import { diffText, type ShownDiff, type ShownSide } from '../output/diff-text.js'
import { Exit, exitCodes } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { print } from '../output/print.js'
import { parseSequence } from '../words/option-values.js'
import { interruptible } from '../signals.js'
import { targetArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { reportFlags, sourceFlags, configFlag, timeoutFlag } from '../words/options.js'

const flags = [
  flag('--from <sequence>', 'which content; without it, what is on the disk', { parse: parseSequence }),
  flag('--to <sequence>', 'which content, or desired: what the source says; with --from, what is there', {
    parse: parseTo,
  }),
  flag('--show-text', 'with the lines of files that come from ConfigMaps'),
  configFlag,
  timeoutFlag('how long to wait for the source', 60_000, '60s'),
  ...sourceFlags,
  ...reportFlags,
]

type DiffFlags = FlagsOf<typeof flags>

/** `holdfast diff PATH` */
export const diffCommand = command({
  name: 'diff',
  summary: 'compare what a directory holds, held, and must hold',
  description: `Compares what is at PATH with what the source says that it must hold, as "sync" would publish it: names, modes, owners, sizes, whether
contents are the same, and what has become of certificates. With --from, compares an earlier content (see "holdfast history PATH")
with what is there; with --to, what is there with an earlier one.

It takes no lock and writes nothing. It shows no byte of a Secret, and no digest of one. With --show-text it shows which lines of a
file have changed, where ConfigMaps alone have given them.`,
  words: [['<path>', 'a directory of the configuration; with --from or --to a number, any that has a history']],
  flags,
  examples: `  holdfast diff /etc/kubernetes/certs --config /etc/holdfast.yaml
  holdfast diff /etc/kubernetes/certs --from 6
  holdfast diff /etc/kubernetes/certs --from 5 --to 6 -o json
  holdfast diff /etc/kubernetes/certs --from 6 --to desired --config /etc/holdfast.yaml --show-text`,
  exitCodes: `0 no difference, 1 not compared (the source does not answer, or there is no such content), 2 wrong usage or
configuration, 4 they differ.`,
  run: ({ io, options }, path) => runDiff(io, path, options),
})

const otherwise = 'to compare what it held, use --from and --to with numbers'

async function runDiff(io: Io, path: string, options: DiffFlags): Promise<void> {
  const target = await targetArgument(path)
  const to = options.to ?? (options.from === undefined ? 'desired' : 'disk')
  const [{ disableCoreDumps, history }, { compareContents }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../directories/compare.js'),
  ])
  disableCoreDumps()
  const shown = await interruptible(io, async (signal): Promise<ShownDiff> => {
    const asked =
      to === 'desired' ? await askSource(target, { io, options, signal, otherwise, asPerson: true }) : undefined
    const present = await history.content(target)
    const newer = asked && (await desiredContent(asked, present))
    const side = (which: number | 'disk') => (which === 'disk' ? present : history.content(target, which))
    const before = await side(options.from ?? 'disk')
    const after = newer?.content ?? (await side(to === 'desired' ? 'disk' : to))
    const entries = compareContents(before, after, options.showText === true)
    const isThere = options.from === undefined || to === 'disk'
    return {
      path: target,
      equal: entries.every(({ change }) => change === 'same') && (!isThere || present.brokenForm === undefined),
      from: shownSide(options.from === undefined ? 'disk' : 'sequence', before),
      to: shownSide(to === 'desired' || to === 'disk' ? to : 'sequence', after),
      notes: [...(await notesOf(target, present)), ...(newer?.notes ?? [])],
      entries: entries.map(shownEntry),
    }
  })
  await print(io.stdout, options.output, shown, () => diffText(shown, painter(wantsColour(io.stdout, io.env))))
  if (!shown.equal) throw new Exit(exitCodes.fault)
}

async function desiredContent(
  { request, kept }: Asked,
  present: TargetContent,
): Promise<{ content: TargetContent; notes: string[] }> {
  const { desiredEntries } = await import('../../durable/index.js')
  const files = new Map(Object.entries(request.files))
  const entries = (await desiredEntries(request, present.entries)).map((entry) => {
    const content = contentBytes(files.get(entry.path))
    const asRecorded = !kept.some(({ paths, combined = [] }) => [...paths, ...combined].includes(entry.path))
    return { ...entry, asRecorded, ...(content && { content, size: content.length }) }
  })
  const notes = kept.map(
    (object) => `${objectName(object)} is gone, or is being deleted: what is published of it stays`,
  )
  return { content: { entries, objects: request.objects ?? [] }, notes }
}

function contentBytes(file: unknown): Uint8Array | undefined {
  const content: unknown = file instanceof Uint8Array ? file : Reflect.get(Object(file), 'content')
  return content instanceof Uint8Array ? content : undefined
}

/** An operator has a say in whether it becomes so; and there is more to a symlink directory than its content. */
async function notesOf(target: string, { hold, pin, brokenForm }: TargetContent): Promise<string[]> {
  const { describeOrders } = await import('../../durable/index.js')
  const broken = brokenForm?.map(({ path, problem }) => `${problem} ${path}`).join(', ')
  return [
    ...describeOrders(target, { hold, pin }),
    ...(broken === undefined ? [] : [`what consumers of ${target} go through is not as it was published: ${broken}`]),
  ]
}

function shownSide(what: ShownSide['what'], { sequence, publishedAt, objects }: TargetContent): ShownSide {
  return {
    what,
    sequence: sequence ?? null,
    publishedAt: publishedAt?.toISOString() ?? null,
    objects: objects.map(({ kind, namespace, name, uid, resourceVersion }) => ({
      kind,
      namespace,
      name,
      uid,
      resourceVersion,
    })),
  }
}

function shownEntry(entry: EntryChange): ShownDiff['entries'][number] {
  const facts = (side: EntryChange['from']) => side && { ...side, mode: formatMode(side.mode) }
  return { ...entry, from: facts(entry.from), to: facts(entry.to) }
}

function parseTo(text: string): number | 'desired' {
  return text === 'desired' ? text : parseSequence(text)
}
