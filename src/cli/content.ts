import { createHash } from 'node:crypto'
import { fstatSync } from 'node:fs'
import type { ContentKind } from './content-kinds.js'
import { NotPublished, UsageError } from './exit-codes.js'
import type { Io } from './io.js'

/* What `write` publishes: where it comes from, and whether it may be published. */

/** A file of configuration or a manifest is smaller by far; what is larger is a mistake that would fill the memory. */
const most = 64 * 1024 * 1024
const tooLarge = `larger than ${most / 1024 / 1024} MiB`

export interface ContentSource {
  /** `--from`; undefined and no command: standard input. */
  readonly from: string | undefined
  readonly command: readonly string[]
}

export interface ContentChecks {
  readonly allowEmpty?: true
  /** `sha256:` and lower-case digits. */
  readonly expect?: string
  readonly validate?: ContentKind
}

/** Throws UsageError for a source that cannot be read, NotPublished for a command that failed. */
export async function readContent(
  { from, command }: ContentSource,
  { io, signal, path }: { readonly io: Io; readonly signal: AbortSignal; readonly path: string },
): Promise<Uint8Array> {
  if (from !== undefined) {
    const { readFrom } = await import('./read-file.js')
    return (await readFrom(from, { most, tooLarge, follow: true })).content
  }
  if (command.length === 0) return readStandardInput(io, signal)
  const { outputOf } = await import('./command-output.js')
  const { output, problem } = await outputOf(command, { io, most })
  signal.throwIfAborted()
  if (problem !== undefined) throw new NotPublished(problem, path)
  return output
}

/** @throws NotPublished where a check fails; nothing of the content is quoted */
export async function checkContent(
  content: Uint8Array,
  path: string,
  { allowEmpty, expect, validate }: ContentChecks,
): Promise<void> {
  if (content.length === 0 && allowEmpty !== true) {
    throw new NotPublished('the content is empty; --allow-empty publishes it all the same', path)
  }
  if (expect !== undefined) {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
    if (digest !== expect) {
      throw new NotPublished(`the content (${content.length} bytes) has the digest ${digest}, not ${expect}`, path)
    }
  }
  if (validate === undefined) return
  const { contentRules } = await import('./content-rules.js')
  const problem = await contentRules[validate](content)
  if (problem !== undefined) throw new NotPublished(`the content fails --validate ${validate}: ${problem}`, path)
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
    if (size > most) throw new UsageError(`standard input is ${tooLarge}; nothing was written`)
    chunks.push(chunk)
  }
  signal.removeEventListener('abort', stop)
  return Buffer.concat(chunks)
}
