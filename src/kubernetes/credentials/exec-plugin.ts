/** Runs credential plugins, and reads their output. */
import { spawn, type ChildProcess } from 'node:child_process'
import { describeCode } from '../../errors.js'
import { tokenProblem, type ClusterSettings, type ExecPluginSettings } from './kubeconfig.js'
import { certificateProblem, keyMatches, privateKeyProblem } from '../../x509/certificates.js'
import { absoluteDirectories, startErrorCode } from '../../program-path.js'
import type { Environment } from '../connection/proxy.js'

export interface ExecOptions {
  readonly environment: Environment
  readonly cluster: ClusterSettings
  /** PEM text of the cluster's authority, for provideClusterInfo. */
  readonly authority: string | undefined
  /** Milliseconds until the plugin is killed. */
  readonly timeout: number
}

/**
 * Runs a credential plugin once. It gets no terminal and no input; its output, on either stream, appears in no
 * error. Throws an Error that names the command (not its arguments) and what to do.
 */
export async function runExecPlugin(settings: ExecPluginSettings, options: ExecOptions): Promise<ExecCredential> {
  const output = await startPlugin(settings, options)
  try {
    return readExecCredential(output, settings.apiVersion)
  } catch (error) {
    throw new Error(pluginFault(settings, (error as Error).message))
  }
}

/** The variables of the kubeconfig win, and PATH has absolute directories alone. */
export function pluginEnvironment(
  settings: ExecPluginSettings,
  environment: Environment,
): Environment & { PATH: string } {
  const both = { ...environment, ...settings.env }
  return { ...both, PATH: absoluteDirectories(both['PATH']) }
}

function startPlugin(settings: ExecPluginSettings, options: ExecOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const environment = pluginEnvironment(settings, options.environment)
    const fail = (problem: string): void => reject(new Error(pluginFault(settings, problem)))
    // Where no file descriptor is free, Node answers a child without streams, and reports the failure in an event.
    const child: ChildProcess = spawn(settings.command, settings.args, {
      env: { ...environment, KUBERNETES_EXEC_INFO: execInfo(settings, options) },
      stdio: ['ignore', 'pipe', 'ignore'],
      // A new process group, so that a plugin which hangs is killed with its children.
      detached: true,
    })
    const kill = (): void => killGroup(child.pid)
    const timer = setTimeout(() => {
      kill()
      fail(`did not answer within ${options.timeout / 1000} s`)
    }, options.timeout)
    const chunks: Buffer[] = []
    let size = 0
    let hasStarted = true
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= MAX_OUTPUT) chunks.push(chunk)
      else kill()
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      hasStarted = false
      void startErrorCode(error.code, settings.command, environment.PATH).then((code) => {
        fail(startProblem(settings, code))
      })
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (!hasStarted) return
      if (size > MAX_OUTPUT) fail(`printed more than ${MAX_OUTPUT} bytes`)
      else if (signal !== null) fail(`was ended by ${signal}`)
      else if (code !== 0) fail(`exited with ${String(code)}; run it by hand to see why`)
      else resolve(Buffer.concat(chunks).toString())
    })
  })
}

/** A certificate chain and its key stay far below this. */
const MAX_OUTPUT = 1024 * 1024

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

function pluginFault(settings: ExecPluginSettings, problem: string): string {
  return `${settings.field.file}: ${settings.field.place}: credential plugin ${settings.command}: ${problem}`
}

function startProblem(settings: ExecPluginSettings, code: string | undefined): string {
  if (code !== 'ENOENT') return `could not be started (${describeCode(code ?? 'unknown')})`
  const hint = settings.installHint
  return hint === undefined ? 'not found; install it, or correct command' : `not found. ${hint.trim()}`
}

/** KUBERNETES_EXEC_INFO (client-go/plugin/pkg/client/auth/exec/exec.go). */
function execInfo(settings: ExecPluginSettings, { cluster, authority }: ExecOptions): string {
  const spec = {
    interactive: false,
    ...(settings.provideClusterInfo && {
      cluster: {
        server: cluster.server.href.replace(/\/$/, ''),
        ...(cluster.serverName !== undefined && { 'tls-server-name': cluster.serverName }),
        ...(cluster.insecure && { 'insecure-skip-tls-verify': true }),
        ...(authority !== undefined && {
          'certificate-authority-data': Buffer.from(authority).toString('base64'),
        }),
        ...(cluster.proxy && { 'proxy-url': cluster.proxy.href.replace(/\/$/, '') }),
        ...(cluster.execConfig !== undefined && { config: cluster.execConfig }),
      },
    }),
  }
  return JSON.stringify({ kind: 'ExecCredential', apiVersion: settings.apiVersion, spec })
}

