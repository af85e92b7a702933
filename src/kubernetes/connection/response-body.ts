import { parseBounded, TooManyValues } from './bounded-json.js'
import { AnswerTooLarge, ConnectionError } from './client.js'
import { wantsTls, wrapConnectionError } from './connection-error.js'
import type { ReadPlace } from './large-reads.js'
import type { ReadProgress } from './progress.js'
import type { HttpResponse } from './transport.js'

interface BodyOptions {
  /** Bytes of the body. */
  readonly limit: number
  /** The request, for messages. */
  readonly what: string
  readonly signal: AbortSignal
  readonly place: ReadPlace
  readonly progress: ReadProgress
}

/** Reads a body. Rejects with ConnectionError, or the signal's reason. */
export async function readBody(
  answer: HttpResponse,
  { limit, what, signal, place, progress }: BodyOptions,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of chunksOf(answer)) {
      size += chunk.length
      progress.came(chunk.length)
      if (size > limit) throw new AnswerTooLarge(`${what}: the response is larger than ${limit} bytes`)
      chunks.push(chunk)
      await place.grown(size)
    }
    refuseBroken(answer)
    return Buffer.concat(chunks)
  } catch (error) {
    throw explain(answer, what, signal, error)
  } finally {
    place.leave()
  }
}

/** The document; undefined where the body is not JSON, or nests too deeply. @throws AnswerTooLarge */
export function parseJson(body: Buffer, what: string): unknown {
  if (body.length === 0) return undefined
  try {
    return parseBounded(body.toString())
  } catch (error) {
    if (error instanceof TooManyValues) throw new AnswerTooLarge(`${what}: the response ${error.message}`)
    return undefined
  }
}

/**
 * The program that seems to have answered in the API server's place, by the form of the answer; undefined where nothing says so. It quotes
 * nothing of the answer.
 */
export function foreignAnswer({ headers }: HttpResponse, body?: Buffer): string | undefined {
  const type = String(headers['content-type'] ?? '')
  if (type.startsWith('text/html') || body?.subarray(0, 15).toString().toLowerCase() === '<!doctype html>') {
    return 'the answer is HTML, not JSON: a proxy, or another program, has answered'
  }
  // Go's own words (net/http, server.go): every API server says it.
  if (body?.includes('HTTP request to an HTTPS server')) return `an HTTP request met an HTTPS server: ${wantsTls}`
  return undefined
}

/** holdfast asks for no compression; a proxy that compresses all the same would leave us with bytes that are not JSON. */
export function refuseEncoding(answer: HttpResponse, what: string): HttpResponse {
  const encoding = answer.headers['content-encoding'] ?? 'identity'
  if (encoding === 'identity') return answer
  answer.body.destroy()
  throw bodyError(what, 'the response is compressed, though holdfast did not ask for that')
}

/** Node 24 reports an HTTP/2 stream that was closed before its end was read as cut off, though nothing is missing. */
async function* chunksOf(answer: HttpResponse): AsyncGenerator<Buffer> {
  try {
    yield* answer.body as AsyncIterable<Buffer>
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const complete = answer.body.readableEnded && !answer.broken()
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE' || !complete) throw error
  }
}

/** Node ends an HTTP/2 stream in the same way whether the server ended it or the connection did. */
export function refuseBroken(answer: Pick<HttpResponse, 'broken'>): void {
  const error = answer.broken()
  if (error) throw error
}

export function bodyError(what: string, problem: string): ConnectionError {
  return new ConnectionError(`${what}: ${problem}`, 'connection')
}

/** Why a body failed: the signal, the connection, or the stream's own error. */
export function explain(
  answer: Pick<HttpResponse, 'broken'>,
  what: string,
  signal: AbortSignal,
  error: unknown,
): Error {
  if (error instanceof ConnectionError) return error
  if (signal.aborted) return signal.reason as Error
  return answer.broken() ?? wrapConnectionError(what, error)
}

/** Milliseconds from now that a Retry-After header asks for: seconds, or an HTTP date. */
export function retryAfter(value: unknown, now = Date.now()): number | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** A Date header, in milliseconds since the epoch. */
export function readDate(value: unknown): number | undefined {
  const date = typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isNaN(date) ? undefined : date
}
