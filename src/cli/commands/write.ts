import { Command, Option } from '../words/option.js'
import { findAttributes, ownOwner, warnOfChanges } from '../content/attributes.js'
import { contentOf, type ContentChecks, type ContentInput, throwReason } from '../content/content.js'
import { contentKinds } from '../content/content-kinds.js'
import type { DirectoryPlanResult } from '../../durable/publish/index.js'
import type { Confirmed, ReplaceResult } from '../../durable/types.js'
import type { Io } from '../output/io.js'
import { parseDigest } from '../words/option-values.js'
import {
  fileModeOption,
  keepAttributesOption,
  isNamed,
  ownerOption,
  publicationOptions,
  type PublishingFlags,
  publishingOptions,
} from '../words/options.js'
import { UsageError } from '../words/exit-codes.js'
import { ProgressLine, Reading } from '../output/progress.js'
import { createLogger } from '../output/logger.js'
import { interruptible } from '../signals.js'
import { printPublished, rolloutBeside, targetArgument } from '../words/target.js'

interface WriteFlags extends PublishingFlags, ContentChecks {
  readonly from?: string
  readonly mode: number
  readonly owner?: { uid: number; gid: number }
}

/** Knows what stood after `--`, which the parser takes away. */
class WriteCommand extends Command {
  #afterDashes: readonly string[] | undefined

  override parseOptions(argv: string[]) {
    const dashes = argv.indexOf('--')
    this.#afterDashes = dashes < 0 ? undefined : argv.slice(dashes + 1)
    return super.parseOptions(argv)
  }

  /**
   * Where the content comes from, by the words behind FILE: `-` is standard input, as in other programs.
   * @throws UsageError for words that do not stand after `--`, and for two sources
   */
  source(words: readonly string[], from: string | undefined): ContentInput {
    const after = this.#afterDashes?.length
    if (words.length === 1 && words[0] === '-' && after === undefined) {
      if (from !== undefined) throw new UsageError('- and --from exclude each other: name one of them')
      return { from, command: [] }
    }
    if (after === 0 || (after === words.length && words[0] === '')) throw new UsageError('there is no command after --')
    if (words.length > 0 && words.length !== after) {
      throw new UsageError("too many arguments for 'write': it takes FILE, and a command after --: FILE -- COMMAND")
    }
    if (from === '') throw new UsageError('--from is empty: name a file')
    if (from !== undefined && words.length > 0)
      throw new UsageError('--from and a command exclude each other: name one of them')
    return { from: from === '-' ? undefined : from, command: words }
  }
}

