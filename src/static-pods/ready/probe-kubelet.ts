/*
 * Asks the node's own kubelet for its pods (GET /pods): it needs no API server, and tells of this very pod, not of any process that
 * answers at an address. The secure port (10250) takes a client certificate or a token, the read-only one (10255) neither.
 */
import type { IncomingMessage } from 'node:http'
import { codeOf, messageOf } from '../../errors.js'
import { asList, asMap, asText } from '../json.js'
import type { Manifest } from '../pod/manifest.js'
import { isUnknownAuthority, presentFiles, readAuthorities, UnfitProbeFile, type ProbeFiles } from './probe-files.js'
import { askInTime, get, refused, tooLate } from './probe-http.js'
import type { Probe, ProbeResult } from './readiness.js'
import { resultOf } from './reported-pod.js'

/** Bytes of an answer: a node has a few hundred pods of some KiB. */
const largest = 64 * 1024 * 1024

/** Each try reads the files again, for another program may renew them. */
export interface KubeletAccess {
  /** `https://node-1:10250`. */
  readonly url: string
  /** PEM; null: the public authorities that Node knows. */
  readonly authority: string | null
  /** PEM, with its key; null: none. */
  readonly certificate: string | null
  readonly key: string | null
  readonly tokenFile: string | null
}

const noCredential =
  'name with --kubelet-cert and --kubelet-key, or --kubelet-token-file, what the kubelet accepts; holdfast rbac monitor ' +
  '--kubelet-access prints the right'

const noAuthority = "name with --kubelet-ca the authority that signed the kubelet's certificate"

/** Failures of a connection that say that no process listens; every other code says that the probe cannot ask this way. */
const nobody = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'])

/**
 * The static pod that the kubelet runs must be of this manifest and Ready. A silent kubelet gives no answer; a kubelet that refuses, or
 * whose certificate does not fit, says nothing of the pod.
 */
export function kubeletProbe(access: KubeletAccess, files: ProbeFiles = presentFiles): Probe {
  return {
    name: 'kubelet',
    identifiesPod: true,
    ask: (manifest, caller) =>
      askInTime(
        caller,
        async (signal) => {
          const { status, body } = await askForPods(access, files, signal)
          if (status !== 200) {
            return { state: 'unknown', message: refusal(status), ...(refused.has(status) && { refusal: noCredential }) }
          }
          const pod = asList(asMap(parsed(body))?.items).find((item) => isOf(item, manifest))
          return pod === undefined
            ? { state: 'not-ready', message: 'it does not run the pod' }
            : resultOf(pod, manifest)
        },
        failure,
      ),
  }
}

function failure(error: unknown, isLate: boolean): ProbeResult {
  if (isLate) return { state: 'no-answer', message: tooLate }
  const code = codeOf(error)
  return {
    state: code !== undefined && nobody.has(code) ? 'no-answer' : 'unknown',
    message: code ?? messageOf(error),
    ...(isUnknownAuthority(error) && { refusal: noAuthority }),
    ...(error instanceof UnfitProbeFile && { refusal: error.refusal }),
  }
}

/** The error quotes nothing of the text, which describes every pod of the node. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw new Error('the answer is no JSON')
  }
}

/** kubelet names a static pod NAME-NODE, and says that it has it from a file. */
function isOf(item: unknown, { name, namespace = 'default' }: Manifest): boolean {
  const metadata = asMap(asMap(item)?.metadata)
  const node = asText(asMap(asMap(item)?.spec)?.nodeName)
  const isStatic = asText(asMap(metadata?.annotations)?.['kubernetes.io/config.source']) === 'file'
  return isStatic && asText(metadata?.namespace) === namespace && asText(metadata?.name) === `${name}-${node ?? ''}`
}

function refusal(status: number): string {
  if (status === 401) return 'HTTP 401: the kubelet takes neither the client certificate nor the token'
  if (status === 403) return 'HTTP 403: it needs the verb get on the resource nodes/proxy, or nodes/pods, of this node'
  return `HTTP ${status}`
}

interface Answer {
  readonly status: number
  readonly body: string
}

/** Asks with the newest credentials, and with the ones beside them where the kubelet refuses these. */
async function askForPods(access: KubeletAccess, files: ProbeFiles, signal: AbortSignal): Promise<Answer> {
  const ca = await readAuthorities(files, access.authority)
  const read = async (file: string | null) => (file === null ? [] : files.read(file))
  const [cert, key, token] = await Promise.all([read(access.certificate), read(access.key), read(access.tokenFile)])
  const versions = Math.max(cert.length, key.length, token.length, 1)
  let first: Answer | undefined
  for (let version = 0; ; version++) {
    const of = (all: readonly Buffer[]) => all[version] ?? all[0]
    const keys = {
      ...(ca && { ca }),
      ...(cert.length > 0 && { cert: of(cert) }),
      ...(key.length > 0 && { key: of(key) }),
      ...(token.length > 0 && { headers: { authorization: `Bearer ${String(of(token)).trim()}` } }),
    }
    const isLast = version + 1 >= versions
    try {
      const answer = await get(new URL('/pods', access.url), { ...keys, signal }, answerOf)
      if (!refused.has(answer.status)) return answer
      first ??= answer
      if (isLast) return first
    } catch (error) {
      // A server that wants another client certificate may close the connection.
      if (isLast && first) return first
      if (isLast || signal.aborted || codeOf(error) === 'ECONNREFUSED') throw error
    }
  }
}

async function answerOf(response: IncomingMessage): Promise<Answer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > largest) throw new Error(`an answer of more than ${largest / 1024 / 1024} MiB`)
    parts.push(part)
  }
  return { status: response.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }
}
