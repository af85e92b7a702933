import { findAttributes, ownOwner, warnOfChanges } from '../content/attributes.js'
import { contentOf, type ContentInput, throwReason } from '../content/content.js'
import { contentKinds } from '../content/content-kinds.js'
import type { DirectoryPlanResult } from '../../durable/publish/index.js'
import type { Confirmed, ReplaceResult } from '../../durable/types.js'
import type { Io } from '../output/io.js'
import { parseDigest, parseFileMode } from '../words/option-values.js'
import { UsageError } from '../words/exit-codes.js'
import { ProgressLine, Reading } from '../output/progress.js'
import { createLogger } from '../output/logger.js'
import { interruptible } from '../signals.js'
import { printPublished, rolloutBeside, targetArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { ownerFlag, keepAttributesFlag, publishingFlags, publicationOptions } from '../words/options.js'

const flags = [
  flag('--from <file>', 'publish this file instead of standard input, which is -'),
  flag('--allow-empty', 'publish empty content'),
  flag('--expect <digest>', 'publish only content with this digest: sha256:HEX', { parse: parseDigest }),
  flag('--validate <kind>', 'publish only content of this kind', { choices: contentKinds }),
  flag('--mode <mode>', 'mode of FILE', { parse: parseFileMode, fallback: 0o600, shown: '0600' }),
  ownerFlag,
  keepAttributesFlag(['mode']),
  ...publishingFlags,
]

type WriteFlags = FlagsOf<typeof flags>

/** `holdfast write FILE` */
export const writeCommand = command({
  name: 'write',
  summary: 'publish standard input, a file, or the output of a command as FILE, intact and durable',
  description: `Publishes as FILE standard input, another file (--from), or what COMMAND prints: readers see the old file or the new one,
never a part, and when this command ends with 0, the new content survives a power cut. It takes files of any size, up to 1 GiB from a
pipe, and 64 MiB where it validates. It suits kubelet's manifest directory: one rename, and no other name that kubelet reads.

A pipe hides that the command before it failed. COMMAND, after --, inherits standard input and standard error; holdfast forwards
signals to it, and publishes its output only if it exits with 0. holdfast refuses empty content, and what fails --expect or --validate, and then touches nothing.`,
  words: [
    ['<file>', 'the file to replace, or to create'],
    ['[command...]', 'after --: the command whose standard output to publish'],
  ],
  usage: '[options] <file> [- | -- <command> [args...]]',
  flags,
  more: `Kinds of --validate: pem (each block intact, each certificate and key parses), key-pair (a certificate and its private key
in one file), yaml, json, pod (a static pod's manifest that kubelet would take).`,
  examples: `  holdfast write /etc/kubernetes/manifests/web.yaml --validate pod < web.yaml
  holdfast write /etc/ssl/ca.crt --mode 0644 --validate pem -- \\
    kubectl get configmap ca -o 'jsonpath={.data.ca\\.crt}'
  holdfast write /etc/ssl/ca.crt --from ca.crt --expect sha256:$(sha256sum < ca.crt | cut -c 1-64)`,
  exitCodes: `0 published or already so, 1 not published (FILE is as it was), 2 wrong usage, 3 published but not known
to be durable, 75 another process holds FILE's lock.`,
  run: async ({ io, options, named, afterDashes }, file, words) => {
    if (file === '-') throw new UsageError('FILE is missing: - is standard input (a file of this name is ./-)')
    const source = sourceOf(words, options.from, afterDashes?.length)
    if (options.dryRun && source.command.length > 0)
      throw new UsageError('--dry-run starts no command: pipe what it prints to "holdfast write FILE --dry-run"')
    const result = await interruptible(io, (signal) => publishFile(file, source, { io, named, options, signal }))
    await printPublished(io, result, options)
  },
})

/**
 * Where the content comes from, by the words behind FILE: `-` is standard input, as in other programs. `after`: how many stand behind `--`.
 * @throws UsageError for words that do not stand after `--`, and for two sources
 */
function sourceOf(words: readonly string[], from: string | undefined, after: number | undefined): ContentInput {
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

interface WriteContext {
  readonly io: Io
  readonly named: ReadonlyMap<string, string>
  readonly options: WriteFlags
  readonly signal: AbortSignal
}

async function publishFile(
  file: string,
  source: ContentInput,
  { io, named, options, signal }: WriteContext,
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
      mode: named.has('mode') ? undefined : options.mode,
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
