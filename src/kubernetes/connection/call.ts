/** A client's call, and the request that it becomes. */
import type { AccessSnapshot } from '../credentials/access.js'
import type { ApiVerb } from './client.js'
import type { Request } from './transport.js'

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly verb: ApiVerb
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly accept?: string | undefined
  /** Media type of the body; default JSON, and of a PATCH a merge patch. */
  readonly type?: string | undefined
}

export function describeCall({ method, path }: Call): string {
  return `${method} ${path}`
}

export function requestOf(
  access: AccessSnapshot,
  { method, path, query, body, accept, type: given }: Call,
  userAgent: string,
  signal: AbortSignal,
): Request {
  const search = new URLSearchParams(query).toString()
  const type = given ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')
  return {
    method,
    // Joined: Node keeps it with the stream, and one string is smaller than its pieces, of which it would be made otherwise.
    path: [basePath(access.server), path, ...(search === '' ? [] : ['?', search])].join(''),
    headers: {
      accept: accept ?? 'application/json',
      'user-agent': userAgent,
      ...(body !== undefined && { 'content-type': type }),
      ...access.headers,
    },
    body,
    signal,
  }
}

/** Of a server whose API begins below its root; without a slash at the end. */
export function basePath({ pathname }: URL): string {
  return pathname.replace(/\/+$/, '')
}
