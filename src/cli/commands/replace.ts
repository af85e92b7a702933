import type { Io } from '../output/io.js'
import { findAttributes, ownOwner, warnOfChanges } from '../content/attributes.js'
import { findPublishedSource, type PublishedSource, takesLinks } from '../content/published-source.js'
import { ProgressLine, Reading } from '../output/progress.js'
import type { FoundTree } from '../content/read-tree.js'
import type { DirectoryPlanResult, DirectoryPublicationOptions, FileBelow } from '../../durable/publish/index.js'
import type { FileSystem } from '../../durable/file-system.js'
import type { ReplaceDirectoryOptions, ReplaceResult } from '../../durable/types.js'
import { createLogger } from '../output/logger.js'
import { parseDirectoryMode, parseFileMode } from '../words/option-values.js'
import { printPublished, rolloutBeside, targetArgument } from '../words/target.js'
import { UsageError } from '../words/exit-codes.js'
import { interruptible } from '../signals.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { ownerFlag, keepAttributesFlag, publishingFlags, publicationOptions } from '../words/options.js'

const flags = [
  // Not commander's requiredOption, which would hide a misspelt flag behind this one.
  flag('--from <dir>', 'the directory that holds the new content'),
  flag('--mode <mode>', 'mode of TARGET and of the directories in it', {
    parse: parseDirectoryMode,
    fallback: 0o755,
    shown: '0755',
  }),
  flag('--file-mode <mode>', 'mode of files', { parse: parseFileMode, fallback: 0o600, shown: '0600' }),
  ownerFlag,
  keepAttributesFlag(['mode', 'fileMode']),
  flag('--replace-foreign', 'replace what holdfast did not publish, too, with all that DIR does not hold'),
  ...publishingFlags,
]

type ReplaceFlags = FlagsOf<typeof flags>

/** `holdfast replace TARGET --from DIR` */
export const replaceCommand = command({
  name: 'replace',
  summary: "publish a directory's content as TARGET, intact and durable",
  description: `Publishes the content of a directory as TARGET: whoever opens TARGET sees all of the old content or all of the new, and
when this command ends with 0, the new content survives a power cut at any later instant.

holdfast copies DIR and never changes it: at most 10,000 files, of any size; a file that another program changes meanwhile is refused. It may hold files and directories of files; holdfast refuses symbolic links, sockets,
devices and empty directories. It does not copy modes and owners: --mode, --file-mode and --owner set them, or --keep-attributes keeps
those of TARGET. What TARGET holds and DIR does not is gone afterwards; where holdfast did not publish TARGET, only with --replace-foreign. Without --file-mode, a file that is executable in DIR is executable in TARGET for those who may read it.

Where holdfast itself has published DIR, TARGET gets its modes and its owner, unless these flags say otherwise, and a TARGET that is
not there yet gets its form: so a directory is moved by hand. "holdfast remove DIR" takes the old one away once nobody uses it.`,
  words: [['<target>', 'the directory to replace, or to create']],
  flags,
  examples: `  holdfast replace /etc/kubernetes/certs --from ./certs
  holdfast replace /etc/haproxy/tls --from ./new --mode 0750 --file-mode 0640 --owner 0:99
  holdfast replace /etc/kubernetes/certs --from ./certs -o json
  holdfast replace /etc/kubernetes/certs --from ./certs --dry-run`,
  exitCodes: `0 published or already so, 1 not published (TARGET is as it was), 2 wrong usage, 3 published but not known
to be durable, 75 another process holds TARGET's lock.`,
  run: async ({ io, options, named }, target) => {
    const { from } = options
    if (from === undefined) throw new UsageError('--from DIR is missing: name the directory that holds the new content')
    const result = await interruptible(io, async (signal) => {
      const path = await targetArgument(target)
      const rollout = await rolloutBeside(path, options.force)
      await rollout?.()
      const { withTree, refuseInside } = await import('../content/read-tree.js')
      refuseInside(from, path)
      const { AtOnceFileSystem, disableCoreDumps } = await import('../../durable/publishing.js')
      disableCoreDumps()
      const own = await findPublishedSource(from)
      // This process has nothing else to do.
      const fs = new AtOnceFileSystem()
      return withTree(from, fs, signal, (tree) => publishTree(path, tree, { io, named, options, signal, own, fs }))
    })
    await printPublished(io, result, options)
  },
})

interface ReplaceContext {
  readonly io: Io
  readonly named: ReadonlyMap<string, string>
  readonly options: ReplaceFlags
  readonly signal: AbortSignal
  /** Where holdfast itself has published what this copies. */
  readonly own: PublishedSource | undefined
  readonly fs: FileSystem
}

async function publishTree(
  path: string,
  tree: FoundTree,
  { io, named, options, signal, own, fs }: ReplaceContext,
): Promise<ReplaceResult | DirectoryPlanResult> {
  const { planDirectory, refuseKeptByAgent, replaceDirectory } = await import('../../durable/publishing.js')
  const found = await findAttributes(path, Object.keys(tree.files))
  const fileModeNamed = named.has('fileMode')
  const modeOf = async ({ path: at, mode }: FoundTree['files'][string]): Promise<number> => {
    if (fileModeNamed) return options.fileMode
    return own ? own.modeOf(at, mode) : withExecution(options.fileMode, mode)
  }
  const entries = Object.entries(tree.files).map(async ([name, file]) => {
    const content: FileBelow = { path: file.path, below: { root: tree.root, from: name } }
    return [name, { content, mode: await modeOf(file) }] as const
  })
  const files = Object.fromEntries(await Promise.all(entries))
  const mode = own && !named.has('mode') ? own.mode : options.mode
  const owner = options.owner ?? own?.owner
  const log = createLogger(io, options)
  const reading = new Reading(tree.bytes)
  const request: DirectoryPublicationOptions & ReplaceDirectoryOptions = {
    files,
    mode,
    owner,
    ...(own?.form === 'symlink' && takesLinks(path) && { publish: own.form }),
    ...publicationOptions(options),
    ...(options.force !== true && { confirm: (found) => refuseKeptByAgent(path, found) }),
    foreign: options.replaceForeign === true ? 'always' : 'same-names',
    // `replace` publishes here for its own sake, so it takes a move back.
    movedTo: null,
    progress: reading.add,
    signal,
    log,
  }
  const result = await new ProgressLine(io.stderr).during<ReplaceResult | DirectoryPlanResult>(reading.describe, () =>
    options.dryRun === true ? planDirectory({ ...request, target: path }, true) : replaceDirectory(path, request, fs),
  )
  if (options.keepAttributes === true) return result
  warnOfChanges(log, result, found, {
    mode: named.has('mode') ? undefined : mode,
    fileMode: (name) => (fileModeNamed ? undefined : files[name]?.mode),
    owner: options.owner ? undefined : (owner ?? ownOwner()),
  })
  return result
}

/** Adds the right to execute for all that may read, where the source has an execute bit at all. */
function withExecution(mode: number, source: number): number {
  return (source & 0o111) === 0 ? mode : mode | ((mode & 0o444) >> 2)
}