/** A credential plugin's answer (client.authentication.k8s.io ExecCredential, .status). */
export class ExecCredential {
  readonly #obtainedAt = performance.now()
  /** Milliseconds that the credential was to last when it came. */
  readonly #lifetime: number

  constructor(
    readonly token: string | undefined,
    readonly certificate: { readonly chain: string; readonly key: string } | undefined,
    /** Milliseconds since the epoch; Infinity: good until the API server says no. */
    private readonly expires: number,
  ) {
    this.#lifetime = expires - Date.now()
  }

  /**
   * Milliseconds, by the clock or by the time that has passed, whichever is less: a clock that was wrong when the plugin ran may have
   * been set since, and a machine that slept has counted nothing.
   */
  get left(): number {
    const passed = performance.now() - this.#obtainedAt
    return Math.min(this.expires - Date.now(), this.#lifetime - passed)
  }

  /** Renewed a little early, so that no request is under way when it expires; a short-lived one, less early. */
  get isDue(): boolean {
    return this.left <= Math.min(30_000, this.#lifetime / 10)
  }
}

/**
 * Reads a plugin's standard output. Throws an Error that names the fault and quotes nothing: the whole output is
 * a secret, and so are the messages of the parsers that quote it.
 */
function readExecCredential(output: string, apiVersion: string): ExecCredential {
  const document = mapping(parseOutput(output), 'its output')
  if (document['kind'] !== 'ExecCredential') throw new Error('the kind of its output is not ExecCredential')
  if (document['apiVersion'] !== apiVersion) throw new Error(`the apiVersion of its output is not ${apiVersion}`)
  if (document['status'] === undefined || document['status'] === null) throw new Error('its output has no status')
  const status = mapping(document['status'], 'status')
  const token = pluginToken(textField(status, 'token'))
  const certificate = pluginCertificate(textField(status, 'clientCertificateData'), textField(status, 'clientKeyData'))
  if (token === undefined && !certificate) {
    throw new Error('its status has neither token nor clientCertificateData and clientKeyData')
  }
  return new ExecCredential(token, certificate, readExpiry(textField(status, 'expirationTimestamp')))
}

function parseOutput(output: string): unknown {
  try {
    return JSON.parse(output) as unknown
  } catch {
    throw new Error('its output is not JSON')
  }
}

function mapping(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${name} is not a JSON object`)
  }
  return value as Record<string, unknown>
}

function textField(status: Record<string, unknown>, key: string): string | undefined {
  const value = status[key] ?? ''
  if (typeof value !== 'string') throw new Error(`status.${key} is not a string`)
  return value === '' ? undefined : value
}

function pluginToken(token: string | undefined): string | undefined {
  const problem = token === undefined ? undefined : tokenProblem(token)
  if (problem !== undefined) throw new Error(`status.token ${problem}`)
  return token
}

function pluginCertificate(chain: string | undefined, key: string | undefined): ExecCredential['certificate'] {
  if (chain === undefined && key === undefined) return undefined
  if (chain === undefined || key === undefined) {
    throw new Error('its status has one of clientCertificateData and clientKeyData without the other')
  }
  const chainProblem = certificateProblem(chain)
  if (chainProblem !== undefined) throw new Error(`status.clientCertificateData: ${chainProblem}`)
  const keyProblem = privateKeyProblem(key)
  if (keyProblem !== undefined) throw new Error(`status.clientKeyData: ${keyProblem}`)
  if (!keyMatches(chain, key)) throw new Error('status.clientKeyData does not match clientCertificateData')
  return { chain, key }
}

function readExpiry(timestamp: string | undefined): number {
  if (timestamp === undefined) return Infinity
  const time = Date.parse(timestamp)
  if (Number.isNaN(time)) throw new Error('status.expirationTimestamp is not a time (RFC 3339)')
  return time
}
