import { fstatSync } from 'node:fs'
import { Command } from 'commander'
import type { Io } from './io.js'
import {
  fileModeOption,
  lockTimeoutOption,
  logLevelOption,
  outputOption,
  ownerOption,
  requireProvenOption,
  type OutputOptions,
} from './options.js'
import { UsageError } from './exit-codes.js'
import { createLogger } from './logger.js'
import { interruptible } from './signals.js'
import { printPublished, targetArgument } from './target.js'

interface WriteOptions extends OutputOptions {
  readonly mode: number
  readonly owner?: { uid: number; gid: number }
  readonly requireProven?: true
  readonly lockTimeout: number
}

/** A file of configuration or a manifest is smaller by far; what is larger is a mistake that would fill the memory. */
const largestInput = 64 * 1024 * 1024

/** `holdfast write FILE` */
export function writeCommand(io: Io): Command {
  return new Command('write')
    .summary('publish standard input as FILE, whole and durable')
    .description(
      `Publish standard input as FILE: readers see the old file or the new one, never a part, and when this command ends with
0, the new content survives a power cut. At most 64 MiB are taken. Fit for kubelet's manifests: one rename, no foreign name ever in sight.`,
    )
    .argument('<file>', 'the file to replace, or to create')
    .addOption(fileModeOption('--mode', 'mode of FILE', '0600'))
    .addOption(ownerOption())
    .addOption(requireProvenOption())
    .addOption(lockTimeoutOption())
    .addOption(outputOption())
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast write /etc/kubernetes/manifests/web.yaml < web.yaml
  kubectl get configmap ca -o jsonpath='{.data.ca\\.crt}' | holdfast write /etc/ssl/ca.crt --mode 0644

Exit codes: 0 published or already so, 1 not published (FILE is what it was), 2 wrong usage, 3 published but not known
to be durable, 75 another process holds FILE's lock.`,
    )
    .action(async (file: string, options: WriteOptions) => {
      const result = await interruptible(io, async (signal) => {
        const path = await targetArgument(file)
        const { disableCoreDumps, replaceFile } = await import('../durable/index.js')
        disableCoreDumps()
        const content = await readStandardInput(io, signal)
        const log = createLogger(io, options.logLevel)
        if (content.length === 0) log.warn({ path }, `standard input is empty: ${path} will be an empty file`)
        return replaceFile(path, content, {
          mode: options.mode,
          ...(options.owner ? { owner: options.owner } : {}),
          requireProven: options.requireProven ?? false,
          lockTimeout: options.lockTimeout,
          signal,
          log,
        })
      })
      await printPublished(io, result, options)
    })
}

async function readStandardInput({ stdin, stderr }: Io, signal: AbortSignal): Promise<Uint8Array> {
  // Node reads a directory as if it were empty.
  if (stdin.fd !== undefined && fstatSync(stdin.fd).isDirectory())
    throw new UsageError('standard input is a directory; nothing was written')
  if (stdin.isTTY) stderr.write('Reading standard input; end it with Ctrl-D.\n')
  const stop = () => stdin.destroy(new Error('interrupted'))
  signal.addEventListener('abort', stop, { once: true })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stdin as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > largestInput) {
      throw new UsageError(`standard input is larger than ${largestInput / 1024 / 1024} MiB; nothing was written`)
    }
    chunks.push(chunk)
  }
  signal.removeEventListener('abort', stop)
  return Buffer.concat(chunks)
}
