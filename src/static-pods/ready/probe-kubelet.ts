/*
 * Asks the node's own kubelet for its pods (GET /pods): it needs no API server, and tells of this very pod, not of any process that
 * answers at an address. The secure port (10250) takes a client certificate or a token, the read-only one (10255) neither.
 */
import type { IncomingMessage } from 'node:http'
import { codeOf, messageOf } from '../../errors.js'
import { escaped } from '../../message-text.js'
import { asList, asMap, asText } from '../json.js'
import type { Manifest } from '../pod/manifest.js'
import { serverFault, presentFiles, readAuthorities, UnfitProbeFile, type ProbeFiles } from './probe-files.js'
import { askInTime, get, refused, tooLate } from './probe-http.js'
import type { KubeletAccess, Probe, ProbeResult } from './readiness.js'
import { podResult, troubled } from './reported-pod.js'

/** Bytes of an answer: a node has a few hundred pods of some KiB. */
const largest = 64 * 1024 * 1024

const noCredential =
  'name with --kubelet-cert and --kubelet-key, or --kubelet-token-file, what the kubelet accepts; holdfast rbac monitor ' +
  '--kubelet-access prints the right'

const noAuthority = "name with --kubelet-ca the authority that signed the kubelet's certificate"

const noKubelet =
  "name with --kubelet-url the kubelet's own port, with the node's name as the kubelet's certificate has it: https://NODE:10250"

const noAuthorizer = 'name a second probe, which answers while no API server runs: --ready-url or --ready-exec'

/** Failures of a connection that say that no process listens; every other code says that the probe cannot ask this way. */
const nobody = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN'])

/**
 * The static pod that the kubelet runs must be of this manifest and Ready. A silent kubelet gives no answer; a kubelet that refuses, or
 * whose certificate does not fit, says nothing of the pod.
 */
export function kubeletProbe(access: KubeletAccess, files: ProbeFiles = presentFiles): Probe {
  return {
    name: 'kubelet',
    identifiesPod: true,
    ask: (manifest, caller) =>
      askInTime<ProbeResult>(
        caller,
        async (signal) => {
          const { status, body } = await askFor('/pods', access, files, signal)
          if (status !== 200) return kubeletRefusal(status, body)
          const pods = asMap(parsed(body))
          if (pods?.kind !== 'PodList') {
            return { state: 'cannot-ask', message: 'the answer is no list of pods', advice: noKubelet }
          }
          const pod = asList(pods.items).find((item) => isOf(item, manifest))
          return pod === undefined ? { state: 'absent', message: 'it does not run the pod' } : podResult(pod, manifest)
        },
        failure,
      ),
    lastWords: (manifest, caller) =>
      askInTime<string | undefined>(
        caller,
        (signal) => lastWords(manifest, access, files, signal),
        () => undefined,
      ),
  }
}

const lines = 5
/** Characters of a line of a log. */
const longestLine = 300

/** Where the kubelet shows the log: that needs the verb get on nodes/proxy. */
async function lastWords(
  manifest: Manifest,
  access: KubeletAccess,
  files: ProbeFiles,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { body } = await askFor('/pods', access, files, signal)
  const pod = asList(asMap(parsed(body))?.items).find((item) => isOf(item, manifest))
  const container = troubled(pod)
  if (container === undefined) return undefined
  const place = [manifest.namespace ?? 'default', asText(asMap(asMap(pod)?.metadata)?.name) ?? '', container.name]
  const query = `?tailLines=${lines}${container.previous ? '&previous=true' : ''}`
  const log = await askFor(`/containerLogs/${place.map(encodeURIComponent).join('/')}${query}`, access, files, signal)
  const told = log.body.split('\n').filter((line) => line.trim() !== '')
  if (log.status !== 200 || told.length === 0) return undefined
  const last = told.slice(-lines).map((line) => escaped(line.slice(0, longestLine)))
  return `the log of container ${container.name} ends: ${last.join(' | ')}`
}

function failure(error: unknown, isLate: boolean): ProbeResult {
  if (isLate) return { state: 'no-answer', message: tooLate }
  const code = codeOf(error)
  const message = code ?? messageOf(error)
  if (code !== undefined && nobody.has(code)) return { state: 'no-answer', message }
  const advice = serverFault(error) === 'authority' ? noAuthority : noKubelet
  return { state: 'cannot-ask', message, advice: error instanceof UnfitProbeFile ? error.advice : advice }
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

const refusals = {
  401: 'HTTP 401: the kubelet takes neither the client certificate nor the token',
  403: 'HTTP 403: it needs the verb get on the resource nodes/proxy, or nodes/pods, of this node',
} as const

function kubeletRefusal(status: number, body: string): ProbeResult {
  if (status === 401 || status === 403) {
    return { state: 'cannot-ask', message: refusals[status], advice: noCredential }
  }
  // Its webhook could not ask the API server (pkg/kubelet/server/server.go, InstallAuthFilter).
  if (status === 500 && body.startsWith('Authorization error')) {
    return {
      state: 'no-authorizer',
      message: 'HTTP 500: the kubelet could not ask the API server',
      advice: noAuthorizer,
    }
  }
  const message = `HTTP ${status}`
  if (status === 429 || status >= 500) return { state: 'server-error', message }
  return { state: 'cannot-ask', message, advice: noKubelet }
}

interface KubeletAnswer {
  readonly status: number
  readonly body: string
}

/** Asks with the newest credentials, and with the ones beside them where the kubelet refuses these. */
async function askFor(
  path: string,
  access: KubeletAccess,
  files: ProbeFiles,
  signal: AbortSignal,
): Promise<KubeletAnswer> {
  const trusted = await readAuthorities(files, access.authority)
  const read = async (file: string | null) => (file === null ? [] : files.read(file))
  const [cert, key, token] = await Promise.all([read(access.certificate), read(access.key), read(access.tokenFile)])
  const versions = Math.max(cert.length, key.length, token.length, 1)
  let first: KubeletAnswer | undefined
  for (let version = 0; ; version++) {
    const of = (all: readonly Buffer[]) => all[version] ?? all[0]
    const keys = {
      ...(cert.length > 0 && { cert: of(cert) }),
      ...(key.length > 0 && { key: of(key) }),
      ...(token.length > 0 && { headers: { authorization: `Bearer ${String(of(token)).trim()}` } }),
    }
    const isLast = version + 1 >= versions
    try {
      const answer = await get(new URL(path, access.url), trusted, { ...keys, signal }, answerOf)
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

async function answerOf(response: IncomingMessage): Promise<KubeletAnswer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > largest) throw new Error(`an answer of more than ${largest / 1024 / 1024} MiB`)
    parts.push(part)
  }
  return { status: response.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }
}
