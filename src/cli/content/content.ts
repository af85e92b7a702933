import { createHash } from 'node:crypto'
import { fstatSync } from 'node:fs'
import { contentPassed } from '../../content-garbage.js'
import type { ContentKind } from './content-kinds.js'
import { NotPublished, UsageError } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import type { OfferedContent } from '../../durable/types.js'
import { messageOf } from '../../errors.js'

/* The content that `write` publishes: its source, and the checks before its publication. */

const mebibyte = 1024 * 1024
/** The parser holds all of the content in memory. */
const mostToValidate = 64 * mebibyte
/** A pipe that never ends would fill the disk. */
const mostToReceive = 1024 * mebibyte

export interface ContentInput {
  /** `--from`; undefined and no command: standard input. */
  readonly from: string | undefined
  readonly command: readonly string[]
}

interface ContentChecks {
  readonly allowEmpty?: true
  /** `sha256:` and lower-case digits. */
  readonly expect?: string
  readonly validate?: ContentKind
}

export interface ContentContext {
  readonly io: Io
  readonly signal: AbortSignal
  /** The file to publish. */
  readonly path: string
  /** A stream stays in memory: the publication would keep a long one in an unnamed file of the target's file system. */
  readonly inMemory: boolean
  /** Is told what may be wrong with content that the checks take. */
  readonly doubt: (sentence: string) => void
}

export interface WantedContent {
  readonly content: Uint8Array | AsyncIterable<Uint8Array> | { readonly path: string }
  /** Looks at a content that was not read here: at its digest only where one is expected. @throws NotPublished */
  readonly accept?: (content: OfferedContent) => Promise<void>
}

/**
 * The content to publish. Content that needs no parser is a file, which the publication reads in place, or a stream, which ends with the
 * error that forbids its publication: UsageError for an unreadable source, NotPublished for a failed command or check. No error quotes
 * the content.
 */
export async function contentOf(
  source: ContentInput,
  checks: ContentChecks,
  context: ContentContext,
): Promise<WantedContent> {
  const { validate } = checks
  const { path } = context
  if (validate === undefined && source.from !== undefined) return fileAt(source.from, path, checks)
  const content = checked(received(source, validate === undefined ? undefined : mostToValidate, context), path, checks)
  if (validate === undefined && !context.inMemory) return { content }
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  if (validate === undefined) return { content: bytes }
  const rule: ContentRule = contentRules[validate]
  const problem = await rule(bytes, context.doubt)
  if (problem !== undefined) throw new NotPublished(`the content fails --validate ${validate}: ${problem}`, path)
  return { content: bytes }
}

/** A file that reaches staging without another copy. @throws UsageError where it cannot be read */
async function fileAt(from: string, target: string, checks: ContentChecks): Promise<WantedContent> {
  const { examineFrom } = await import('./read-file.js')
  examineFrom(from)
  const accept = async ({ bytes, entries }: OfferedContent): Promise<void> => {
    const [file] = checks.expect === undefined ? [] : await entries()
    refuseUnexpected(target, { sha256: file?.sha256 ?? '', size: bytes }, checks)
  }
  return { content: { path: from }, accept }
}

async function* received(
  { from, command }: ContentInput,
  most: number | undefined,
  { io, signal, path }: ContentContext,
): AsyncIterable<Uint8Array> {
  if (from !== undefined) {
    const { readFrom } = await import('./read-file.js')
    yield await readFrom(from, path, most ?? Infinity)
  } else if (command.length === 0) {
    yield* readStandardInput(io, signal, most ?? mostToReceive)
  } else {
    const { outputOf } = await import('./command-output.js')
    yield* outputOf(command, { io, most: most ?? mostToReceive, path })
    signal.throwIfAborted()
  }
}

/** Throws what a stream of contentOf() ended with; any other error as it is. */
export function throwReason(error: unknown): never {
  const cause = error instanceof Error ? error.cause : undefined
  throw cause instanceof NotPublished || cause instanceof UsageError ? cause : error
}

/** The same content. @throws NotPublished at its end, where a check fails */
async function* checked(
  content: AsyncIterable<Uint8Array>,
  path: string,
  checks: ContentChecks,
): AsyncIterable<Uint8Array> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of content) {
    size += chunk.length
    hash.update(chunk)
    yield chunk
    // It is one buffer, and not five of them, that becomes garbage: a collection for each 10 MiB is enough.
    contentPassed(chunk.length / 5)
  }
  refuseUnexpected(path, { sha256: hash.digest('hex'), size }, checks)
}

/** @throws NotPublished for content that is empty, or differs from the expected */
function refuseUnexpected(
  path: string,
  { sha256, size }: { readonly sha256: string; readonly size: number },
  { allowEmpty, expect }: ContentChecks,
): void {
  if (size === 0 && allowEmpty !== true) {
    throw new NotPublished('the content is empty; --allow-empty publishes it all the same', path)
  }
  const digest = `sha256:${sha256}`
  if (expect !== undefined && digest !== expect) {
    throw new NotPublished(`the content (${size} bytes) has the digest ${digest}, not ${expect}`, path)
  }
}

async function* readStandardInput({ stdin, stderr }: Io, signal: AbortSignal, most: number): AsyncIterable<Uint8Array> {
  // Node reads a directory as if it were empty.
  if (stdin.fd !== undefined && fstatSync(stdin.fd).isDirectory())
    throw new UsageError('standard input is a directory; nothing was written')
  if (stdin.isTTY) stderr.write('Reading standard input; end it with Ctrl-D.\n')
  const stop = () => stdin.destroy(new Error('interrupted'))
  signal.addEventListener('abort', stop, { once: true })
  let size = 0
  for await (const chunk of stdin as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > most) throw new UsageError(`standard input is larger than ${most / mebibyte} MiB; nothing was written`)
    yield chunk
  }
  signal.removeEventListener('abort', stop)
}

/**
 * Answers why content is not of a kind, in a sentence that quotes nothing of it. undefined: it is of that kind. `doubt` is told what may be wrong
 * with it.
 */
type ContentRule = (content: Uint8Array, doubt: (sentence: string) => void) => Promise<string | undefined>

/** The rules of `write --validate`. Each loads its parser when it runs. @internal */
export const contentRules = {
  pem: async (content) => {
    const { pemProblem } = await import('../../x509/certificates.js')
    return withSubject(pemProblem(content))
  },
  'key-pair': async (content) => {
    const { keyPairProblem } = await import('../../x509/certificates.js')
    return withSubject(keyPairProblem(content))
  },
  yaml: async (content) => {
    const { readYaml } = await import('../../yaml/read.js')
    return thrownProblem(async () => {
      const values = await readYaml(decode(content), 'any')
      if (values.every((value) => value === null)) throw new Error('it holds no YAML document')
    })
  },
  json: async (content) => {
    const { readJson } = await import('../../yaml/read.js')
    return thrownProblem(() => readJson(decode(content)))
  },
  pod: async (content, doubt) => {
    const { doubtsOf, parseManifest, refuseUnrunnable } = await import('../../static-pods/pod/manifest.js')
    return thrownProblem(async () => {
      const manifest = await parseManifest(content, 'the manifest')
      refuseUnrunnable(manifest, 'the manifest')
      doubtsOf(manifest).forEach(doubt)
    })
  },
} satisfies Record<ContentKind, ContentRule>

function withSubject(problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `it ${problem}`
}

async function thrownProblem(check: () => unknown): Promise<string | undefined> {
  try {
    await check()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** A byte order mark stays: neither JSON nor kubelet takes one for nothing. */
function decode(content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    throw new Error('it is not UTF-8 text')
  }
}