/** `holdfast write FILE` */
export function writeCommand(io: Io): Command {
  const write = new WriteCommand('write')
  write
    .summary('publish standard input, a file, or the output of a command as FILE, intact and durable')
    .description(
      `Publishes as FILE standard input, another file (--from), or what COMMAND prints: readers see the old file or the new one,
never a part, and when this command ends with 0, the new content survives a power cut. It takes files of any size, up to 1 GiB from a
pipe, and 64 MiB where it validates. It suits kubelet's manifest directory: one rename, and no other name that kubelet reads.

A pipe hides that the command before it failed. COMMAND, after --, inherits standard input and standard error; holdfast forwards
signals to it, and publishes its output only if it exits with 0. holdfast refuses empty content, and what fails --expect or --validate, and then touches nothing.`,
    )
    .usage('[options] <file> [- | -- <command> [args...]]')
    .argument('<file>', 'the file to replace, or to create')
    .argument('[command...]', 'after --: the command whose standard output to publish')
    .option('--from <file>', 'publish this file instead of standard input, which is -')
    .option('--allow-empty', 'publish empty content')
    .addOption(
      new Option('--expect <digest>', 'publish only content with this digest: sha256:HEX').argParser(parseDigest),
    )
    .addOption(new Option('--validate <kind>', 'publish only content of this kind').choices(contentKinds))
    .addOption(fileModeOption('--mode', 'mode of FILE', '0600'))
    .addOption(ownerOption())
    .addOption(keepAttributesOption(['mode']))
  return write
    .addOptions(publishingOptions())
    .addHelpText(
      'after',
      `
Kinds of --validate: pem (each block intact, each certificate and key parses), key-pair (a certificate and its private key
in one file), yaml, json, pod (a static pod's manifest that kubelet would take).

Examples:
  holdfast write /etc/kubernetes/manifests/web.yaml --validate pod < web.yaml
  holdfast write /etc/ssl/ca.crt --mode 0644 --validate pem -- \\
    kubectl get configmap ca -o 'jsonpath={.data.ca\\.crt}'
  holdfast write /etc/ssl/ca.crt --from ca.crt --expect sha256:$(sha256sum < ca.crt | cut -c 1-64)

Exit codes: 0 published or already so, 1 not published (FILE is as it was), 2 wrong usage, 3 published but not known
to be durable, 75 another process holds FILE's lock.`,
    )
    .action(async (file: string, words: string[], options: WriteFlags) => {
      if (file === '-') throw new UsageError('FILE is missing: - is standard input (a file of this name is ./-)')
      const source = write.source(words, options.from)
      if (options.dryRun && source.command.length > 0)
        throw new UsageError('--dry-run starts no command: pipe what it prints to "holdfast write FILE --dry-run"')
      const result = await interruptible(io, (signal) =>
        publishFile(file, source, { io, command: write, options, signal }),
      )
      await printPublished(io, result, options)
    })
}

interface WriteContext {
  readonly io: Io
  readonly command: Command
  readonly options: WriteFlags
  readonly signal: AbortSignal
}

async function publishFile(
  file: string,
  source: ContentInput,
  { io, command, options, signal }: WriteContext,
): Promise<ReplaceResult | DirectoryPlanResult> {
  const path = await targetArgument(file)
  const { AtOnceFileSystem, disableCoreDumps, planFile, refuseKeptByAgent, replaceFile } =
    await import('../../durable/publishing.js')
  disableCoreDumps()
  const rollout = await rolloutBeside(path, options.force)
  await rollout?.()
  const asked = askedFor(options, (found) => refuseKeptByAgent(path, found))
  // Checks the file before a command runs, for holdfast cannot take the command's effects back.
  if (source.command.length > 0) await planFile(path, undefined, asked)
  const dryRun = options.dryRun === true
  const log = createLogger(io, options)
  const doubt = (sentence: string) => {
    log.warn({ path }, sentence)
  }
  const inMemory = dryRun || rollout !== undefined
  const { content, ...checks } = await contentOf(source, options, { io, signal, path, inMemory, doubt })
  if (!(Symbol.asyncIterator in content)) await rollout?.(content)
  const request = { ...asked, ...checks, ...(options.allowEmpty === true && { allowEmpty: true }) }
  const found = await findAttributes(path)
  const reading = new Reading()
  const publication = { ...request, progress: reading.add, signal, log }
  const result = await new ProgressLine(io.stderr)
    .during<ReplaceResult | DirectoryPlanResult>(reading.describe, () =>
      dryRun
        ? planFile(path, content, publication)
        : // This process has nothing else to do.
          replaceFile(path, content, publication, new AtOnceFileSystem()),
    )
    .catch(throwReason)
  if (options.keepAttributes !== true)
    warnOfChanges(log, result, found, {
      mode: isNamed(command, 'mode') ? undefined : options.mode,
      fileMode: () => undefined,
      owner: options.owner ? undefined : ownOwner(),
    })
  return result
}

/** The record that the publication found under the target's lock. */
type FoundRecord = Partial<Record<'record', Confirmed | undefined>>

/** `kept`: refuses, without --force, what an agent keeps. */
function askedFor(options: WriteFlags, kept: (found: FoundRecord) => void) {
  const { mode, owner, force } = options
  return { mode, owner, ...publicationOptions(options), ...(force !== true && { confirm: kept }) }
}
