import { spawn } from 'node:child_process'
import type { ClusterSettings } from './kubeconfig-cluster.js'
import type { ExecSettings } from './kubeconfig-exec.js'
import { readExecCredential, type ExecCredential } from './exec-credential.js'
import type { Environment } from './proxy.js'

export interface ExecOptions {
  readonly environment: Environment
  readonly cluster: ClusterSettings
  /** PEM text of the cluster's authority, for provideClusterInfo. */
  readonly authority: string | undefined
  /** Milliseconds until the plugin is killed. */
  readonly timeout: number
}

/**
 * Runs a credential plugin once. It gets no terminal and no input; what it prints, on either stream, appears in no
 * error. Throws an Error that names the command (not its arguments) and what to do.
 */
export async function runExecPlugin(settings: ExecSettings, options: ExecOptions): Promise<ExecCredential> {
  const output = await run(settings, options)
  try {
    return readExecCredential(output, settings.apiVersion)
  } catch (error) {
    throw new Error(describe(settings, (error as Error).message))
  }
}

function run(settings: ExecSettings, options: ExecOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (problem: string): void => reject(new Error(describe(settings, problem)))
    const child = spawn(settings.command, settings.args, {
      env: { ...options.environment, ...settings.env, KUBERNETES_EXEC_INFO: execInfo(settings, options) },
      stdio: ['ignore', 'pipe', 'ignore'],
      // A group of its own, so that a plugin which hangs is killed with its children.
      detached: true,
    })
    const kill = (): void => killGroup(child.pid)
    const timer = setTimeout(() => {
      kill()
      fail(`did not answer within ${options.timeout / 1000} s`)
    }, options.timeout)
    const chunks: Buffer[] = []
    let size = 0
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= MAX_OUTPUT) chunks.push(chunk)
      else kill()
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      fail(startFault(settings, error))
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
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

function describe(settings: ExecSettings, problem: string): string {
  return `${settings.field.file}: ${settings.field.place}: credential plugin ${settings.command}: ${problem}`
}

function startFault(settings: ExecSettings, error: NodeJS.ErrnoException): string {
  if (error.code !== 'ENOENT') return `cannot be started (${error.code ?? 'unknown'})`
  const hint = settings.installHint
  return hint === undefined ? 'not found; install it, or correct command' : `not found. ${hint.trim()}`
}

/** KUBERNETES_EXEC_INFO (client-go/plugin/pkg/client/auth/exec/exec.go). */
function execInfo(settings: ExecSettings, { cluster, authority }: ExecOptions): string {
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
