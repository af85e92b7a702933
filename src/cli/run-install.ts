import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Log } from '../log.js'
import { Disk } from '../durable/index.js'
import type { InstallLine, InstallResult } from '../static-pods/install.js'
import { installFromApi } from '../static-pods/install-from-api.js'
import { installFromFiles } from '../static-pods/install-from-files.js'
import { revisionObjects } from './install-options.js'
import type { InstallOptions } from './install.js'
import { UsageError } from './exit-codes.js'
import { interruptible } from './interruptible.js'
import { createLogger } from './logger.js'
import { openApi } from './open-api.js'
import { print, printJson } from './print.js'
import { logLevelOf, nodeNameOf, requireFlags } from './static-pod-options.js'
import { table } from './table.js'
import { tellInvalidInput } from './tell-invalid-input.js'

/** `typed`: of the flags that the environment may hold too, those that stand on the command line. */
export async function runInstall(
  manifest: string | undefined,
  options: InstallOptions,
  typed: readonly string[],
): Promise<void> {
  const log = createLogger(logLevelOf(options))
  if (options.timeoutDuration === 0) throw new UsageError('--timeout-duration must be more than 0')
  const result = await interruptible((signal) =>
    tellInvalidInput(
      manifest === undefined ? fromApi(options, log, signal) : fromFiles(manifest, options, typed, log, signal),
    ),
  )
  await warnOfUnproven(result, log)
  if (options.output === 'json') printJson(options.dryRun ? { dryRun: true, ...result } : result)
  else print(text([...result.directories, ...result.manifests], options.dryRun === true))
}

async function fromApi(options: InstallOptions, log: Log, signal: AbortSignal): Promise<InstallResult> {
  const { resourceDir, podManifestDir, resources } = options
  const nodeName = nodeNameOf(options)
  const objects = revisionObjects(options, {
    '--resource-dir': resourceDir,
    '--pod-manifest-dir': podManifestDir,
    '--node-name (or NODE_NAME)': nodeName,
  })
  if (resources !== undefined) throw new UsageError('--resources is for an installation from files: name a manifest')
  const { certificates } = objects
  const { api, decode } = await openApi(options, log)
  try {
    return await installFromApi(
      {
        objects: {
          ...objects,
          certificates: certificates && { ...certificates, directory: resolve(certificates.directory) },
        },
        nodeName: nodeName ?? '',
        // Where it runs as an installer pod.
        podName: process.env.POD_NAME || undefined,
        resourceDirectory: resolve(resourceDir ?? ''),
        manifestDirectory: resolve(podManifestDir ?? ''),
        manifestLock: lockFile(options),
        timeout: options.timeoutDuration,
        dryRun: options.dryRun === true,
        requireProven: options.requireProven === true,
        checkHostPaths: options.checkHostPaths === true,
      },
      {
        ...{ api, decode, disk: new Disk(), log, signal },
        instance: process.env.POD_NAME || hostname(),
      },
    )
  } finally {
    await api.close()
  }
}

async function fromFiles(
  manifest: string,
  options: InstallOptions,
  typed: readonly string[],
  log: Log,
  signal: AbortSignal,
): Promise<InstallResult> {
  const { podManifestDir, resourceDir, revision, resources } = options
  requireFlags({ '--pod-manifest-dir': podManifestDir })
  if (revision === undefined && (resources !== undefined || resourceDir !== undefined)) {
    throw new UsageError('--revision is missing: --resources and --resource-dir make a revision')
  }
  if (revision !== undefined) requireFlags({ '--resource-dir': resourceDir })
  for (const [flag, given] of Object.entries({
    '--secrets': options.secrets,
    '--optional-secrets': options.optionalSecrets,
    '--configmaps': options.configmaps,
    '--optional-configmaps': options.optionalConfigmaps,
    '--cert-dir': options.certDir,
    '--cert-secrets': options.certSecrets,
    '--optional-cert-secrets': options.optionalCertSecrets,
    '--cert-configmaps': options.certConfigmaps,
    '--optional-cert-configmaps': options.optionalCertConfigmaps,
    // Of these, only what was typed: the environment may hold them for other commands.
    ...Object.fromEntries(typed.map((flag) => [flag, true])),
  })) {
    if (given !== undefined) throw new UsageError(`${flag} is for an installation from the API: name no manifest`)
  }
  return installFromFiles({
    ...{ disk: new Disk(), log, signal },
    files: {
      ...{ manifest, pod: options.pod },
      revision:
        revision === undefined
          ? undefined
          : { number: revision, resourceDirectory: resolve(resourceDir ?? ''), resources },
      nodeName: nodeNameOf(options),
    },
    manifestDirectory: resolve(podManifestDir ?? ''),
    manifestLock: lockFile(options),
    timeout: options.timeoutDuration,
    dryRun: options.dryRun === true,
    requireProven: options.requireProven === true,
    checkHostPaths: options.checkHostPaths === true,
  })
}

function lockFile({ podManifestsLockFile }: InstallOptions): string | undefined {
  return podManifestsLockFile ? resolve(podManifestsLockFile) : undefined
}

async function warnOfUnproven(result: InstallResult, log: Log): Promise<void> {
  const unproven = [...result.directories, ...result.manifests].find((line) => line.unproven)
  if (unproven === undefined) return
  const { warnUnproven } = await import('../agent/report-log.js')
  warnUnproven(log, unproven.path)
}

function text(lines: readonly InstallLine[], dry: boolean): string {
  const signs = { add: '+', change: '~', remove: '-' }
  return lines
    .map(({ path, outcome, digest, changes = [] }) => {
      const verb = dry && (outcome === 'created' || outcome === 'replaced') ? `would be ${outcome}` : outcome
      const details = changes.map((change) => ['', `${signs[change.change]} ${change.path}`])
      return table([[verb, path, digest ?? '']]) + table(details)
    })
    .join('')
}
